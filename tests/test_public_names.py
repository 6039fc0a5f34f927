"""The public face is exactly what ``__all__`` says, and costs nothing until it is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import trajudge

ROOT = Path(__file__).parents[1]
ROOMS = {
    "app",
    "rewards",
    "robustness",
    *("annotations", "environments", "eval", "judges", "prompts", "proxy", "rules"),
    *("trajectories", "util"),
}


def test_all_is_exact_and_small() -> None:
    assert trajudge.__all__ == sorted(trajudge.__all__)
    assert len(trajudge.__all__) <= 31
    modules = {path.stem for path in (ROOT / "trajudge").glob("*.py")} | ROOMS | {"face"}
    public = {name for name in dir(trajudge) if not name.startswith("_")}
    assert public - (modules - set(trajudge.__all__)) - {
        "annotations",
        "import_module",
        "TYPE_CHECKING",
    } == set(trajudge.__all__)


@pytest.mark.parametrize("name", trajudge.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    assert (getattr(trajudge, name).__doc__ or "").strip()


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'jugde'"):
        _ = trajudge.jugde


def test_importing_the_package_imports_nothing_slow() -> None:
    code = "import sys, trajudge; print(sorted({'pydantic', 'numpy'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_sample_and_its_labels_are_two_calls_away() -> None:
    runs, truth = trajudge.load(), trajudge.labels()
    assert {run.key for run in runs} == set(truth)
    assert all(isinstance(run, trajudge.Trajectory) for run in runs)
