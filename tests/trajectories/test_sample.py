"""The bundled sample: small, complete, and labelled as its agents were meant to behave."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from PIL import Image

from annotations import store as annotation_store
from annotations.model import Annotation
from environments.agents import AGENTS, Behaviour
from environments.tasks import TASKS
from trajectories import store
from trajectories.model import Trajectory, TrajectoryKey
from trajectories.sample import sample_path

MEGABYTE = 10**6
# Whether a run of this behaviour succeeds; None: some do.
SUCCEEDS = {
    Behaviour.SUCCEEDS: True,
    Behaviour.SIDE_EFFECT: True,
    Behaviour.STOPS_EARLY: False,
    Behaviour.WRONG_ITEM: False,
    Behaviour.FALSE_CLAIM: False,
    Behaviour.CIRCLES: None,
}


@pytest.fixture(scope="module")
def sample() -> dict[TrajectoryKey, Trajectory]:
    read = list(store.read(sample_path()))
    assert all(isinstance(entry, Trajectory) for entry in read)
    return {entry.key: entry for entry in read if isinstance(entry, Trajectory)}


@pytest.fixture(scope="module")
def labels() -> dict[TrajectoryKey, Annotation]:
    loaded = annotation_store.load(sample_path() / "labels.jsonl")
    return {annotation.key: annotation for annotation in loaded}


@pytest.fixture(scope="module")
def facts() -> dict[TrajectoryKey, dict[str, Any]]:
    lines = (sample_path() / "facts.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    return {TrajectoryKey(**entry["key"]): entry for entry in entries}


def test_every_agent_did_every_task(
    sample: dict[TrajectoryKey, Trajectory],
    labels: dict[TrajectoryKey, Annotation],
    facts: dict[TrajectoryKey, dict[str, Any]],
) -> None:
    wanted = {(agent, task) for agent in AGENTS for task in TASKS}
    assert {(key.agent, key.task_id) for key in sample} == wanted
    assert set(labels) == set(facts) == set(sample)
    assert len(sample) == len(wanted) >= 24


def test_the_sample_stays_small() -> None:
    files = [path for path in sample_path().rglob("*") if "__pycache__" not in path.parts]
    assert sum(path.stat().st_size for path in files if path.is_file()) <= 4 * MEGABYTE


def test_every_step_has_trees_and_a_screenshot(sample: dict[TrajectoryKey, Trajectory]) -> None:
    used = set()
    for trajectory in sample.values():
        assert trajectory.steps[-1].action is None
        assert all(step.action and step.reasoning for step in trajectory.steps[:-1])
        for step in trajectory.steps:
            seen = step.observation
            assert seen.url and seen.url.startswith("http://shop.localhost/")
            assert seen.axtree and seen.axtree.startswith("RootWebArea '")
            assert seen.axtree_pruned and len(seen.axtree_pruned) < len(seen.axtree)
            assert seen.screenshot and seen.screenshot.path
            used.add(seen.screenshot.path)
    assert used == set((sample_path() / "images").iterdir())
    for path in used:
        with Image.open(path) as picture:
            assert picture.size == (720, 540)


def test_actions_refer_to_elements_of_the_tree(sample: dict[TrajectoryKey, Trajectory]) -> None:
    for trajectory in sample.values():
        for step, after in zip(trajectory.steps, trajectory.steps[1:], strict=False):
            name, _, rest = (step.action or "").partition("(")
            if name in ("click", "fill", "select_option"):
                known = f"[{rest.split(chr(39))[1]}] " in (step.observation.axtree or "")
                assert known == (after.observation.page_error is None), step


@pytest.mark.parametrize("behaviour", Behaviour)
def test_every_behaviour_is_labelled_as_intended(
    behaviour: Behaviour,
    labels: dict[TrajectoryKey, Annotation],
    facts: dict[TrajectoryKey, dict[str, Any]],
) -> None:
    mine = [label for key, label in labels.items() if facts[key]["behaviour"] == behaviour]
    assert len(mine) == len(TASKS)
    if (succeeds := SUCCEEDS[behaviour]) is not None:
        assert {label.success for label in mine} == {succeeds}
    assert {label.repetition for label in mine} == {behaviour is Behaviour.CIRCLES}
    if behaviour is Behaviour.SIDE_EFFECT:
        assert {label.side_effect for label in mine} == {True}
    elif behaviour is not Behaviour.WRONG_ITEM:
        assert {label.side_effect for label in mine} == {False}


def test_both_classes_and_both_errors_of_the_official_reward_are_there(
    sample: dict[TrajectoryKey, Trajectory], labels: dict[TrajectoryKey, Annotation]
) -> None:
    seen = Counter((labels[key].success, t.official_reward) for key, t in sample.items())
    assert sum(count for (success, _), count in seen.items() if success) >= 8
    assert set(seen) == {(success, reward) for success in (True, False) for reward in (0.0, 1.0)}


def test_names_and_words_do_not_tell_the_behaviour(
    sample: dict[TrajectoryKey, Trajectory],
) -> None:
    for trajectory in sample.values():
        assert not trajectory.metadata
        assert not any(behaviour in trajectory.model_dump_json() for behaviour in Behaviour)


def test_some_runs_hold_an_action_that_failed(sample: dict[TrajectoryKey, Trajectory]) -> None:
    errors = [step.observation.page_error for t in sample.values() for step in t.steps]
    assert any(errors)
