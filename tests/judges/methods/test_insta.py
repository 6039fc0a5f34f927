"""The InSTA-style judge: the last pages as text, three scores."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.judges.http_judging import judged_over_http
from tests.judges.runs import StagedAsk, mug_run, seen_run, texts
from tests.llm_server import LlmServer, always, at
from trajudge.judges.methods.insta import Insta, InstaOptions
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.represent import MissingObservation

REPLY = "It searched and bought.\nSuccess: 0.8\nEfficiency: 0.4\nSelf-correction: 1"


def insta(**options: object) -> Insta:
    return Insta(InstaOptions.model_validate(options))


def test_gives_three_scores_and_a_verdict_by_the_threshold(tmp_path: Path) -> None:
    with LlmServer(text=REPLY) as server:
        judgment = judged_over_http(server, insta(), seen_run(), tmp_path)
        strict = judged_over_http(server, insta(threshold=0.9), seen_run(), tmp_path)
        assert server.stats.requests == 1
    assert (judgment.status, judgment.success, judgment.score) == ("ok", True, 0.8)
    assert judgment.scores == {"efficiency": 0.4, "self_correction": 1.0}
    assert judgment.reasoning == "It searched and bought."
    assert (strict.success, strict.score) == (False, 0.8)


@pytest.mark.parametrize(
    "reply",
    [
        "It bought it.",
        "Success: 0.8\nEfficiency: 0.4",
        "Success: 1.8\nEfficiency: 0.4\nSelf-correction: 1",
        "Success: 0.8\nSuccess: 0.1\nEfficiency: 0.4\nSelf-correction: 1",
        "Success: yes\nEfficiency: 0.4\nSelf-correction: 1",
    ],
)
def test_a_score_that_is_missing_or_none_is_unparsable(tmp_path: Path, reply: str) -> None:
    with LlmServer(text=reply) as server:
        judgment = judged_over_http(server, insta(), seen_run(), tmp_path)
    assert judgment.status == "unparsable"
    assert judgment.score is None


@pytest.mark.parametrize(
    ("fault", "status"),
    [("refusal", "refused"), ("500", "provider_error"), ("empty-length", "truncated")],
)
def test_trouble_has_its_own_status(tmp_path: Path, fault: str, status: str) -> None:
    with LlmServer(text=REPLY, script=always(fault)) as server:
        judgment = judged_over_http(server, insta(), seen_run(), tmp_path)
    assert judgment.status == status


def test_only_the_last_pages_are_shown() -> None:
    ask = StagedAsk(verdict=REPLY)
    asyncio.run(insta(observations=2)(seen_run(5), ask))
    shown = texts(ask.asked[0].messages)[-1]
    assert shown.count("<page step=") == 2
    assert '<page step="5">' in shown
    assert '<page step="3">' not in shown


def test_a_page_that_is_too_long_is_cut_and_a_refused_prompt_gets_shorter(tmp_path: Path) -> None:
    run = _with_long_pages(seen_run(4))
    with LlmServer(text=REPLY, script=at({0: "overflow"})) as server:
        judgment = judged_over_http(server, insta(max_prompt_tokens=6_000), run, tmp_path)
        sizes = [len(incoming.prompt) for incoming in server.seen]
    assert judgment.status == "ok"
    assert judgment.calls[-1].rung == "cut"
    assert sizes[1] < sizes[0] < 40_000


def _with_long_pages(run: Trajectory) -> Trajectory:
    steps = [
        step.model_copy(
            update={
                "observation": step.observation.model_copy(
                    update={"axtree": "[1] button 'x'\n" * 4_000, "axtree_pruned": None}
                )
            }
        )
        for step in run.steps
    ]
    return run.model_copy(update={"steps": tuple(steps)})


def test_a_run_without_a_page_is_skipped() -> None:
    with pytest.raises(MissingObservation, match="no step has an accessibility tree"):
        asyncio.run(insta()(mug_run(steps=()), StagedAsk()))
