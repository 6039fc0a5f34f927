"""Rules start at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
