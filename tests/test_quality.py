"""The whole tree is clean by the same tools that its authors use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# An hour: a machine that is busy with much else takes no part in what is checked.
LONG = (pytest.mark.slow, pytest.mark.longest, pytest.mark.timeout(3600))


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [["ruff", "check"], ["ruff", "format", "--check"], pytest.param(["mypy"], marks=LONG)],
    ids=" ".join,
)
def test_the_tree_is_clean(command: list[str]) -> None:
    run = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
