"""Replies of a stage: whole, or a failure that names it. Works at once: all come to their end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from trajudge.judges.adapters.errors import RateLimited, Refused
from trajudge.judges.engine.budget import BudgetSpent
from trajudge.judges.model import Reply
from trajudge.judges.replies import (
    ParseFailure,
    ReplyParseError,
    check_reply,
    error_context,
    gather_bounded,
    nonempty_text,
    parse_complete_reply,
    parse_reply,
)


def test_a_text_is_taken_without_its_thinking() -> None:
    assert (
        parse_complete_reply(Reply(text="<think>hm</think> A cart. "), nonempty_text) == "A cart."
    )


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(text="A cart with", finish="length"), "ran out of output tokens"),
        (Reply(text=" \n"), "empty"),
        (Reply(text="<think>and so on"), "empty"),
    ],
)
def test_half_a_text_and_none_are_failures(reply: Reply, said: str) -> None:
    with pytest.raises(ReplyParseError, match=said) as failure:
        parse_complete_reply(reply, nonempty_text)
    assert failure.value.reply is reply


def test_a_refusal_is_not_read() -> None:
    with pytest.raises(Refused):
        parse_reply(Reply(text="A cart.", finish="refused"), nonempty_text)


@pytest.mark.parametrize(
    "failure",
    [RateLimited("busy"), Refused("no"), ParseFailure("no"), ReplyParseError("no", Reply(text=""))],
)
def test_a_failure_names_its_part_and_keeps_its_kind(failure: Exception) -> None:
    with (
        pytest.raises(type(failure), match=f"^screenshot 3: {failure}$"),
        error_context("screenshot 3"),
    ):
        raise failure


def work(
    result: int | Exception, seconds: float, ended: list[object]
) -> Callable[[], Awaitable[int]]:
    async def do() -> int:
        await asyncio.sleep(seconds)
        ended.append(result)
        if isinstance(result, Exception):
            raise result
        return result

    return do


def test_results_come_in_the_order_of_the_works() -> None:
    ended: list[object] = []
    works = [work(n, 0.03 - n / 100, ended) for n in range(3)]
    assert asyncio.run(gather_bounded(works)) == [0, 1, 2]
    assert ended == [2, 1, 0]


def test_the_first_failure_in_order_is_raised_after_all_have_ended() -> None:
    ended: list[object] = []
    slow, fast = RateLimited("slow"), Refused("fast")
    with pytest.raises(RateLimited, match="slow"):
        asyncio.run(
            gather_bounded([work(slow, 0.02, ended), work(fast, 0, ended), work(1, 0.03, ended)])
        )
    assert ended == [fast, slow, 1]


def test_what_ends_the_run_goes_before_the_failure_of_a_call() -> None:
    works = [work(Refused("no"), 0, []), work(BudgetSpent("spent"), 0, [])]
    with pytest.raises(BudgetSpent):
        asyncio.run(gather_bounded(works))


def test_so_many_at_once_and_no_more() -> None:
    now = most = 0

    async def one() -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1

    asyncio.run(gather_bounded([one] * 9, at_once=4))
    assert most == 4
    asyncio.run(gather_bounded([one] * 20))
    assert most == 16


@pytest.mark.parametrize(
    ("text", "thoughts", "finish", "said"),
    [
        ("an answer", "a thought", "stop", ""),
        ("an answer", "a thought", "length", ""),
        ("", "a thought", "length", "ran out of output tokens inside its reasoning"),
        ("<think>a thought", "", "length", "ran out of output tokens inside its reasoning"),
        ("<think>a thought</think>", "", "length", ""),
        ("", "a thought", "stop", "the answer is empty, all of it is in reasoning_content"),
        ("<think>one</think>", "a thought", "stop", "the answer is empty"),
        ("", "", "stop", ""),
    ],
)
def test_a_reply_without_an_answer(text: str, thoughts: str, finish: Any, said: str) -> None:
    reply = Reply(text=text, thoughts=thoughts, finish=finish)
    if said:
        with pytest.raises(ReplyParseError, match=said):
            check_reply(reply)
    else:
        assert check_reply(reply).answer == ("an answer" if text == "an answer" else "")
