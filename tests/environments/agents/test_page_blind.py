"""Numbers that need no look at a page do not tell which runs succeeded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.environments.agents import page_blind
from tests.environments.cases import job
from trajudge.environments.agents.script import AGENTS
from trajudge.environments.apps import load_app
from trajudge.environments.checks.integrity import check
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import Config

RECORDED = Path(__file__).parent / "page_blind.csv"
MEND = f"record the set anew: python -m tests.environments.agents.page_blind {RECORDED.name}"


@pytest.fixture(scope="module")
def runs() -> list[page_blind.Numbers]:
    return page_blind.read(RECORDED)


def test_the_set_is_of_every_agent_and_every_scenario(runs: list[page_blind.Numbers]) -> None:
    assert {run.agent for run in runs} == set(AGENTS)
    assert len({run.task for run in runs}) >= 100
    assert len(runs) >= 1500


@pytest.mark.slow
def test_a_forest_on_four_numbers_does_little_better_than_chance(
    runs: list[page_blind.Numbers],
) -> None:
    area, low, high = page_blind.auc(runs)
    assert area <= page_blind.GOAL
    assert high - low < 0.08


def test_a_forest_tells_runs_by_their_length_where_it_tells_success(
    runs: list[page_blind.Numbers],
) -> None:
    """The measure sees what it is to see: the longer half a success, and it knows."""
    from sklearn.metrics import roc_auc_score

    middle = sorted(run.steps for run in runs)[len(runs) // 2]
    changed = [run._replace(success=run.steps > middle) for run in runs]
    scores = page_blind.predicted(changed)
    assert roc_auc_score([run.success for run in changed], scores) > 0.99


@pytest.mark.slow
def test_the_agents_still_do_what_was_recorded(runs: list[page_blind.Numbers]) -> None:
    cases: dict[str, Case] = {}
    for run in runs[:: len(runs) // 40]:
        if run.case not in cases:
            app, scenario, *axes = run.case.split(".")
            names = ("instance", "profile", "theme", "ui", "noise", "seed")
            given = {name: int(axis[1:]) for name, axis in zip(names, axes, strict=True)}
            found = check(load_app(app), Config(app=app, scenario=scenario, **given))
            assert isinstance(found, Case), MEND
            cases[run.case] = found
        assert page_blind.numbers(job(cases[run.case], run.agent, run.attempt)) == run, MEND
