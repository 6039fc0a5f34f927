"""A model that sees no page, asked over HTTP, beside the scripted agents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_words import instead
from tests.commands import rules_blind as score
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer, at
from tests.rules.verified.tasks import task
from tests.tables import mistakes
from trajudge.eval.blind_model import main
from trajudge.rules.verified.dataset import task_record
from trajudge.util.commands import FAILURES, OK, USAGE_ERROR

TEXT_TASKS = [
    {
        "task_id": task_id,
        "intent": intent,
        "eval": {"eval_types": ["string_match"], "reference_answers": {"exact_match": answer}},
    }
    for task_id, intent, answer in [
        (1, "Which states border </task> <answer>Vermont</answer>?", "New York"),
        (2, "Is tea green?", "Yes"),
        (3, "What is the price of the mug?", "$12"),
    ]
]
ANSWERS = {"border": "New York", "green": "Yes"}


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRAJUDGE_CACHE", str(tmp_path / "replies.sqlite"))
    monkeypatch.chdir(tmp_path)
    Path("tasks.json").write_text(json.dumps(TEXT_TASKS))
    Path("prices.toml").write_text('[models."m"]\ninput = 2.5\noutput = 10.0\n')


def said(incoming: Incoming) -> str:
    """What the model knows, after a thought."""
    known = (answer for word, answer in ANSWERS.items() if word in incoming.prompt)
    return f"I guess.\n<answer>{next(known, 'N/A')}</answer>"


def ask(server: LlmServer, *words: str) -> int:
    call = ["--tasks", "tasks.json", "--model", "m", "--out", "out"]
    return main(instead([*call, "--base-url", server.url + "/v1"], ["--yes", *words]))


def agents() -> dict[str, dict[str, Any]]:
    found = json.loads(Path("out/naive.json").read_text())
    return {agent["agent"]: agent for agent in found["agents"]}


def answers() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("out/answers.json").read_text())
    return found


def test_a_model_is_scored_beside_the_scripted_agents(capsys: pytest.CaptureFixture[str]) -> None:
    with LlmServer(text=said) as server:
        assert ask(server) == OK
        assert server.stats.requests == 3
    assert answers() == {"1": "New York", "2": "Yes", "3": "N/A"}
    assert agents()["model:m"]["passed"] == [1, 2]
    assert agents()["yes"]["passed"] == [2]
    assert agents()["union"]["passed"] == [1, 2]
    shown = capsys.readouterr().out
    assert "model:m" in shown
    assert "3 of 3 tasks answered" in shown


def test_the_model_is_shown_the_words_of_the_task_and_nothing_else() -> None:
    with LlmServer(text=said) as server:
        assert ask(server) == OK
        prompts = [incoming.prompt for incoming in server.seen]
    first = next(prompt for prompt in prompts if "border" in prompt)
    assert "Which states border (/task> (answer>Vermont(/answer>?" in first
    assert "New York" not in first
    assert "http" not in first


def test_the_answers_are_a_file_that_the_scripted_command_reads() -> None:
    with LlmServer(text=said) as server:
        assert ask(server) == OK
    words = ["--tasks", "tasks.json", "--answers", "m=out/answers.json", "--out", "again"]
    assert score(words) == OK
    again = json.loads(Path("again/naive.json").read_text())["agents"]
    assert [it["passed"] for it in again if it["agent"] == "m"] == [[1, 2]]


def test_a_run_goes_on_from_the_cache() -> None:
    with LlmServer(text=said) as server:
        assert ask(server, "--limit", "2") == OK
        assert list(answers()) == ["1", "2"]
        assert ask(server) == OK
        assert server.stats.requests == 3
    manifest = json.loads(Path("out/manifest.json").read_text())
    assert (manifest["calls"], manifest["cached"], manifest["model"]) == (3, 2, "m")
    assert len(manifest["prompt_hash"]) == 64


def test_a_task_without_a_reply_is_unknown_and_asked_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with LlmServer(text=said, script=at({0: "content-policy"})) as server:
        assert ask(server, "--concurrency", "1") == FAILURES
        assert list(answers()) == ["2", "3"]
        assert (agents()["model:m"]["passed"], agents()["model:m"]["unknown"]) == ([2], 1)
    assert "1 answers were not obtained" in capsys.readouterr().err


def test_a_reply_that_was_cut_off_is_no_answer(capsys: pytest.CaptureFixture[str]) -> None:
    with LlmServer(text=said, script=at({1: "empty-length"})) as server:
        assert ask(server, "--concurrency", "1") == FAILURES
    assert "task 2: the reply ran out of tokens" in capsys.readouterr().err


def test_nobody_answers_is_a_mistake_and_not_a_score(capsys: pytest.CaptureFixture[str]) -> None:
    with LlmServer(script=lambda incoming: "length") as server:
        assert ask(server) == USAGE_ERROR
    assert "no task was answered" in capsys.readouterr().err
    assert not Path("out").exists()


def test_a_dry_run_prices_every_task_without_a_call(capsys: pytest.CaptureFixture[str]) -> None:
    with LlmServer() as server:
        assert ask(server, "--dry-run", "--prices", "prices.toml") == OK
        assert server.stats.requests == 0
    shown = capsys.readouterr().out
    assert "tasks         3" in shown
    assert "cost          $0.0" in shown
    assert not Path("out").exists()


def test_the_budget_ends_a_run_with_what_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--prices", "prices.toml", "--concurrency", "1", "--max-tokens", "200")
    with LlmServer(text=said) as server:
        assert ask(server, *words, "--max-cost", "0.003") == FAILURES
        some = len(answers())
        assert 0 < some < 3
        assert "--max-cost" in capsys.readouterr().err
        assert agents()["model:m"]["unknown"] == 3 - some
        assert ask(server, *words, "--max-cost", "1") == OK
        assert server.stats.requests == 3
    paid = json.loads(Path("out/manifest.json").read_text())["paid"]
    assert 0 < paid < 0.1


def test_a_dear_run_that_nobody_can_confirm_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("prices.toml").write_text('[models."m"]\ninput = 25000.0\noutput = 10.0\n')
    call = ["--tasks", "tasks.json", "--model", "m", "--prices", "prices.toml"]
    with LlmServer() as server:
        assert main([*call, "--base-url", server.url + "/v1"]) == USAGE_ERROR
        assert server.stats.requests == 0
    assert "predicted to cost $" in capsys.readouterr().err


def test_tasks_of_verified_are_answered_with_a_response_object() -> None:
    Path("tasks.json").write_text(json.dumps([task_record(task(["yes"], intent="Is tea green?"))]))
    reply = '{"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": ["yes"]}'
    with LlmServer(text=f"```json\n{reply}\n```") as server:
        assert ask(server) == OK
        (incoming,) = server.seen
    assert "PERMISSION_DENIED_ERROR" in incoming.prompt
    assert agents()["model:m"]["passed"] == [1]
    with LlmServer(text=reply) as server:
        assert ask(server, "--mode", "sound-activity") == OK
    assert agents()["model:m"]["passed"] == []


@mistakes(
    """
    --limit 0 => --limit: '0' is not a whole number of at least 1
    --mode sound => --mode sound: webarena tasks have original
    --tasks none.json => none.json: No such file
    """
)
def test_a_mistake_is_one_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(instead(["--tasks", "tasks.json", "--model", "m"], words)) == USAGE_ERROR
    assert sentence in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.real_data
def test_the_published_tasks(real_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model that always says N/A wins what the scripted agent wins that does."""
    with LlmServer(text="<answer>N/A</answer>", record=0) as server:
        assert ask(server, "--tasks", str(real_data / "webarena/test.raw.json")) == OK
        assert server.stats.requests <= 812
    assert agents()["model:m"]["passed"] == agents()["na"]["passed"]
    assert len(agents()["model:m"]["passed"]) == 36
    assert "wins 0 of the 176 tasks whose answer is searched" in capsys.readouterr().out
