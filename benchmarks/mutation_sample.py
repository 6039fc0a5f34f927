"""Do the tests notice a wrong boundary? ``python -m benchmarks.mutation_sample [--seed N]``.

Draws edits of documented code (a comparison, a boundary, a sign, a default, a connective; each in a
public function, or in a constant of a module) and runs the tests of its room on a copy of the
checkout with one edit at a time: first those that name the module, then the others. Prints each
edit, and how many were caught. An edit that changes nothing that anybody could see (an equivalent
one) counts as missed: look at it before you say so.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeGuard

import numpy as np

ROOT = Path(__file__).parents[1]
COPIED = ("trajudge", "tests", "eval", "docs", "examples", "benchmarks")
FILES = ("pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "mkdocs.yml")
LINKS = ("annotations", "judges", "prompts", "trajectories")
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
}
MISSED = "MISSED"
TESTED_BY = {"stats": "eval", "util": "trajectories"}
SIGNS: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+"}


class Edit(NamedTuple):
    """Put ``new`` for the characters ``start`` to ``end`` of line ``line`` (from 1) of ``path``."""

    path: Path
    line: int
    start: int
    end: int
    new: str

    @property
    def room(self) -> str:
        return self.path.parts[1]

    def applied(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        line = lines[self.line - 1].encode()
        changed = line[: self.start] + self.new.encode() + line[self.end :]
        lines[self.line - 1] = changed.decode()
        return "".join(lines)

    def shown(self) -> str:
        """Return the place, and its line before and after."""
        text = (ROOT / self.path).read_text(encoding="utf-8")
        both = [one.splitlines()[self.line - 1].strip() for one in (text, self.applied(text))]
        return f"{self.path}:{self.line}  {both[0]}  ->  {both[1]}"


def edits(path: Path) -> Iterator[Edit]:
    """Yield every edit of a module, its path relative to the checkout."""
    text = (ROOT / path).read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in documented(ast.parse(text)):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            if (new := COMPARISONS.get(type(node.ops[0]))) is not None:
                yield from _between(path, lines, node.left, node.comparators[0], new)
        elif isinstance(node, ast.BinOp) and not _is_text(node):
            if (new := SIGNS.get(type(node.op))) is not None:
                yield from _between(path, lines, node.left, node.right, new)
        elif isinstance(node, ast.BoolOp):
            new = "or" if isinstance(node.op, ast.And) else "and"
            yield from _between(path, lines, node.values[0], node.values[1], new)


def defaults(path: Path) -> Iterator[Edit]:
    """Yield every edit of a number that a constant or a parameter's default is, or a flag."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    values: list[ast.expr | None] = []
    for part in tree.body:
        node: ast.AST = part
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and not _private(target.id):
            values.append(getattr(node, "value", None))
    for node in ast.walk(tree):
        if _is_function(node) and not _private(node.name):
            values += [*node.args.defaults, *node.args.kw_defaults]
        elif isinstance(node, ast.ClassDef) and not _private(node.name):
            values += [part.value for part in node.body if isinstance(part, ast.AnnAssign)]
    for value in values:
        if isinstance(value, ast.Constant) and value.end_col_offset is not None:
            if isinstance(value.value, bool):
                new = str(not value.value)
            elif isinstance(value.value, int | float):
                new = repr(value.value + 1 if isinstance(value.value, int) else value.value * 1.1)
            else:
                continue
            yield Edit(path, value.lineno, value.col_offset, value.end_col_offset, new)


