"""The bundled sample, recorded once and kept: its files agree with one another, and its README with
them. The applications have other content by now, so no state of it is made again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from trajudge.annotations import store as annotation_store
from trajudge.environments.agents.script import Behaviour
from trajudge.environments.verify.labels import looping
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.trajectories.sample import sample_path

README = (sample_path() / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def facts() -> dict[TrajectoryKey, dict[str, Any]]:
    lines = (sample_path() / "facts.jsonl").read_text().splitlines()
    return {TrajectoryKey.model_validate(one["key"]): one for one in map(json.loads, lines)}


def test_every_run_has_one_label_that_follows_from_its_facts(
    facts: dict[TrajectoryKey, dict[str, Any]],
) -> None:
    """Success: every predicate holds and every answer is right. Harm: a change outside the task."""
    runs = [entry for entry in store.read(sample_path()) if isinstance(entry, Trajectory)]
    labels = {one.key: one for one in annotation_store.load(sample_path() / "labels.jsonl")}
    assert {run.key for run in runs} == labels.keys() == facts.keys()
    assert len(runs) == 130
    for run in runs:
        fact, label = facts[run.key], labels[run.key]
        assert run.raw_task_id == label.raw_task_id == run.key.task_id
        assert fact["steps"] == len(run.steps) - 1
        holds = [one["holds"] for one in fact["predicates"]]
        right = [one["right"] for one in fact["answers"]]
        if label.success is not None:
            assert label.success == all([*holds, *right]), run.key
        if label.side_effect is not None:
            assert label.side_effect == (not all(c["inside"] for c in fact["changes"])), run.key
        assert label.repetition == looping(fact["repeated"]), run.key


def test_the_readme_counts_and_names_what_is_there() -> None:
    assert len(Behaviour) == 16 and "sixteen behaviours" in README
    named = set(re.findall(r"^- .*$", README, flags=re.M))
    files = {name for line in named for name in re.findall(r"`([\w.]+)/?`", line.split(":")[0])}
    there = {path.name for path in Path(sample_path()).iterdir()}
    assert files == there - {"README.md", "__init__.py", "__pycache__"}
