"""Model clients that take a call as one value, for whatever stands between a judge and a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from trajudge.judges.model import Message, ModelClient, Reply
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
