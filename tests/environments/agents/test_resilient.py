"""Resilient agents differ in nothing but what they do where a page fails."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.environments.cases import job, sound
from trajudge.environments.agents.policy import Policy
from trajudge.environments.agents.resilient import COURSES, Resilient
from trajudge.environments.agents.script import RESILIENT, Behaviour, Say, is_scripted
from trajudge.environments.agents.script import resilience_of as ways
from trajudge.environments.chromium import AgentObservation, Element
from trajudge.environments.model.plan import PlanStep
from trajudge.environments.recording.episode import play_offline
from trajudge.environments.recording.fault_proxy import horizon_of
from trajudge.environments.serving.run import ServedRun, open_run
from trajudge.trajectories.model import Observation

CASE = sound("buy")
EVERY = next(name for name in RESILIENT if ways(name) == "every")
NONE = next(name for name in RESILIENT if ways(name) == "none")


def actions(agent: str, attempt: int = 0) -> list[str | None]:
    recorded = play_offline(
        job(CASE, agent, attempt), lambda run: Resilient(run, agent, attempt, 3), b"secret"
    )
    # The last message holds a code that belongs to the run.
    return [step.action for step in recorded.trajectory.steps[:-2]]


def test_without_faults_all_do_the_same() -> None:
    assert len({tuple(actions(agent)) for agent in RESILIENT}) == 1
    assert len({tuple(actions(EVERY, attempt)) for attempt in range(6)}) > 1


@pytest.mark.slow
def test_courses_are_drawn_as_the_table_says() -> None:
    assert sum(COURSES.values()) == pytest.approx(1)
    run = open_run(CASE.config, b"secret")
    drawn = Counter(Resilient(run, NONE, n, 0).scripted.behaviour for n in range(300))
    right = drawn[Behaviour.RECOVERS] + drawn[Behaviour.DETOURS]
    assert 0.6 < right / 300 < 0.9
    assert drawn[Behaviour.NEAR_MISS]


def test_the_words_for_the_ways_are_five() -> None:
    assert sorted(map(ways, RESILIENT)) == ["dismiss", "every", "none", "reload", "wait"]
    assert all(map(is_scripted, RESILIENT))
    assert not is_scripted("gpt-4o")
    assert ways("scripted-b") == ""


@pytest.fixture
def run() -> ServedRun:
    return open_run(CASE.config, b"secret")


def failed(run: ServedRun, path: str = "/orders") -> AgentObservation:
    seen = Observation(url=run.origin + path, axtree="RootWebArea '503'")
    return AgentObservation(seen, [], "503 Service Unavailable")


@pytest.mark.parametrize(
    ("word", "firsts"),
    [("every", ["noop", "goto"]), ("reload", ["goto"]), ("wait", ["noop"])],
)
def test_a_page_that_is_none_of_the_sites(run: ServedRun, word: str, firsts: list[str]) -> None:
    name = next(name for name in RESILIENT if ways(name) == word)
    agent = Resilient(run, name, 0, 3)
    for first in firsts:
        assert agent.act(failed(run))[0].startswith(first)


@pytest.mark.parametrize(("name", "reloads"), [(EVERY, 3), (NONE, 0)])
def test_nobody_reloads_without_end(run: ServedRun, name: str, reloads: int) -> None:
    agent = Resilient(run, name, 0, 3)
    texts: list[str] = []
    while not texts or not texts[-1].startswith("send_msg_to_user"):
        texts.append(agent.act(failed(run))[0])
        assert len(texts) < 30
    assert sum(text.startswith("goto") for text in texts) == reloads


def test_a_strange_dialog_is_closed_by_those_who_dismiss(run: ServedRun) -> None:
    close = Element("7", "button", "No, thanks", in_dialog=True)
    seen = Observation(url=run.start_url, axtree="RootWebArea 'x'")
    view = AgentObservation(seen, [close], f"Home - {run.app.title}")
    assert Resilient(run, EVERY, 0, 3).act(view)[0] == "click('7')"
    assert Resilient(run, NONE, 0, 3).act(view)[0] != "click('7')"


def test_a_page_loaded_afresh_is_filled_in_again(run: ServedRun) -> None:
    """What was entered is gone; a form whose answer never came is sent again."""
    steps = [PlanStep("enter", "Words", "x", "a"), PlanStep("press", "Send", "", "b")]
    policy = Policy([*steps, Say(Behaviour.ORACLE)], run.words)
    box, send = Element("1", "textbox", "Words"), Element("2", "button", "Send")
    view = AgentObservation(Observation(url=run.start_url, axtree=""), [box, send], "t")
    seen = [policy.next(view), policy.next(view)]
    policy.begin_page_again(undone=True)
    assert [policy.next(view), policy.next(view)] == seen
    assert isinstance(policy.next(view), Say)


def test_the_horizon_is_what_the_oracle_loads() -> None:
    assert horizon_of(CASE.config) == horizon_of(CASE.config)
    assert 2 <= horizon_of(CASE.config) <= CASE.shortest
