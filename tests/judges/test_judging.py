"""Whatever happens to a judgment becomes a status of its own."""

from __future__ import annotations

import asyncio

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
from trajudge.judges.judging import judge_trajectory
from trajudge.judges.methods.simplified import Simplified, SimplifiedOptions
from trajudge.judges.model import Judgment, Model, Reply, Skipped, Status, Verdict
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
