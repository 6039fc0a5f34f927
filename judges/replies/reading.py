"""From replies to what a stage of a judge needs, or to the failure that says what is wrong.

Judges that make several calls use these so that a failure in the middle has its own status and
names what failed: never a partial result that passes for the whole.
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


class Unread(ParseFailure):
    """A reply that holds not what was asked for; ``reply`` is it."""

    def __init__(self, message: str, reply: Reply) -> None:
        super().__init__(message)
        self.reply = reply


def read(reply: Reply, parse: Callable[[str], T]) -> T:
    """What ``parse`` finds in a reply. Raises Refused, and Unread where it raises ParseFailure."""
    if reply.finish == "refused":
        raise Refused("the model declined to answer")
    try:
        return parse(reply.text)
    except ParseFailure as failure:
        raise Unread(str(failure), reply) from failure


def read_whole(reply: Reply, parse: Callable[[str], T]) -> T:
    """The same for a text of which no part may be missing: one that was cut off is Unread too."""
    if reply.finish == "length":
        raise Unread("the reply ran out of output tokens", reply)
    return read(reply, parse)


def some_text(text: str) -> str:
    """A reply that is a text by itself, its thinking apart. Raises ParseFailure if it is empty."""
    found = without_thinking(text).strip()
    if not found:
        raise ParseFailure("the reply is empty")
    return found


@contextmanager
def about(part: str) -> Iterator[None]:
    """Failures inside name ``part`` ("screenshot 3") before their own sentence."""
    try:
        yield
    except CallFailed as failure:
        raise type(failure)(f"{part}: {failure}") from failure
    except Unread as failure:
        raise Unread(f"{part}: {failure}", failure.reply) from failure
    except ParseFailure as failure:
        raise ParseFailure(f"{part}: {failure}") from failure


async def together(works: Sequence[Callable[[], Awaitable[T]]], at_once: int = AT_ONCE) -> list[T]:
    """The results of all works in their order, at most ``at_once`` under way.

    If one fails, the others are still brought to their end, so that what was paid for is kept and
    the ledger is the same every time; then the first failure in the order of the works is raised.
    What ends the run as a whole goes before failures of single calls.
    """
    turn = asyncio.Semaphore(at_once)

    async def one(work: Callable[[], Awaitable[T]]) -> T:
        async with turn:
            return await work()

    ended = await asyncio.gather(*map(one, works), return_exceptions=True)
    failures = [result for result in ended if isinstance(result, BaseException)]
    failures.sort(key=lambda failure: isinstance(failure, CallFailed | ParseFailure))
    if failures:
        raise failures[0]
    return [result for result in ended if not isinstance(result, BaseException)]
