"""The bundled sample: small, complete, and labelled as its agents were meant to behave."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from trajudge.annotations import open_annotations
from trajudge.annotations import store as annotation_store
from trajudge.annotations.model import Label
from trajudge.environments.agents.script import AGENTS, Behaviour, behaviour_of
from trajudge.environments.model.case import Case, read_cases
from trajudge.environments.recording.campaign import jobs_for
from trajudge.eval.store.inputs import open_spec
from trajudge.trajectories import store
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.trajectories.sample import SAMPLE, resolve_sample, sample_path

ROOT = Path(__file__).parents[2]
MEGABYTE = 10**6
SUCCEEDS = {Behaviour.ORACLE, Behaviour.SIDE_EFFECT, Behaviour.DETOURS, Behaviour.RECOVERS}
MAY_SUCCEED = {Behaviour.LOOPS, Behaviour.FORGETS}
# A run that fails may change something on its way, as one that succeeds may.
HARMLESS = SUCCEEDS - {Behaviour.SIDE_EFFECT}


@pytest.fixture(scope="module")
def sample() -> dict[TrajectoryKey, Trajectory]:
    read = list(store.read(sample_path()))
    assert all(isinstance(entry, Trajectory) for entry in read)
    return {entry.key: entry for entry in read if isinstance(entry, Trajectory)}


@pytest.fixture(scope="module")
def labels() -> dict[TrajectoryKey, Label]:
    loaded = annotation_store.load(sample_path() / "labels.jsonl")
    return {annotation.key: annotation for annotation in loaded}


@pytest.fixture(scope="module")
def facts() -> dict[TrajectoryKey, dict[str, Any]]:
    lines = (sample_path() / "facts.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    return {TrajectoryKey(**entry["key"]): entry for entry in entries}


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return read_cases(sample_path() / "cases.jsonl")


def behaviour(key: TrajectoryKey) -> Behaviour:
    known = behaviour_of(key.agent)
    assert known is not None
    return known


def test_every_agent_did_every_case(
    sample: dict[TrajectoryKey, Trajectory],
    labels: dict[TrajectoryKey, Label],
    facts: dict[TrajectoryKey, dict[str, Any]],
    cases: list[Case],
) -> None:
    wanted = {job.key for job in jobs_for(cases, list(AGENTS))}
    assert set(sample) == set(labels) == set(facts) == wanted
    assert len(sample) >= 60
    assert len({key.benchmark for key in sample}) >= 4
    assert {behaviour(key) for key in sample} == set(Behaviour)


def test_the_sample_stays_small() -> None:
    files = [path for path in sample_path().rglob("*") if "__pycache__" not in path.parts]
    assert sum(path.stat().st_size for path in files if path.is_file()) <= 6 * MEGABYTE


def test_every_step_has_trees_and_a_screenshot(sample: dict[TrajectoryKey, Trajectory]) -> None:
    used = set()
    for trajectory in sample.values():
        assert trajectory.steps[-1].action is None
        assert all(step.action and step.reasoning for step in trajectory.steps[:-1])
        for step in trajectory.steps:
            seen = step.observation
            assert seen.url and ".localhost/" in seen.url
            assert seen.axtree and seen.axtree.startswith(("RootWebArea '", 'RootWebArea "'))
            assert seen.axtree_pruned and len(seen.axtree_pruned) < len(seen.axtree)
            assert seen.screenshot and seen.screenshot.path
            used.add(seen.screenshot.path)
    assert used == set((sample_path() / "images").iterdir())
    for path in used:
        with Image.open(path) as picture:
            assert picture.size == (1024, 768)


def test_a_run_sees_one_origin_only(sample: dict[TrajectoryKey, Trajectory]) -> None:
    for trajectory in sample.values():
        urls = {(step.observation.url or "").split("/")[2] for step in trajectory.steps}
        assert len(urls) == 1, trajectory.key


def test_every_behaviour_is_labelled_as_intended(labels: dict[TrajectoryKey, Label]) -> None:
    for key, label in labels.items():
        kind = behaviour(key)
        if kind in SUCCEEDS:
            assert label.success is True, key
        elif kind not in MAY_SUCCEED:
            assert label.success is False, key
        if kind is Behaviour.SIDE_EFFECT:
            assert label.side_effect is True, key
        elif kind in HARMLESS:
            assert label.side_effect is False, key
        if kind is Behaviour.LOOPS:
            assert label.repetition is True, key


def test_optimality_follows_from_the_shortest_way(
    labels: dict[TrajectoryKey, Label],
    facts: dict[TrajectoryKey, dict[str, Any]],
    cases: list[Case],
) -> None:
    """No run that succeeded is shorter, and only one that is as short is completely optimal."""
    fewest = {case.config.app: case.fewest for case in cases}
    for key, label in labels.items():
        shortest = fewest[key.benchmark]
        if label.success:
            assert shortest and facts[key]["steps"] >= shortest, key
        optimal = label.success is True and facts[key]["steps"] == shortest
        assert (label.optimality == 4) == optimal, key


def test_both_classes_and_both_errors_of_the_official_reward_are_there(
    sample: dict[TrajectoryKey, Trajectory], labels: dict[TrajectoryKey, Label]
) -> None:
    seen = Counter((labels[key].success, t.official_reward) for key, t in sample.items())
    assert sum(count for (success, _), count in seen.items() if success) >= 15
    assert {(success, reward) for success in (True, False) for reward in (0.0, 1.0)} <= set(seen)


def test_names_and_words_do_not_tell_the_behaviour(
    sample: dict[TrajectoryKey, Trajectory],
) -> None:
    for trajectory in sample.values():
        assert not trajectory.metadata
        told = [kind for kind in Behaviour if kind.value in trajectory.model_dump_json()]
        assert not told, trajectory.key


def test_some_runs_hold_an_action_that_failed(sample: dict[TrajectoryKey, Trajectory]) -> None:
    errors = [step.observation.page_error for t in sample.values() for step in t.steps]
    assert any(errors)


def test_sample_is_where_it_is_installed_and_any_other_source_stays() -> None:
    assert resolve_sample(SAMPLE) == open_spec(SAMPLE) == f"trajudge:{sample_path()}"
    assert next(iter(open_source(resolve_sample(SAMPLE))))
    assert open_annotations(resolve_sample(SAMPLE, "labels.jsonl")) == open_annotations(SAMPLE)
    for other in ("./sample", "trajudge:sample", "sample.jsonl"):
        assert resolve_sample(other, "labels.jsonl") == other


def test_no_other_module_makes_a_source_of_the_sample() -> None:
    packages = ("trajectories", "annotations", "judges", "rules", "eval", "environments", "app")
    makers = [
        module.relative_to(ROOT / "trajudge").as_posix()
        for package in packages
        for module in (ROOT / "trajudge" / package).rglob("*.py")
        if "trajudge:{sample_path()" in module.read_text(encoding="utf-8")
    ]
    assert makers == ["trajectories/sample/__init__.py"]