def documented(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes of public functions and methods that have a docstring."""
    waiting: list[ast.AST] = [*tree.body]
    for node in waiting:
        if isinstance(node, ast.ClassDef) and not _private(node.name):
            waiting += node.body
        elif _is_function(node) and not _private(node.name) and ast.get_docstring(node):
            yield from ast.walk(node)


def _is_function(node: ast.AST) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _private(name: str) -> bool:
    return name.startswith("_")


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(side, ast.JoinedStr | ast.List | ast.Tuple)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in sides
    )


def _between(
    path: Path, lines: list[str], left: ast.expr, right: ast.expr, new: str
) -> Iterator[Edit]:
    """Replace the operator between two operands of one line."""
    if left.end_lineno != right.lineno or left.end_col_offset is None:
        return
    start, end = left.end_col_offset, right.col_offset
    between = lines[right.lineno - 1].encode()[start:end].decode()
    operator = between.strip(" ()")
    if operator and between.count(operator) == 1:
        changed = between.replace(operator, new)
        yield Edit(path, right.lineno, start, end, changed)


def draw(count: int, rng: np.random.Generator) -> list[Edit]:
    """Draw edits without replacement; every room has its share by the number of its places."""
    found = [
        edit
        for path in sorted((ROOT / "trajudge").rglob("*.py"))
        for make in (edits, defaults)
        for edit in make(path.relative_to(ROOT))
    ]
    return [found[number] for number in rng.choice(len(found), count, replace=False)]


def tests_of(edit: Edit, root: Path) -> list[list[str]]:
    """Return the tests to run: those that name the module, then all of the room."""
    room = root / "tests" / TESTED_BY.get(edit.room, edit.room)
    module = edit.path.with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    package, _, name = module.rpartition(".")
    naming = [
        str(path.relative_to(root))
        for path in sorted((root / "tests").rglob("test_*.py"))
        if module in (text := path.read_text(encoding="utf-8"))
        or f"from {package} import {name}" in text
    ]
    return [part for part in (naming, [str(room.relative_to(root))]) if part]


def outcome(edit: Edit, root: Path, workers: int, seconds: float) -> str:
    """Run the tests on the copy with the edit: "caught", "MISSED", or "no end" after ``seconds``
    (which counts as caught: an edit that never ends is noticed). A test that fails without the
    edit as well does not count."""
    text = (root / edit.path).read_text(encoding="utf-8")
    for tests in tests_of(edit, root):
        _write(root / edit.path, edit.applied(text))
        try:
            failing = _failing(tests, root, workers, seconds)
        except subprocess.TimeoutExpired:
            return "no end"
        finally:
            _write(root / edit.path, text)
        if failing and not _failing(failing, root, 0, seconds):
            return "caught"
    return MISSED


def _write(path: Path, text: str) -> None:
    """Write a module; bytecode is kept by size and second, so that each version has its own."""
    later = path.stat().st_mtime + 2
    path.write_text(text, encoding="utf-8")
    os.utime(path, (later, later))


def _failing(tests: list[str], root: Path, workers: int, seconds: float) -> list[str]:
    """Return the test files that have a failure, the first ones alone. Raises TimeoutExpired."""
    options = ["-x", "-q", "--tb=no", "-rfE", "-m", "not slow", "-p", "no:cacheprovider"]
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, "-n", str(workers), *tests],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            shown, _ = process.communicate(timeout=seconds)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    files = re.findall(r"^(?:FAILED|ERROR) (tests/[\w/]+\.py)", shown, re.MULTILINE)
    return list(dict.fromkeys(files))


def copy(root: Path) -> None:
    """Copy what the tests need of the checkout."""
    leave_out = shutil.ignore_patterns("__pycache__")
    for name in COPIED:
        shutil.copytree(ROOT / name, root / name, ignore=leave_out)
    for name in FILES:
        shutil.copyfile(ROOT / name, root / name)
    for name in LINKS:
        (root / name).symlink_to(Path("trajudge") / name)


def main() -> int:
    """Print every edit and whether it was caught; the exit code is 1 below nine of ten."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--edits", type=int, default=40, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1800, help="at most, for one edit's tests")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="go on after the first N")
    parser.add_argument("--list", action="store_true", help="print the edits alone")
    options = parser.parse_args()
    drawn = draw(options.edits, np.random.default_rng(options.seed))[options.skip :]
    lines = [edit.shown() for edit in drawn]  # the checkout may change meanwhile, the copy does not
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        if not options.list:
            copy(root)
        for edit, line in zip(drawn, lines, strict=True):
            word = "" if options.list else outcome(edit, root, options.workers, options.seconds)
            found += word != MISSED
            print(f"{word:8}{line}", flush=True)
    if not options.list:
        print(f"{found} of {len(drawn)} edits caught")
    return 0 if options.list or found >= 0.9 * len(drawn) else 1


if __name__ == "__main__":
    sys.exit(main())
