"""Rules start at once, and import one way."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import trajudge.rules

SLOW = ("pydantic", "numpy", "scipy", "rich", "asyncio")


@pytest.mark.parametrize(
    "module",
    [
        "trajudge.rules.verdict",
        "trajudge.rules.webarena",
        "trajudge.rules.audit.lint",
        "trajudge.rules.audit.mutate",
    ],
)
def test_nothing_slow_is_imported(module: str) -> None:
    code = f"import sys, {module}; print([name for name in {SLOW} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


FOLDER = Path(trajudge.rules.__file__).parent
# Each may import those before it. What is in no folder and not named stands before "har".
LEVELS = ("values", "har", "webarena", "verified", "audit")
COMMANDS = frozenset({"commands"})


def _level(module: str) -> int:
    part = module.split(".", maxsplit=1)[0]
    return LEVELS.index(part) if part in LEVELS else len(LEVELS) if part in COMMANDS else -1


def _imports() -> Iterator[tuple[str, str]]:
    """Yield (module, module that it imports) within the rules, late imports too."""
    for file in FOLDER.rglob("*.py"):
        module = ".".join(file.relative_to(FOLDER).with_suffix("").parts)
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                "trajudge.rules"
            ):
                names = [node.module or ""]
                if node.module == "trajudge.rules":
                    names = [f"trajudge.rules.{alias.name}" for alias in node.names]
                for name in names:
                    yield module, name.removeprefix("trajudge.rules.")


def test_no_module_imports_one_above_it() -> None:
    arrows = list(_imports())
    assert len(arrows) > 100
    assert [pair for pair in arrows if _level(pair[1]) > _level(pair[0])] == []


ROOT = Path(__file__).parents[2]
LIBRARIES = {"pydantic", "numpy", "regex", "dateutil", "requests"}


@pytest.mark.parametrize(
    "use", ["", "equal('number', 5, 'five'); equal('date', '2023-05-23', 'May 23, 2023')"]
)
def test_values_import_no_library_before_it_is_needed(use: str) -> None:
    code = f"from trajudge.rules.values import equal; {use}"
    code += "\nimport sys; raise SystemExit(' '.join(sys.modules))"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    loaded = {name.split(".")[0] for name in run.stderr.split()}
    assert "trajudge" in loaded
    assert not loaded & LIBRARIES
