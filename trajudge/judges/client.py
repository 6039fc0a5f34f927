"""Model clients that take a call as one value, for whatever stands between a judge and a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from trajudge.judges.adapters.errors import ContextOverflow, Refused
from trajudge.judges.model import Call, Judgment, Message, ModelClient, Reply
from trajudge.trajectories.util.errors import UserError


class CallArgs(NamedTuple):
    """Arguments of one call of a ``judges.model.ModelClient``."""

    messages: Sequence[Message]
    stage: str
    rung: str
    model: str | None
    assume: str
    parameters: Mapping[str, JsonValue]


class BaseClient(ABC):
    """A ``judges.model.ModelClient`` that takes the call as one value."""

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


async def pass_on(ask: ModelClient, call_args: CallArgs) -> Reply:
    """Make the call with another client. Raises what that client raises."""
    return await ask(
        call_args.messages,
        stage=call_args.stage,
        rung=call_args.rung,
        model=call_args.model,
        assume=call_args.assume,
        **call_args.parameters,
    )


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
        """Whether every recorded call was made again."""
        return not any(self._left.values())

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
