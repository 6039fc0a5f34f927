"""Whatever happens to a judgment becomes a status of its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.judges.runs import GOOD, ScriptedAsk, mug_run
from trajudge.judges.adapters.errors import (
    AuthFailed,
    BadRequest,
    CallFailed,
    ContextOverflow,
    RateLimited,
    Refused,
)
from trajudge.judges.judging import ReplayClient, judge_trajectory
from trajudge.judges.methods.simplified import Simplified, SimplifiedOptions
from trajudge.judges.model import (
    REPAIR,
    Call,
    Judgment,
    Model,
    Reply,
    Request,
    Skipped,
    Status,
    Usage,
    Verdict,
)
from trajudge.trajectories.model import Trajectory


def judged(ask: ScriptedAsk, run: Trajectory | None = None, **options: object) -> Judgment:
    judge = Simplified(SimplifiedOptions.model_validate(options))
    return asyncio.run(judge_trajectory("simplified-axtree", judge, run or mug_run(), ask, 2))


def test_a_verdict_and_its_calls() -> None:
    ask = ScriptedAsk(GOOD)
    judgment = judged(ask)
    assert judgment == Judgment(
        key=mug_run().key,
        judge="simplified-axtree",
        sample=2,
        status=Status.OK,
        success=True,
        side_effect=False,
        repetition=False,
        optimality=4,
        reasoning="Step 2 buys the mug.",
        calls=tuple(ask.calls),
    )


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("no verdict", Status.UNPARSABLE),
        ("", Status.UNPARSABLE),
        (Reply(text="<reasoning>it", finish="length"), Status.TRUNCATED),
        (Reply(text=GOOD, finish="refused"), Status.REFUSED),
        (Refused("declined"), Status.REFUSED),
        (RateLimited("too many"), Status.PROVIDER_ERROR),
        (BadRequest("bad"), Status.PROVIDER_ERROR),
        (AuthFailed("no key"), Status.PROVIDER_ERROR),
    ],
)
def test_a_failure_is_a_status_and_never_a_no(
    answer: str | Reply | CallFailed, status: Status
) -> None:
    judgment = judged(ScriptedAsk(answer))
    assert judgment.status is status
    assert judgment.success is None
    assert judgment.detail
    assert len(judgment.calls) == 1


def test_a_verdict_that_ran_out_of_tokens_after_it_was_given_counts() -> None:
    judgment = judged(ScriptedAsk(Reply(text=GOOD + " and so", finish="length")))
    assert (judgment.status, judgment.success) == (Status.OK, True)


def test_overflows_are_counted_as_calls() -> None:
    judgment = judged(ScriptedAsk(*[ContextOverflow("too long")] * 9))
    assert judgment.status is Status.CONTEXT_OVERFLOW
    assert [call.rung for call in judgment.calls][:2] == ["full", "pruned"]


def test_a_missing_observation_is_skipped_without_a_call() -> None:
    judgment = judged(ScriptedAsk(), mug_run(steps=()))
    assert judgment.status is Status.SKIPPED
    assert "no accessibility tree" in judgment.detail
    assert judgment.calls == ()


def test_a_judge_may_skip() -> None:
    async def judge(trajectory: Trajectory, ask: Model) -> Verdict:
        raise Skipped("nothing to see")

    judgment = asyncio.run(judge_trajectory("mine", judge, mug_run(), ScriptedAsk()))
    assert (judgment.status, judgment.detail) == (Status.SKIPPED, "nothing to see")


def test_a_mistake_in_a_judge_is_not_hidden() -> None:
    async def judge(trajectory: Trajectory, ask: Model) -> Verdict:
        raise KeyError("bug")

    with pytest.raises(KeyError):
        asyncio.run(judge_trajectory("mine", judge, mug_run(), ScriptedAsk()))


def test_what_nobody_counted_is_none() -> None:
    """And a prompt is all that went in, from a cache or not."""
    assert set(Usage().model_dump().values()) == {0}
    assert Usage(input=1, cache_read=2, cache_write=4, output=8, reasoning=3).prompt == 7
    assert Reply(text="").seconds == 0.0
    fields: dict[str, Any] = {"stage": "", "request": "", "rung": "", "finish": "", "text": ""}
    call = Call(**fields, usage=None, cost=None)
    assert (call.seconds, call.cached) == (0.0, False)
    key = mug_run().key
    assert Judgment(key=key, judge="j", status=Status.OK).sample == 0
    request = Request(endpoint="e", model="m", messages=())
    assert (request.sample, request.hash) == (0, request.model_copy(update={"sample": 0}).hash)


@pytest.mark.parametrize(
    ("finish", "text", "said"),
    [
        ("context_overflow", "", "the prompt was too long"),
        ("refused", "", "the model declined to answer"),
    ],
)
@pytest.mark.parametrize("detail", ["", "as it was said"])
def test_a_recorded_failure_is_raised_again(finish: str, text: str, said: str, detail: str) -> None:
    fields: dict[str, Any] = {"stage": "verdict", "request": "", "rung": "", "text": text}
    calls = (Call(**fields, finish=finish, usage=None, cost=None),)
    status = Status.PROVIDER_ERROR
    failed = Judgment(key=mug_run().key, judge="j", status=status, detail=detail, calls=calls)
    client = ReplayClient(failed, lambda _: None)
    assert not client.is_complete
    with pytest.raises(CallFailed, match=f"^{detail or said}$"):
        asyncio.run(client([]))
    assert client.is_complete


def test_a_refusal_in_words_is_given_back_as_it_came() -> None:
    fields: dict[str, Any] = {"stage": "verdict", "request": "", "rung": "", "text": "I decline."}
    calls = (
        Call(**fields, finish="refused", usage=None, cost=None),
        Call(**{**fields, "stage": REPAIR}, finish="stop", usage=None, cost=None),
    )
    refused = Judgment(key=mug_run().key, judge="j", status=Status.REFUSED, calls=calls)
    client = ReplayClient(refused, lambda _: None)
    assert asyncio.run(client([])) == Reply(text="I decline.", finish="refused")
    assert client.is_complete, "without the corrective turn"
