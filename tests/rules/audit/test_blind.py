"""Agents that look at nothing: what they say, what they win, and the published Table 13."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.commands import rules_blind as main
from tests.rules.files import tasks_file
from tests.tables import mistakes, one_sentence
from trajudge.rules.audit.blind import (
    PUBLISHED_AGENTS,
    RESPONSE_AGENTS,
    TEXT_AGENTS,
    BlindAgent,
    blind_scores,
    knowledge,
    numbers_of,
    quoted,
    recorded,
    union,
)
from trajudge.rules.audit.suites import suite
from trajudge.rules.verdict import Assertion, Outcome, Verdict, verdict_of
from trajudge.rules.webarena import Task, WebArenaEvaluator, load_tasks
from trajudge.rules.webarena.tasks import DIALECTS
from trajudge.util.errors import UserError

SUITE = suite(DIALECTS["webarena"])

RECORDS = [
    {
        "task_id": index,
        "intent": intent,
        "eval": {"eval_types": ["string_match"], "reference_answers": references},
    }
    for index, (intent, references) in enumerate(
        [
            ("Is tea green?", {"must_include": ["Yes"]}),
            ("Find a purple cow", {"fuzzy_match": "N/A"}),
            ("How much in May 2023?", {"must_include": ["0"]}),
            ("How many on 3/2?", {"must_include": ["2"]}),
            ("Which city?", {"exact_match": "Pittsburgh"}),
        ]
    )
]
TASKS = msgspec.convert(RECORDS, tuple[Task, ...])


def won(agent: BlindAgent, *, of: tuple[Task, ...] = TASKS) -> tuple[int | str, ...]:
    return blind_scores(of, WebArenaEvaluator(), [agent], SUITE.idle_trace)[0].passed


def named(name: str, agents: tuple[BlindAgent, ...] = TEXT_AGENTS) -> BlindAgent:
    return next(agent for agent in agents if agent.name == name)


@pytest.mark.parametrize(
    ("agent", "tasks"),
    [
        ("empty", ()),
        ("na", (1,)),
        ("zero", (2,)),
        ("yes", (0,)),
        ("yes_no", (0,)),
        ("no", ()),
        ("echo_intent", ()),
        ("numbers_only", (3,)),
        ("long_list", (0, 2, 3)),
    ],
)
def test_what_each_agent_wins(agent: str, tasks: tuple[int, ...]) -> None:
    assert won(named(agent)) == tasks


def test_the_union_counts_a_task_once_and_an_unknown_is_no_success() -> None:
    made = blind_scores(TASKS, WebArenaEvaluator(), TEXT_AGENTS, SUITE.idle_trace)
    assert union(made).passed == (0, 1, 2, 3)
    assert union(made).rate == 4 / 5
    zero = next(score for score in made if score.agent == "zero")
    assert (zero.rate, zero.unknown) == (1 / 5, 1)
    assert union([]).rate == 0.0


def test_a_model_without_a_browser_sees_the_intent_alone() -> None:
    asked: list[str] = []

    def answer(intent: str) -> str:
        asked.append(intent)
        return "Pittsburgh"

    assert won(knowledge("model", answer)) == (4,)
    assert asked == [task.intent for task in TASKS]


def test_recorded_answers_must_cover_the_tasks() -> None:
    answers = {str(index): None for index in range(4)}
    assert won(recorded("model", {**answers, "4": "pittsburgh"})) == (4,)
    with pytest.raises(UserError, match="the answers of model hold none for task 4"):
        won(recorded("model", answers))


class Structured:
    """Another evaluator: passes a response object whose data is one true-ish value."""

    def evaluate(self, task: Task, answer: object, trace: object) -> Verdict:
        assert trace is None
        data = answer["retrieved_data"] if isinstance(answer, dict) else None
        outcome = Outcome.PASS if data == ["a", "b"] else Outcome.FAIL
        return verdict_of([Assertion(name="answer.data", outcome=outcome)])


def test_any_evaluator_of_any_tasks_can_be_scored() -> None:
    task = msgspec.structs.replace(TASKS[0], intent='Return "a" and "b", as "a"')
    made = blind_scores([task], Structured(), RESPONSE_AGENTS)
    assert {score.agent for score in made if score.passed} == {
        "quoted_words",
        "start_page:quoted_words",
    }


@pytest.mark.parametrize("agents", [TEXT_AGENTS, RESPONSE_AGENTS])
def test_every_agent_has_its_own_name_and_says_json(agents: tuple[BlindAgent, ...]) -> None:
    assert len({agent.name for agent in agents}) == len(agents)
    for agent in agents:
        msgspec.json.encode(agent.answer(TASKS[0]))


@given(st.text())
def test_every_agent_answers_every_intent(intent: str) -> None:
    task = msgspec.structs.replace(TASKS[0], intent=intent)
    for agent in (*TEXT_AGENTS, *RESPONSE_AGENTS):
        agent.answer(task)


def test_numbers_and_quoted_words_of_an_intent() -> None:
    assert numbers_of("a11y on 3/05") == ["11", "3", "05"]
    assert numbers_of("how many?") == ["0"]
    assert quoted('keys "name" and "state", then "name"') == ["name", "state"]


def run(tmp_path: Path, *words: str, content: Any = RECORDS) -> int:
    return main([*tasks_file(tmp_path, content), *words])


def test_the_command_shows_a_table_and_writes_what_was_won(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps({str(index): "Pittsburgh" for index in range(5)}))
    out = tmp_path / "new" / "out"
    assert run(tmp_path, "--answers", f"gpt={answers}", "--out", str(out)) == 0
    shown = capsys.readouterr().out
    assert "tasks.json, original rules: agents that never see a page pass 5 of 5 tasks" in shown
    assert "union" in shown
    written = json.loads((out / "naive.json").read_text())
    assert (written["dialect"], written["mode"]) == ("webarena", "original")
    assert written["agents"][-2] == {
        "agent": "gpt",
        "tasks": 5,
        "passed": [4],
        "unknown": 1,
        "rate": 0.2,
    }
    rows = list(csv.reader((out / "naive.csv").open()))
    assert rows[0] == ["agent", "task_id"]
    assert ["gpt", "4"] in rows


@mistakes(
    """
    --answers gpt => write NAME=FILE
    --answers gpt=/nowhere.json => name a readable file
    --mode sound => webarena tasks have original
    --out /dev/null/x => name a folder
    """
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    assert run(tmp_path, *words) == 2
    one_sentence(capsys, sentence)


@pytest.mark.real_data
def test_table_13_on_the_published_tasks(real_data: Path) -> None:
    tasks = load_tasks(real_data / "webarena" / "test.raw.json")
    made = blind_scores(tasks, WebArenaEvaluator(), PUBLISHED_AGENTS, SUITE.idle_trace)
    assert {score.agent: len(score.passed) for score in made} == {
        "empty": 0,
        "na": 36,
        "yes_no": 5,
        "zero": 15,
        "yes": 5,
        "no": 0,
        "echo_intent": 0,
        "numbers_only": 11,
    }
    # The paper's overall 13.8 % adds the rows, 40 of a model with knowledge among them.
    assert round(100 * (sum(len(score.passed) for score in made) + 40) / 812, 1) == 13.8
    assert len(union(made).passed) == 60
