"""The loading benchmark measures methods that read the same thing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import orjson
import pytest

from benchmarks import agentrewardbench_like as like
from benchmarks import load


@pytest.mark.slow
def test_every_method_reads_every_step(tmp_path: Path) -> None:
    load.make(tmp_path, files=2, seed=0)
    assert {method(tmp_path) for method in load.METHODS.values()} == {5 + 6}


def test_the_table_names_every_method(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.load", "--files", "1", "--repeats", "1"]
    table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "1 files, 1 MB" in table
    for name in load.METHODS:
        assert f"\n{name}" in table


@pytest.mark.parametrize("size", [20_000, 1_000_000])
def test_a_made_file_is_about_as_large_as_asked_and_repeatable(size: int) -> None:
    made = [
        orjson.dumps(like.trajectory(np.random.default_rng(3), size=size, n_steps=4))
        for _ in range(2)
    ]
    assert made[0] == made[1]
    assert len(made[0]) == pytest.approx(size, rel=0.5)
