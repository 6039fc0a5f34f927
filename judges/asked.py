"""A call as one value, for whatever stands between a judge and a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from trajudge.judges.model import Message, Reply
from trajudge.trajectories.util.errors import UserError


class Asked(NamedTuple):
    """What a judge gave to its ``ask``; the fields are those of ``judges.model.Ask``."""

    messages: Sequence[Message]
    stage: str
    rung: str
    model: str | None
    assume: str
    parameters: Mapping[str, JsonValue]


class Asker(ABC):
    """A ``judges.model.Ask`` that takes the call as one value."""

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
        """Raises what ``answer`` raises."""
        return await self.answer(Asked(messages, stage, rung, model, assume, parameters))

    @abstractmethod
    async def answer(self, asked: Asked) -> Reply: ...


class NoModel(Asker):
    """The ``ask`` of a judge that needs no model."""

    calls: tuple[()] = ()

    async def answer(self, asked: Asked) -> Reply:
        """Raises UserError: the run has no model to ask."""
        raise UserError("the judge asks a model, and the run has none: name one with --model")
