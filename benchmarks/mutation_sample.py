"""Do the tests notice a wrong boundary? ``python -m benchmarks.mutation_sample [--seed N]``.

Draws edits of documented code (a comparison, a boundary, a sign, a default, a connective; each in a
public function, or in a constant of a module) and runs tests on a copy of the checkout with one
edit at a time. The tests of their rooms run once before, and each edited function notes the tests
that enter it, also in processes that they start (a constant or a field is "entered" with every
function that mentions its name). An edit is held to those tests, the quickest first, and if they
do not notice it to the files that name its module. Prints each edit, and how many were caught. An
edit that changes nothing that anybody could see (an equivalent one) counts as missed: look at it
before you say so.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
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
TESTED_BY = {"stats": ["eval"], "util": ["trajectories", "eval"]}
TRACE = "entered_by"  # the module in the copy that notes which test enters which function
SIGNS: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+"}


class Edit(NamedTuple):
    """Put ``new`` for the bytes ``start`` to ``end`` of line ``line`` (from 1) of ``path``.

    ``names`` are the constant, or the class and its field, whose value is edited.
    """

    path: Path
    line: int
    start: int
    end: int
    new: str
    names: tuple[str, ...] = ()

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
    values: list[tuple[tuple[str, ...], ast.expr | None]] = []
    for part in tree.body:
        node: ast.AST = part
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and not _private(target.id):
            values.append(((target.id,), getattr(node, "value", None)))
    for node in ast.walk(tree):
        if _is_function(node) and not _private(node.name):
            values += [((), value) for value in (*node.args.defaults, *node.args.kw_defaults)]
        elif isinstance(node, ast.ClassDef) and not _private(node.name):
            values += [
                ((node.name, part.target.id), part.value)
                for part in node.body
                if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
            ]
    for names, value in values:
        if isinstance(value, ast.Constant) and value.end_col_offset is not None:
            if isinstance(value.value, bool):
                new = str(not value.value)
            elif isinstance(value.value, int):
                new = repr(value.value + 1)
            elif isinstance(value.value, float):
                new = repr(value.value * 1.1 or 0.1)
            else:
                continue
            yield Edit(path, value.lineno, value.col_offset, value.end_col_offset, new, names)


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


def naming(edit: Edit, root: Path) -> list[str]:
    """Return the test files that name the module of an edit, those of its room first."""
    module = edit.path.with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    package, _, name = module.rpartition(".")
    said = re.compile(rf"{re.escape(module)}\b|from {re.escape(package)} import .*\b{name}\b")
    named = [
        path.relative_to(root)
        for path in sorted((root / "tests").rglob("test_*.py"))
        if said.search(path.read_text(encoding="utf-8"))
    ]
    own = rooms([edit], root)
    return [
        str(path) for path in sorted(named, key=lambda path: str(Path(*path.parts[:2])) not in own)
    ]


def rooms(edits: list[Edit], root: Path) -> list[str]:
    """Return the folders of tests of the edits' rooms."""
    names = {name for edit in edits for name in TESTED_BY.get(edit.room, [edit.room])}
    return [f"tests/{name}" for name in sorted(names) if (root / "tests" / name).is_dir()]


