"""Replies of a judge's stages: parsed, or turned into the failure that says what is wrong.

Judges that make several calls use these functions, so that a failure in the middle has its own
status and names the stage that failed; a partial result never passes for a complete one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from trajudge.judges.adapters.errors import CallFailed, Refused
from trajudge.judges.model import Reply
from trajudge.judges.replies.parsing import ParseFailure, without_thinking

T = TypeVar("T")

# Calls of one judgment that wait at once, each with its prompt and pictures in memory.
AT_ONCE = 16


class ReplyParseError(ParseFailure):
    """A ``reply`` without what the stage asked for."""

    def __init__(self, message: str, reply: Reply) -> None:
        super().__init__(message)
        self.reply = reply


def parse_reply(reply: Reply, parse: Callable[[str], T]) -> T:
    """Return what ``parse`` finds in a reply. Raises Refused, and ReplyParseError if ``parse``
    raises ParseFailure."""
    if reply.finish == "refused":
        raise Refused("the model declined to answer")
    try:
        return parse(reply.text)
    except ParseFailure as failure:
        raise ReplyParseError(str(failure), reply) from failure


def parse_complete_reply(reply: Reply, parse: Callable[[str], T]) -> T:
    """Parse a reply of which no part may be missing. Raises ReplyParseError also for one that was
    cut off."""
    if reply.finish == "length":
        raise ReplyParseError("the reply ran out of output tokens", reply)
    return parse_reply(reply, parse)


def nonempty_text(text: str) -> str:
    """Return a reply that is plain text, without its thinking. Raises ParseFailure if it is
    empty."""
    answer = without_thinking(text).strip()
    if not answer:
        raise ParseFailure("the reply is empty")
    return answer


@contextmanager
def error_context(part: str) -> Iterator[None]:
    """Prefix the message of failures inside with ``part`` ("screenshot 3")."""
    try:
        yield
    except CallFailed as failure:
        raise type(failure)(f"{part}: {failure}") from failure
    except ReplyParseError as failure:
        raise ReplyParseError(f"{part}: {failure}", failure.reply) from failure
    except ParseFailure as failure:
        raise ParseFailure(f"{part}: {failure}") from failure


async def gather_bounded(
    works: Sequence[Callable[[], Awaitable[T]]], at_once: int = AT_ONCE
) -> list[T]:
    """Run all works, at most ``at_once`` at a time, and return their results in order.

    If one fails, the others still finish, so that what was paid for is kept and the ledger is the
    same every time; then the first failure in the order of the works is raised. An error that ends
    the run as a whole is raised before failures of single calls.
    """
    turn = asyncio.Semaphore(at_once)

    async def bounded(work: Callable[[], Awaitable[T]]) -> T:
        async with turn:
            return await work()

    ended = await asyncio.gather(*map(bounded, works), return_exceptions=True)
    failures = [result for result in ended if isinstance(result, BaseException)]
    failures.sort(key=lambda failure: isinstance(failure, CallFailed | ParseFailure))
    if failures:
        raise failures[0]
    return [result for result in ended if not isinstance(result, BaseException)]
