"""How far one walks to understand a command: ``python -m benchmarks.trips``.

Prints the modules in the import closure of ``score`` and ``judge`` (late and type-only imports and
the packages above a module counted), the circles between folders at every depth, the imports inside
functions, and the sizes; then it runs the heuristic judge on the sample and ``trajudge score`` on
that run in processes of their own, and counts the files whose code runs and the mean depth of our
calls. ``--static`` leaves the runs out.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1] / "trajudge"
NAME = PACKAGE.name
STARTS = ("eval.score", "eval.judge")
# Runs a command and prints which of our files ran code, and the mean depth of our calls.
TRACER = """
import json, sys
ours, files, calls, depth = sys.argv[1], set(), 0, 0
def note(frame, event, argument):
    global calls, depth
    if event != "call" or not (name := frame.f_code.co_filename).startswith(ours):
        return
    if frame.f_code.co_name == "<module>":
        return
    files.add(name)
    above = 1
    while (frame := frame.f_back) is not None:
        above += frame.f_code.co_filename.startswith(ours)
    calls, depth = calls + 1, depth + above
from trajudge.eval.cli import main
sys.setprofile(note)
code = main(sys.argv[2:])
sys.setprofile(None)
print("\\n" + json.dumps([code, len(files), depth / calls]))
"""


class House(NamedTuple):
    """``imports`` are the modules of ours that each module imports, wherever in it; ``late`` counts
    the import statements inside functions; ``lines`` those of all modules."""

    imports: dict[str, set[str]]
    late: int
    lines: int


def read_house(package: Path = PACKAGE) -> House:
    """Read every module of the package by its syntax tree."""
    paths = {_name(path, package): path for path in sorted(package.rglob("*.py"))}
    imports: dict[str, set[str]] = {}
    late = lines = 0
    for name, path in paths.items():
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        lines += text.count("\n")
        imports[name] = set(_imported(tree, set(paths))) - {name, package.name}
        late += len(
            {
                node
                for function in ast.walk(tree)
                if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
                for node in ast.walk(function)
                if isinstance(node, ast.Import | ast.ImportFrom)
            }
        )
    return House(imports, late, lines)


def _name(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def _imported(tree: ast.AST, known: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            above = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
            yield from [one for one in above if one in known][:1]


def closure(house: House, start: str) -> set[str]:
    """Return the modules that one may have to open: those imported, and the packages above them."""
    seen: set[str] = set()
    waiting = [f"{NAME}.{start}"]
    while waiting:
        name = waiting.pop()
        if name in seen or name not in house.imports:
            continue
        seen.add(name)
        parts = name.split(".")
        waiting += [".".join(parts[:end]) for end in range(2, len(parts))]
        waiting += house.imports[name]
    return seen


def circles(house: House) -> set[tuple[str, str]]:
    """Return the pairs of folders, at any depth, each of which imports from the other."""
    arrows: dict[str, set[str]] = defaultdict(set)
    for name, imports in house.imports.items():
        for other in imports:
            mine, theirs = name.split("."), other.split(".")
            for depth in range(2, min(len(mine), len(theirs))):
                one, two = ".".join(mine[:depth]), ".".join(theirs[:depth])
                if one != two:
                    arrows[one].add(two)
    return {
        (one, two)
        for one, others in arrows.items()
        for two in others
        if one < two and one in arrows.get(two, ())
    }


def walk(words: list[str]) -> tuple[int, float]:
    """Run a command; return how many of our files ran code, and the mean depth of our calls."""
    command = [sys.executable, "-c", TRACER, str(PACKAGE), *words]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    code, files, depth = json.loads(shown.splitlines()[-1])
    if code:
        raise SystemExit(f"{' '.join(words)} ended with {code}")
    return files, depth


def main() -> None:
    """Print the trips."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--static", action="store_true", help="run no command")
    static = parser.parse_args().static
    house = read_house()
    print(f"modules {len(house.imports):,}, lines {house.lines:,}")
    for start in STARTS:
        print(f"modules in the import closure of {start}: {len(closure(house, start))}")
    found = sorted(circles(house))
    print(
        f"circles between folders: {len(found)}",
        *(f"  {one} <-> {two}" for one, two in found),
        sep="\n",
    )
    print(f"imports inside functions: {house.late}")
    if static:
        return
    with tempfile.TemporaryDirectory() as folder:
        run = str(Path(folder) / "run")
        judging = ["judge", "--judge", "heuristic", "--data", "sample", "--out", run]
        for words in (judging, ["score", run]):
            files, depth = walk(words)
            print(f"trajudge {words[0]}: code of {files} files runs, mean depth {depth:.1f}")


if __name__ == "__main__":
    main()
