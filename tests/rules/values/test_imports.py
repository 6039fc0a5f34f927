"""Reading plain values needs nothing but the standard library; the rest comes when it is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SLOW = {"pydantic", "numpy", "regex", "dateutil", "requests"}


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
    assert not loaded & SLOW
