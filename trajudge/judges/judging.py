"""Run one judge on one trajectory: every outcome becomes a judgment with a status."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from pydantic import JsonValue

from trajudge.judges.adapters.errors import CallFailed, ContextOverflow, Refused
from trajudge.judges.model import (
    REPAIR,
    VERDICT_FIELDS,
    Call,
    Judge,
    Judgment,
    Message,
    Model,
    Reply,
    Request,
    Skipped,
    Status,
    Text,
    Verdict,
)
from trajudge.judges.replies import ParseFailure, ReplyParseError
from trajudge.trajectories.model import Trajectory, checked, defaults_of
from trajudge.trajectories.needs import EVERYTHING, Needs, check_pictures, needed_pictures
from trajudge.trajectories.represent import MissingObservation
from trajudge.util.errors import ImageUnreadable, UserError


class CallArgs(NamedTuple):
    """Arguments of one call of a ``judges.model.Model``."""

    messages: Sequence[Message]
    stage: str
    rung: str
    model: str | None
    assume: str
    parameters: Mapping[str, JsonValue]


class BaseClient(ABC):
    """A ``judges.model.Model`` that takes the call as one value."""

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        stage: str = "verdict",
        rung: str = "full",
        model: str | None = None,
        assume: str = "",
        **parameters: JsonValue,
    ) -> Reply:
        """Answer the call. Raises what ``answer`` raises."""
        return await self.answer(CallArgs(messages, stage, rung, model, assume, parameters))

    @abstractmethod
    async def answer(self, call_args: CallArgs) -> Reply: ...


class ChangedClient(BaseClient):
    """Makes calls with another client, each as ``change`` returns it; ``check`` takes the call as
    it was and the reply, and returns the reply or raises."""

    def __init__(
        self,
        ask: Model,
        change: Callable[[CallArgs], CallArgs],
        check: Callable[[CallArgs, Reply], Reply] = lambda _, reply: reply,
    ) -> None:
        self._ask, self._change, self._check = ask, change, check

    async def answer(self, call_args: CallArgs) -> Reply:
        """Raise what the other client, or ``check``, raises."""
        return self._check(call_args, await _sent(self._ask, self._change(call_args)))


async def _sent(ask: Model, call: CallArgs) -> Reply:
    """Make a call with a client that takes its arguments one by one."""
    return await ask(
        call.messages,
        stage=call.stage,
        rung=call.rung,
        model=call.model,
        assume=call.assume,
        **call.parameters,
    )


_FAULT = (
    "This answer cannot be read: {fault}. Answer again, completely and in the form that was asked "
    "for, with nothing around it."
)


class RepairedJudge:
    """A judge whose unreadable reply is followed by a corrective turn that names the fault, at most
    ``times`` for a trajectory. It then reads all replies again, the new one in place of the old.

    A reply that ran out of tokens or was refused is left as it is.
    """

    def __init__(self, judge: Judge, times: int) -> None:
        self._judge, self._times = judge, times

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge as the judge does, and raise what it raises."""
        client = _CorrectingClient(ask)
        for left in range(self._times, -1, -1):
            try:
                verdict = await self._judge(trajectory, client)
            except ReplyParseError as error:
                is_whole = error.reply.finish == "stop"
                if not (left and is_whole and await client.correct(error)):
                    raise
            else:
                if client.fault and not verdict.fallback:
                    return verdict.model_copy(update={"fallback": f"asked again: {client.fault}"})
                return verdict
        raise AssertionError("the last pass returns or raises")

    def __getattr__(self, name: str) -> Any:
        if name == "_judge":  # not set yet: a copy is being made
            raise AttributeError(name)
        return getattr(self._judge, name)


