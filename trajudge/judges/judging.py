"""Run one judge on one trajectory: every outcome becomes a judgment with a status."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from trajudge.judges.adapters.errors import CallFailed, ContextOverflow, Refused
from trajudge.judges.model import (
    VERDICT_FIELDS,
    Call,
    Judge,
    Judgment,
    ModelClient,
    Skipped,
    Status,
    Verdict,
)
from trajudge.judges.replies import ParseFailure, ReplyParseError
from trajudge.trajectories.model import Trajectory, checked, defaults_of
from trajudge.trajectories.needs import EVERYTHING, Needs, check_pictures, needed_pictures
from trajudge.trajectories.represent import MissingObservation
from trajudge.trajectories.util.errors import ImageUnreadable, UserError


class RecordedClient(ModelClient, Protocol):
    """A ModelClient that keeps the calls it made, in order."""

    @property
    def calls(self) -> Sequence[Call]: ...


async def judge_trajectory(
    judge_id: str,
    judge: Judge,
    trajectory: Trajectory,
    ask: RecordedClient,
    sample: int = 0,
    *,
    needs: Needs = EVERYTHING,
) -> Judgment:
    """Judge a trajectory and return the judgment, with the status of a failure and the calls made.

    A run of which a picture that the judge ``needs`` cannot be read is skipped before any call.
    ``ask`` is fresh for this trajectory. Errors that are neither the model's, the provider's nor
    the trajectory's (a bug in the judge's code, the user's interruption) are not caught.
    """
    calls: Sequence[Call] = ()
    try:
        if needed_pictures(trajectory, needs):
            await asyncio.to_thread(check_pictures, trajectory, needs)
        verdict, status, detail = _checked(judge_id, await judge(trajectory, ask)), Status.OK, ""
        calls = ask.calls
    except FAILURES as error:
        verdict, status, detail = Verdict(), _status(error), str(error)
        calls = _marked(ask.calls, error)
    of_run = {"key": trajectory.key, "judge": judge_id, "sample": sample}
    ended = {"status": status, "detail": detail, "calls": tuple(calls)}
    return checked(Judgment, _BLANK | _labels(verdict) | of_run | ended)


_BLANK = defaults_of(Judgment)


def _labels(verdict: Verdict) -> dict[str, Any]:
    """Return the fields of a verdict, without those that a user's own kind of verdict adds."""
    if type(verdict) is Verdict:
        return vars(verdict)
    return {name: getattr(verdict, name) for name in VERDICT_FIELDS}


FAILURES = (ParseFailure, CallFailed, Skipped, ImageUnreadable, MissingObservation)
"""What becomes a status: the model's, the provider's and the trajectory's failures."""


def _checked(judge_id: str, result: object) -> Verdict:
    """Return what the judge said. Raises UserError if it is no verdict: a user wrote that judge."""
    if not isinstance(result, Verdict):
        raise UserError(
            f"judge {judge_id} gave {type(result).__name__} where a Verdict belongs: end it with  "
            "return Verdict(success=...)"
        )
    return result


def _status(error: Exception) -> Status:
    """Map a failure to its status. A reply that cannot be parsed because it ran out of output
    tokens is truncated."""
    if isinstance(error, ReplyParseError) and error.reply.finish == "length":
        return Status.TRUNCATED
    if isinstance(error, ParseFailure):
        return Status.UNPARSABLE
    if isinstance(error, ContextOverflow):
        return Status.CONTEXT_OVERFLOW
    if isinstance(error, Refused):
        return Status.REFUSED
    return Status.PROVIDER_ERROR if isinstance(error, CallFailed) else Status.SKIPPED


def _marked(calls: Sequence[Call], error: Exception) -> Sequence[Call]:
    """Mark the call whose reply could not be parsed as ``unparsable`` in the ledger."""
    if not isinstance(error, ReplyParseError) or error.reply.finish != "stop":
        return calls
    return [
        call.model_copy(update={"finish": "unparsable"})
        if call.finish == "stop" and call.text == error.reply.text
        else call
        for call in calls
    ]
