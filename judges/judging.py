"""One judge on one trajectory: whatever happens becomes a judgment with a status."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from trajudge.judges.adapters.errors import CallFailed, ContextOverflow, Refused
from trajudge.judges.model import Ask, Call, Judge, Judgment, Skipped, Status, Verdict
from trajudge.judges.replies.parsing import ParseFailure
from trajudge.judges.replies.reading import Unread
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.needs import EVERYTHING, Needs, check_pictures, needed_pictures
from trajudge.trajectories.represent import MissingObservation
from trajudge.trajectories.util.errors import ImageUnreadable


class RecordingAsk(Ask, Protocol):
    """An Ask that keeps the calls it made, in order."""

    @property
    def calls(self) -> Sequence[Call]: ...


async def judge_trajectory(
    judge_id: str,
    judge: Judge,
    trajectory: Trajectory,
    ask: RecordingAsk,
    sample: int = 0,
    *,
    needs: Needs = EVERYTHING,
) -> Judgment:
    """The judgment, with the status of what went wrong and the calls that were made.

    A run of which a picture that the judge ``needs`` cannot be read is skipped before anything is
    asked. ``ask`` is fresh for this trajectory. Errors that are neither the model's, the
    provider's nor the trajectory's (a mistake in the judge's code, the user's interruption) are
    not caught.
    """
    calls: Sequence[Call] = ()
    try:
        if needed_pictures(trajectory, needs):
            await asyncio.to_thread(check_pictures, trajectory, needs)
        verdict, status, detail = await judge(trajectory, ask), Status.OK, ""
        calls = ask.calls
    except FAILURES as error:
        verdict, status, detail = Verdict(), _status(error), str(error)
        calls = _marked(ask.calls, error)
    return Judgment(
        key=trajectory.key,
        judge=judge_id,
        sample=sample,
        status=status,
        detail=detail,
        calls=tuple(calls),
        **verdict.model_dump(),
    )


FAILURES = (ParseFailure, CallFailed, Skipped, ImageUnreadable, MissingObservation)
"""What becomes a status: the model's, the provider's and the trajectory's failures."""


def _status(error: Exception) -> Status:
    """A reply that could not be read because it ran out of output tokens is truncated."""
    if isinstance(error, Unread) and error.reply.finish == "length":
        return Status.TRUNCATED
    if isinstance(error, ParseFailure):
        return Status.UNPARSABLE
    if isinstance(error, ContextOverflow):
        return Status.CONTEXT_OVERFLOW
    if isinstance(error, Refused):
        return Status.REFUSED
    return Status.PROVIDER_ERROR if isinstance(error, CallFailed) else Status.SKIPPED


def _marked(calls: Sequence[Call], error: Exception) -> Sequence[Call]:
    """The ledger in which the reply that could not be read ends as ``unparsable``."""
    if not isinstance(error, Unread) or error.reply.finish != "stop":
        return calls
    return [
        call.model_copy(update={"finish": "unparsable"})
        if call.finish == "stop" and call.text == error.reply.text
        else call
        for call in calls
    ]