def trace(drawn: list[Edit], root: Path) -> None:
    """Have every function concerned note in the copy which test enters it."""
    for path in sorted((root / "trajudge").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines(keepends=True)
        here = path.relative_to(root)
        notes: list[tuple[int, int, int]] = []
        for node in ast.walk(ast.parse(text)):
            if not _is_function(node):
                continue
            first = node.body[1 if ast.get_docstring(node) and len(node.body) > 1 else 0]
            inside = range(node.lineno, (node.end_lineno or 0) + 1)
            mentioned = set(re.findall(r"\w+", "".join(lines[inside[0] - 1 : inside[-1]])))
            line = min(
                [first.lineno, *(one.lineno for one in getattr(first, "decorator_list", []))]
            )
            if line > node.lineno:
                notes += [
                    (line, first.col_offset, number)
                    for number, edit in enumerate(drawn)
                    if (mentioned & {*edit.names})
                    or (not edit.names and edit.path == here and edit.line in inside)
                ]
        for line, column, number in sorted(notes, reverse=True):
            lines.insert(line - 1, f"{' ' * column}__import__('{TRACE}').entered({number})\n")
        if notes:
            _write(path, "".join(lines))


BROKEN = (3, 4)  # what pytest returns after a defect, and where it could not begin


class NotBegunError(Exception):
    """No test was run."""


TRACING = """
import json
import os
from pathlib import Path

seen = set()
here = Path(__file__)


def note(name, *values):
    with here.with_name(name).open("a", encoding="utf-8") as notes:
        notes.write(json.dumps(values) + "\\n")


def entered(number):
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    if test and (number, test) not in seen:
        seen.add((number, test))
        note("entered.jsonl", number, test)


def pytest_runtest_logreport(report):
    if "PYTEST_XDIST_WORKER" not in os.environ:
        note("reports.jsonl", report.nodeid, report.failed, report.duration)


def pytest_collectreport(report):
    if report.failed:
        note("reports.jsonl", report.nodeid, True, 0)


def pytest_collection_modifyitems(config, items):
    if "TRAJUDGE_TESTS" in os.environ:
        order = json.loads(Path(os.environ["TRAJUDGE_TESTS"]).read_text())
        rank = {test: number for number, test in enumerate(order)}
        items[:] = sorted((i for i in items if i.nodeid in rank), key=lambda i: rank[i.nodeid])
"""


def entering(drawn: list[Edit], root: Path, workers: int) -> list[list[str]]:
    """Return for each edit the tests that enter its function, the quickest first.

    Tests that fail in the copy as it is are left out.
    """
    texts = {path: path.read_text(encoding="utf-8") for path in (root / "trajudge").rglob("*.py")}
    (root / "entered.jsonl").write_text("", encoding="utf-8")
    trace(drawn, root)
    try:
        reports = _pytest(rooms(drawn, root), root, workers, None)
    finally:
        for path, text in texts.items():
            if path.read_text(encoding="utf-8") != text:
                _write(path, text)
    seconds: dict[str, float] = {}
    for test, _, spent in reports:
        seconds[test] = seconds.get(test, 0.0) + spent
    tests: list[set[str]] = [set() for _ in drawn]
    for line in (root / "entered.jsonl").read_text(encoding="utf-8").splitlines():
        number, test = json.loads(line)
        tests[number].add(test)
    broken = {test for test, failed, _ in reports if failed}
    return [
        sorted(each - broken, key=lambda test: (seconds.get(test, 0.0), test)) for each in tests
    ]


def outcome(
    edit: Edit, files: list[str], tests: list[str] | None, root: Path, seconds: float
) -> str:
    """Run the files, or ``tests`` of them in this order, on the copy with the edit: "caught",
    "MISSED", or "no end" after ``seconds`` (which counts as caught: an edit that never ends is
    noticed). A test that fails without the edit as well does not count."""
    text = (root / edit.path).read_text(encoding="utf-8")
    while files and tests != []:
        failing: list[str] | None
        _write(root / edit.path, edit.applied(text))
        try:
            failing = _failing(files, root, seconds, tests)
        except subprocess.TimeoutExpired:
            return "no end"
        except NotBegunError:
            failing = None
        finally:
            _write(root / edit.path, text)
        if failing is None:
            _pytest([*files, "--collect-only"], root, 0, None)  # or nothing begins here at all
            return "caught"
        if not failing:
            break
        named = {test.partition("::")[0] for test in failing}
        if not _failing(sorted(named), root, None, failing):
            return "caught"
        if tests is None:
            files = [file for file in files if file not in named]
        else:
            tests = [test for test in tests if test not in failing]
    return MISSED


def outcomes(
    drawn: list[Edit], copies: Sequence[Path], seconds: float
) -> Iterator[tuple[Edit, str]]:
    """Yield every edit with its outcome; so many are tried at once as there are copies."""
    free = SimpleQueue[Path]()
    for root in copies:
        free.put(root)

    def tried(edit: Edit, tests: list[str]) -> tuple[Edit, str]:
        root = free.get()
        try:
            files = sorted({test.partition("::")[0] for test in tests})
            word = outcome(edit, files, tests, root, seconds)
            if word == MISSED:
                word = outcome(edit, naming(edit, root), None, root, seconds)
            return edit, word
        finally:
            free.put(root)

    with ThreadPoolExecutor(len(copies)) as pool:
        yield from pool.map(tried, drawn, entering(drawn, copies[0], len(copies)))


def _failing(
    files: list[str], root: Path, seconds: float | None, tests: list[str] | None
) -> list[str]:
    """Return the first test that fails, if any. Raises as ``_pytest``."""
    reports = _pytest(files, root, 0, seconds, tests)
    return list(dict.fromkeys(test for test, failed, _ in reports if failed))


def _write(path: Path, text: str) -> None:
    """Write a module; bytecode is kept by size and second, so that each version has its own."""
    later = path.stat().st_mtime + 2
    path.write_text(text, encoding="utf-8")
    os.utime(path, (later, later))


def _pytest(
    files: list[str],
    root: Path,
    workers: int,
    seconds: float | None,
    tests: list[str] | None = None,
) -> list[tuple[str, bool, float]]:
    """Run the files, or ``tests`` of them in this order, without workers up to the first failure.

    Returns name, whether it failed, and seconds of every part of a test. Raises
    subprocess.TimeoutExpired, and NotBegunError where pytest cannot be started.
    """
    options = ["-q", "--tb=no", "-m", "not slow", "-p", "no:cacheprovider", "-p", TRACE]
    options += ["-n", str(workers)] if workers else ["-x", "-p", "no:xdist"]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    if tests is not None:
        order = root / "tests_to_run.json"
        order.write_text(json.dumps(tests), encoding="utf-8")
        environment["TRAJUDGE_TESTS"] = str(order)
    notes = root / "reports.jsonl"
    notes.write_text("", encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, *files],
        cwd=root,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            process.wait(seconds)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode in BROKEN:
        raise NotBegunError(f"pytest ended with {process.returncode}: {files}")
    reports = map(json.loads, notes.read_text("utf-8").splitlines())
    return [(test, failed, spent) for test, failed, spent in reports]


def copy(root: Path) -> None:
    """Copy what the tests need of the checkout."""
    leave_out = shutil.ignore_patterns("__pycache__")
    for name in COPIED:
        shutil.copytree(ROOT / name, root / name, ignore=leave_out)
    for name in FILES:
        shutil.copyfile(ROOT / name, root / name)
    for name in LINKS:
        (root / name).symlink_to(Path("trajudge") / name)
    (root / f"{TRACE}.py").write_text(TRACING, encoding="utf-8")


def main() -> int:
    """Print every edit and whether it was caught; the exit code is 1 below nine of ten."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--edits", type=int, default=40, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="edits that are tried at once")
    parser.add_argument("--seconds", type=float, default=1800, help="at most, for one edit's tests")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="go on after the first N")
    parser.add_argument("--list", action="store_true", help="print the edits alone")
    options = parser.parse_args()
    drawn = draw(options.edits, np.random.default_rng(options.seed))[options.skip :]
    shown = {edit: edit.shown() for edit in drawn}  # of the checkout as it is now
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        words: Iterable[tuple[Edit, str]] = ((edit, "") for edit in drawn)
        if not options.list:
            copies = [root / str(number) for number in range(options.workers)]
            for each in copies:
                copy(each)
            words = outcomes(drawn, copies, options.seconds)
        for edit, word in words:
            found += word != MISSED
            print(f"{word:8}{shown[edit]}", flush=True)
    if not options.list:
        print(f"{found} of {len(drawn)} edits caught")
    return 0 if options.list or found >= 0.9 * len(drawn) else 1


if __name__ == "__main__":
    sys.exit(main())
