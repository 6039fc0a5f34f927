"""``--explain`` over real HTTP: the openai adapter and a model server on loopback."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.commands import score as main
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer, always, at
from trajudge.eval.analysis.explain import KINDS, UNCLASSIFIED
from trajudge.eval.judge import main as judge_main

KEY = "sk-not-to-be-shown"


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty runs of the bundled sample, judged once by a judge without a model."""
    folder = tmp_path_factory.mktemp("judged") / "run"
    words = ["--data", "sample", "--judge", "heuristic", "--limit", "40"]
    assert judge_main([*words, "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def run(judged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that run, an empty cache, and a key for the model that explains."""
    monkeypatch.setenv("TRAJUDGE_CACHE", str(tmp_path / "replies.sqlite"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    return shutil.copytree(judged, tmp_path / "run")


def kind_of(incoming: Incoming) -> str:
    """A false positive is misleading reasoning, a false negative a missed instruction."""
    accepted = '<judge verdict="successful">' in incoming.prompt
    kind = "misleading_reasoning" if accepted else "missed_instruction"
    return f"<reasoning>Because of case {incoming.ordinal}.</reasoning>\n<kind>{kind}</kind>"


def explained(run: Path, server: LlmServer, *words: str) -> list[dict[str, Any]]:
    """What ``--mismatches`` holds after the command, which must succeed."""
    file = run.parent / "wrong.jsonl"
    model = ["--explain", "gpt-4o", "--adapter", "openai", "--base-url", server.url]
    off = ["--baselines", "off"]
    assert main([str(run), "--mismatches", str(file), *off, *model, *words]) == 0
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_the_model_is_asked_once_a_case_and_what_it_says_is_written(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with LlmServer(text=kind_of) as server:
        cases = explained(run, server)
        assert server.stats.requests == len(cases) > 0
        expected = {
            "false positive": KINDS["misleading_reasoning"],
            "false negative": KINDS["missed_instruction"],
        }
        for case in cases:
            assert case["explanation"]["kind"] == expected[case["error"]]
            assert case["explanation"]["model"] == "gpt-4o"
            assert case["explanation"]["reason"].startswith("Because of case")
        shown = capsys.readouterr()
        assert "Wrong verdicts by kind" in shown.out
        assert KEY not in shown.out + shown.err

        request = server.seen[0]
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.payload["model"] == "gpt-4o"
        assert all(
            any(case["goal"].strip() in incoming.prompt for incoming in server.seen)
            for case in cases
        )

        assert explained(run, server) == cases
        assert server.stats.requests == len(cases)  # the second time from the cache


def test_trouble_on_the_way_is_overcome(run: Path) -> None:
    with LlmServer(text=kind_of, script=at({0: "429", 1: "500", 2: "drop"})) as server:
        cases = explained(run, server)
        assert server.stats.requests == len(cases) + 3
        assert {case["explanation"]["kind"] for case in cases} <= set(KINDS.values())


@pytest.mark.parametrize("fault", ["content-filter", "content-policy", "overflow", "refusal"])
def test_a_case_that_the_model_does_not_answer_is_left_open_and_the_others_are_sorted(
    run: Path, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with LlmServer(text=kind_of, script=at({0: fault})) as server:
        cases = explained(run, server)
    kinds = Counter(case["explanation"]["kind"] for case in cases)
    assert kinds[None] == 1
    assert kinds.total() == len(cases) > 1
    (left,) = [case for case in cases if case["explanation"]["kind"] is None]
    assert left["explanation"]["reason"]
    shown = capsys.readouterr()
    assert all(word in shown.out for word in UNCLASSIFIED.split())
    assert f"warning: 1 of {len(cases)} wrong verdicts not sorted, for one: " in shown.err


def test_a_reply_of_no_known_kind_is_left_open(run: Path) -> None:
    with LlmServer(text="It was <kind>bad luck</kind>.") as server:
        cases = explained(run, server)
    assert {case["explanation"]["kind"] for case in cases} == {None}
    assert all("bad luck" in case["explanation"]["reason"] for case in cases)


def test_a_refused_key_is_one_sentence_and_the_wrong_verdicts_are_kept(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = run.parent / "wrong.jsonl"
    with LlmServer(script=always("401")) as server:
        model = ["--explain", "gpt-4o", "--adapter", "openai", "--base-url", server.url]
        assert main([str(run), "--mismatches", str(file), "--baselines", "off", *model]) == 2
    shown = capsys.readouterr().err
    assert "OPENAI_API_KEY" in shown.splitlines()[-1]
    assert KEY not in shown
    assert all("explanation" in json.loads(line) for line in file.read_text().splitlines())
    assert file.read_text()
