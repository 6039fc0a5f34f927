"""WebArena Verified in the auditors' commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import rules_lint as lint
from tests.rules.verified.tasks import answer, navigation, task
from trajudge.rules.audit.blind import blind_scores
from trajudge.rules.audit.suites import suite
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.tasks import load_tasks, task_record
from trajudge.rules.webarena.tasks import DIALECTS, detected

SUITE = suite(DIALECTS["verified"])


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.json"
    record = task_record(task(["yes"]))
    for check in record["eval"]:
        check["expected"].pop("unset", None)
    path.write_text(json.dumps([record]))
    return path


def test_the_dialect_is_recognised_and_its_tasks_are_linted(
    tasks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert detected(tasks).name == "verified"
    assert lint(["--tasks", str(tasks)]) == 0
    assert "no_evidence" in capsys.readouterr().out


@pytest.mark.parametrize("mode", SUITE.modes)
def test_an_agent_that_looks_at_nothing_wins_what_asks_for_no_evidence(mode: str) -> None:
    what = task(["yes"])
    verdict = SUITE.evaluator(mode).evaluate(what, answer(["yes"]), SUITE.idle_trace(what))
    assert verdict.outcome is (Outcome.FAIL if mode == "sound-activity" else Outcome.PASS)


# The agents that win anything, by what they answer.
WINNERS = (
    *("retrieve:ACTION_NOT_ALLOWED_ERROR", "retrieve:PERMISSION_DENIED_ERROR"),
    *("retrieve:NOT_FOUND_ERROR", "mutate:ACTION_NOT_ALLOWED_ERROR", "navigate:SUCCESS"),
    *("zero", "yes", "no", "numbers_only", "quoted_words"),
)


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.parametrize(
    ("mode", "idle", "opening"), [("sound-activity", 0, 69), ("sound", 59, 69)]
)
def test_what_naive_agents_win(real_data: Path, mode: str, idle: int, opening: int) -> None:
    """Evidence of a visit is no evidence of work: opening the start page is a visit."""
    tasks = load_tasks(real_data / "webarena" / "webarena-verified.json")
    by_name = {agent.name.removeprefix("status:"): agent for agent in SUITE.agents}

    def won(prefix: str) -> int:
        found = blind_scores(
            tasks,
            SUITE.evaluator(mode),
            [by_name[f"{prefix}{name}"] for name in WINNERS],
            SUITE.idle_trace,
            start_trace_of=SUITE.start_trace,
        )
        return len({task_id for score in found for task_id in score.passed})

    assert (won(""), won("start_page:")) == (idle, opening)


@pytest.mark.parametrize("mode", SUITE.modes)
def test_an_agent_that_opens_the_start_page_wins_what_asks_for_no_more(mode: str) -> None:
    start = navigation({"expected": {"url": "__SHOPPING__"}}, start_urls=["__SHOPPING__"])
    cart = navigation({"expected": {"url": "__SHOPPING__/cart"}}, start_urls=["__SHOPPING__"])
    agents = [agent for agent in SUITE.agents if agent.name.endswith("navigate:SUCCESS")]
    scores = blind_scores(
        [start, cart],
        SUITE.evaluator(mode),
        agents,
        SUITE.idle_trace,
        start_trace_of=SUITE.start_trace,
    )
    passed = {score.agent: len(score.passed) for score in scores}
    assert passed == {"status:navigate:SUCCESS": 0, "start_page:navigate:SUCCESS": 1}
