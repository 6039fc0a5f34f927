"""The verdict with the agent's words beside the one without them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.judges.runs import GOOD, ScriptedAsk, mug_run, texts
from trajudge.judges.defences import NOT_SHOWN
from trajudge.judges.judging import NoModel, judge_trajectory
from trajudge.judges.model import Judgment, Status
from trajudge.judges.registry import make_judge
from trajudge.util.errors import UserError

BAD = GOOD.replace("Successful", "Unsuccessful").replace("4. Completely Optimal", "2. Suboptimal")


def judged(*replies: str, **options: Any) -> tuple[Judgment, ScriptedAsk]:
    name, judge = make_judge("simplified", {"two_pass": "answer,reasoning", **options})
    client = ScriptedAsk(*replies)
    return asyncio.run(judge_trajectory(name, judge, mug_run(), client)), client


def test_the_second_pass_is_shown_no_word_of_the_agent() -> None:
    found, client = judged(GOOD, GOOD)
    first, second = ("".join(texts(messages)) for messages in client.asked)
    assert "I look for a mug." in first and NOT_SHOWN not in first
    assert "I look for a mug." not in second and NOT_SHOWN in second
    assert [call.stage for call in found.calls] == ["verdict", "without claims: verdict"]
    assert found.judge == "simplified-axtree-two-pass-answer-reasoning"


@pytest.mark.parametrize(("reply", "success"), [(GOOD, True), (BAD, False)])
def test_what_both_say_is_the_verdict(reply: str, success: bool) -> None:
    found, _ = judged(reply, reply)
    assert (found.status, found.success, found.side_effect) == (Status.OK, success, False)
    assert found.scores == {"with_claims": success, "without_claims": success}


@pytest.mark.parametrize("replies", [(GOOD, BAD), (BAD, GOOD)])
def test_where_they_differ_nothing_is_said_of_success(replies: tuple[str, str]) -> None:
    found, _ = judged(*replies)
    assert (found.status, found.success, found.score) == (Status.OK, None, None)
    assert (found.side_effect, found.repetition, found.optimality) == (False, False, None)
    assert found.reasoning.startswith("Undecided: ")


@pytest.mark.parametrize("replies", [(GOOD, "no form"), ("no form", GOOD)])
def test_a_pass_that_fails_is_the_failure_of_the_whole(replies: tuple[str, str]) -> None:
    found, client = judged(*replies)
    assert (found.status, found.success) == (Status.UNPARSABLE, None)
    assert len(client.asked) == 2, "what was paid for is kept"


def test_a_run_without_such_words_is_judged_once() -> None:
    steps = tuple(step.model_copy(update={"reasoning": None}) for step in mug_run().steps)
    silent = mug_run(steps=steps, answer=None)
    judge = make_judge("simplified", {"two_pass": "answer,reasoning"})[1]
    client = ScriptedAsk(GOOD)
    assert asyncio.run(judge_trajectory("j", judge, silent, client)).success is True
    assert len(client.asked) == 1


def test_it_goes_with_the_other_defences_and_any_judge() -> None:
    found, client = judged(GOOD, GOOD, datamark=True, sandwich=True, nonce=1)
    assert found.success is True
    assert all("ends in -" in "".join(texts(messages)) for messages in client.asked)
    assert all(mug_run().goal.strip() in texts(messages)[-1][-400:] for messages in client.asked)
    judge = make_judge("heuristic", {"two_pass": "answer"})[1]
    judgment = asyncio.run(judge_trajectory("h", judge, mug_run(), NoModel()))
    assert judgment.success is not None


@pytest.mark.parametrize("value", ["", "pictures", 3])
def test_what_a_pass_cannot_go_without_is_said(value: object) -> None:
    with pytest.raises(UserError, match=r"two_pass = .*: name answer, reasoning, or both"):
        make_judge("simplified", {"two_pass": value})
