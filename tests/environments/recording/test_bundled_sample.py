"""The bundled sample, recorded once and kept, is what the applications still give."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trajudge.annotations import store as annotation_store
from trajudge.environments.agents.script import ORACLE
from trajudge.environments.apps import load_app
from trajudge.environments.checks.integrity import check
from trajudge.environments.checks.shortest import shortest
from trajudge.environments.checks.walk import Walk
from trajudge.environments.kit.layout import address
from trajudge.environments.model.case import Case, read_cases
from trajudge.environments.serving.run import open_run
from trajudge.environments.specifications.verifying_again import verified_again
from trajudge.environments.verify import expected, verify
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.trajectories.sample import sample_path

CASES = read_cases(sample_path() / "cases.jsonl")


@pytest.fixture(scope="module")
def facts() -> dict[str, dict[str, Any]]:
    """What was recorded of the oracle, by task."""
    lines = (sample_path() / "facts.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    return {e["key"]["task_id"]: e for e in entries if e["key"]["agent"] == ORACLE}


@pytest.fixture(scope="module")
def runs() -> dict[str, Trajectory]:
    read = [entry for entry in store.read(sample_path()) if isinstance(entry, Trajectory)]
    return {run.raw_task_id: run for run in read if run.key.agent == ORACLE}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.config.app)
def test_a_case_has_the_difficulty_that_it_was_recorded_with(case: Case) -> None:
    found = check(load_app(case.config.app), case.config)
    assert isinstance(found, Case)
    assert found.model_copy(update={"goal": case.goal, "fewest": case.fewest}) == case
    assert shortest(case).actions == case.fewest


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.config.app)
def test_the_oracle_walks_as_it_was_recorded(
    case: Case, facts: dict[str, dict[str, Any]], runs: dict[str, Trajectory]
) -> None:
    recorded, wanted = runs[case.id], facts[case.id]
    run = open_run(case.config, b"", f"{ORACLE} 0", case.goal)
    run.key = bytes.fromhex(wanted["code_key"])
    walk = Walk(run.site)
    walk.open(run.site.ui.start, {})
    for step in run.scenario.plan(run.bound):
        walk.do(step)
    seen = {(step.observation.url or "").removeprefix(run.origin) for step in recorded.steps}
    assert {address(visit.name, visit.args) for visit in walk.visits} <= seen
    evidence = run.evidence(recorded.answer, shortest=case.fewest or 0)
    assert [one for fact in wanted["answers"] for one in fact["expected"]] == list(
        expected(evidence)
    )
    found = verify(evidence).facts
    for name in ("predicates", "answers", "changes"):
        assert found[name] == wanted[name]
    run.state.close()


def test_every_run_has_the_labels_that_its_facts_give_today() -> None:
    labels = {one.key: one for one in annotation_store.load(sample_path() / "labels.jsonl")}
    lines = (sample_path() / "facts.jsonl").read_text().splitlines()
    facts = {TrajectoryKey.model_validate(one["key"]): one for one in map(json.loads, lines)}
    runs = [entry for entry in store.read(sample_path()) if isinstance(entry, Trajectory)]
    assert len(runs) == len(labels) == 130
    for run in runs:
        actions = [step.action for step in run.steps if step.action]
        found = verified_again(facts[run.key], run.goal, run.answer, actions).labels
        kept = labels[run.key]
        assert (found.success, found.side_effect) == (kept.success, kept.side_effect), run.key