class _CorrectingClient(BaseClient):
    """Remembers the replies of one judgment: equal calls of a second pass are not made again."""

    def __init__(self, ask: Model) -> None:
        self._ask = ask
        self._given: list[tuple[CallArgs, Reply]] = []
        self._replies: dict[str, Reply] = {}  # of the first pass, once there is a second
        self.fault = ""

    async def answer(self, call_args: CallArgs) -> Reply:
        """Return the known reply to this call, or make it. Raises what the model raises."""
        if self._replies and (known := self._replies.get(_identity(call_args))) is not None:
            return known
        reply = await _sent(self._ask, call_args)
        self._given.append((call_args, reply))
        if self._replies:
            self._replies[_identity(call_args)] = reply
        return reply

    async def correct(self, error: ReplyParseError) -> bool:
        """Ask again for the reply that could not be read; False if it came from no call here."""
        index = next((n for n, (_, given) in enumerate(self._given) if given is error.reply), None)
        if index is None:
            return False
        asked, unread = self._given[index]
        turns = [
            *asked.messages,
            Message(role="assistant", parts=(Text(text=unread.text or "(nothing)"),)),
            Message(role="user", parts=(Text(text=_FAULT.format(fault=str(error).rstrip("."))),)),
        ]
        self.fault = str(error)
        reply = await _sent(self._ask, asked._replace(messages=turns, stage=REPAIR))
        # A further correction follows this one.
        self._given[index] = (asked._replace(messages=turns), reply)
        self._replies = {_identity(call): given for call, given in self._given}
        self._replies[_identity(asked)] = reply
        return True


def _identity(call: CallArgs) -> str:
    """Return what tells one call of a judgment from another."""
    messages = tuple(call.messages)
    parameters = {**call.parameters, "stage": call.stage}
    request = Request(endpoint="", model=call.model or "", messages=messages, parameters=parameters)
    return request.hash


class NoModel(BaseClient):
    """Model client of a judge that needs no model."""

    calls: tuple[()] = ()

    async def answer(self, call_args: CallArgs) -> Reply:
        """Raise UserError: the run has no model to ask."""
        raise UserError("the judge asks a model, and the run has none: name one with --model")


ReplyOf = Callable[[str], Reply | None]

"""The whole reply to a request by its hash, None where it is not kept."""


class NotRecorded(Exception):
    """The judge made a call that the earlier judgment did not make."""


class ReplayClient(BaseClient):
    """Model client of a judgment that is parsed again; a stage's replies come in recorded order.

    A recorded call holds the text of its reply alone; ``reply_of`` adds what judges of token
    probabilities need. Prompts are not compared: they may have changed since.
    """

    def __init__(self, judgment: Judgment, reply_of: ReplyOf) -> None:
        self.calls: Sequence[Call] = judgment.calls
        self._detail = judgment.detail
        self._reply_of = reply_of
        self._left: dict[str, deque[Call]] = defaultdict(deque)
        for call in judgment.calls:
            self._left[call.stage].append(call)

    @property
    def is_complete(self) -> bool:
        """Whether every recorded call was made again; a reply that is read now needs no corrective
        turn."""
        return not any(left for stage, left in self._left.items() if stage != REPAIR)

    async def answer(self, call_args: CallArgs) -> Reply:
        """Return the recorded reply. Raises the recorded failure, or NotRecorded."""
        if not self._left[call_args.stage]:
            raise NotRecorded(f"no further reply of stage {call_args.stage!r} was recorded")
        call = self._left[call_args.stage].popleft()
        if call.finish == "context_overflow":
            raise ContextOverflow(self._detail or "the prompt was too long")
        if call.finish == "refused" and not call.text:
            raise Refused(self._detail or "the model declined to answer")
        known = self._reply_of(call.request)
        if known is not None:
            return known
        match call.finish:
            case "length" | "refused":
                return Reply(text=call.text, finish=call.finish, usage=call.usage)
            case _:
                return Reply(text=call.text, usage=call.usage)


class RecordedClient(Model, Protocol):
    """A Model that keeps the calls it made, in order."""

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
    """Mark the calls whose replies could not be parsed as ``unparsable`` in the ledger."""
    if not isinstance(error, ReplyParseError) or error.reply.finish != "stop":
        return calls
    unread = {reply.text for reply in (error.reply, *error.others)}
    return [
        call.model_copy(update={"finish": "unparsable"})
        if call.finish == "stop" and call.text in unread
        else call
        for call in calls
    ]
