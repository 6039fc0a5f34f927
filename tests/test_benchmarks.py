"""The benchmarks are few, and each is one that a page, a goal or a command of the project cites."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CITING = [*ROOT.glob("*.md"), ROOT / "Makefile", *(ROOT / "docs").rglob("*.md")]


def listed() -> list[str]:
    command = [sys.executable, "-m", "benchmarks"]
    shown = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return re.findall(r"^(\w+) +\S", shown, re.MULTILINE)


def test_each_of_at_most_twenty_is_cited() -> None:
    names = listed()
    assert len(names) <= 20
    cited = " ".join(path.read_text(encoding="utf-8") for path in CITING)
    assert [name for name in names if f"benchmarks.{name}" not in cited] == []


def test_no_test_imports_a_test_or_a_benchmark() -> None:
    importing = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        and re.match(r"benchmarks\b|tests\b(\.\w+)*\.test_", node.module or "")
    ]
    assert importing == []


def test_a_name_that_is_none_is_refused() -> None:
    command = [sys.executable, "-m", "benchmarks", "speed"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("speed: no benchmark; there are app, check_peers, ")
