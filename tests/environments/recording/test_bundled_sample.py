"""The bundled sample, recorded once and kept: its labels are what the state gives, its cases those
of the reference set, and its README names what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.environments.recording.sample_again import SCENARIOS, case_of
from trajudge.environments.agents.script import Behaviour
from trajudge.environments.model.case import read_cases
from trajudge.environments.recheck import rechecked
from trajudge.trajectories.sample import sample_path

README = (sample_path() / "README.md").read_text(encoding="utf-8")
AGAIN = "the applications have changed since: make sample"


def test_every_label_is_what_the_state_gives_again() -> None:
    """An application that has changed since it was recorded is refused (``make sample``)."""
    runs = list(rechecked(sample_path()))
    assert len({run.trajectory.key for run in runs}) == len(runs) == 130
    assert not [difference for run in runs for difference in run.differences]


@pytest.mark.parametrize("name", SCENARIOS)
def test_its_cases_are_those_of_the_reference_set(name: str, tmp_path: Path) -> None:
    cases = {
        f"{c.config.app}.{c.config.scenario}": c for c in read_cases(sample_path() / "cases.jsonl")
    }
    assert list(cases) == list(SCENARIOS)
    assert cases[name] == case_of(name, tmp_path / "case.jsonl"), AGAIN


def test_the_readme_counts_and_names_what_is_there() -> None:
    assert len(Behaviour) == 16 and "sixteen behaviours" in README
    named = set(re.findall(r"^- .*$", README, flags=re.M))
    files = {name for line in named for name in re.findall(r"`([\w.]+)/?`", line.split(":")[0])}
    there = {path.name for path in Path(sample_path()).iterdir()}
    assert files == there - {"README.md", "__init__.py", "__pycache__"}
