"""When a fault fires: at page load k, at n of the first H, or at each with a probability.

Every decision is a function of run seed, task, fault and the page load's ordinal alone.
No generator keeps a state between decisions, so that neither the order of requests nor another
fault changes one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from trajudge.util.commands import MOST_PAGE_LOADS

_FORMS = "at(k), random(n, horizon), random(n) or bernoulli(p)"
_CALL = re.compile(r"^\s*(at|random|bernoulli)\s*\(\s*([^()]*?)\s*\)\s*$")

_Ordinal = Annotated[int, Field(ge=1, le=MOST_PAGE_LOADS)]


class DrawKey(NamedTuple):
    """What a fault's decisions in a task are drawn from."""

    seed: int
    task: str
    fault: str


class FaultPolicy(BaseModel):
    """One of: ``at`` (page load k, from 1); ``random`` (n of the page loads 1 to ``horizon``,
    without replacement); ``bernoulli`` (each page load with this probability). Written as an object
    or as ``at(3)``, ``random(2, 6)``, ``bernoulli(0.1)``. ``random(2)`` takes the task's horizon,
    which is stated when the task begins."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: _Ordinal | None = None
    random: _Ordinal | None = None
    horizon: _Ordinal | None = None
    bernoulli: Annotated[float, Field(ge=0, le=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return _parsed(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        named = [name for name in ("at", "random", "bernoulli") if getattr(self, name) is not None]
        if len(named) != 1:
            raise ValueError(f"name exactly one of {_FORMS}")
        if self.random is None and self.horizon is not None:
            raise ValueError("a horizon goes with random(n, horizon)")
        if self.random is not None and self.horizon is not None and self.random > self.horizon:
            raise ValueError(f"{self.random} page loads of {self.horizon} cannot be drawn")
        return self

    def __str__(self) -> str:
        if self.at is not None:
            return f"at({self.at})"
        if self.random is not None:
            named = (self.random, self.horizon) if self.horizon else (self.random,)
            return f"random({', '.join(map(str, named))})"
        return f"bernoulli({self.bernoulli:g})"


def _parsed(text: str) -> Mapping[str, Any]:
    """Parse ``at(3)``. Raises ValueError."""
    call = _CALL.match(text)
    words = [word.split("=")[-1].strip() for word in call[2].split(",")] if call else []
    if call is None or len(words) not in ((1, 2) if call[1] == "random" else (1,)):
        raise ValueError(f"write {_FORMS}")
    try:
        numbers = [json.loads(word) for word in words]
    except ValueError:
        raise ValueError(f"write {_FORMS} with numbers") from None
    return dict(zip((call[1], "horizon"), numbers, strict=False))


def draw(key: DrawKey, ordinal: int) -> float:
    """Return a number in [0, 1) that belongs to one page load; the first 53 bits of a SHA-256."""
    text = json.dumps([key.seed, key.task, key.fault, ordinal])
    return (int.from_bytes(sha256(text.encode()).digest()[:7]) >> 3) / 2**53


def planned_ordinals(
    policy: FaultPolicy, key: DrawKey, horizon: int | None = None
) -> tuple[int, ...] | None:
    """Return the page loads at which a fault fires, ascending; None for a ``bernoulli`` policy,
    which has no end.

    ``random`` takes the n smallest draws of the horizon: for one seed, the sample of n is a part of
    the sample of n + 1. A policy without a horizon of its own takes the task's ``horizon``: all of
    it where it is shorter than n, and nothing in a task that states none.
    """
    if policy.at is not None:
        return (policy.at,)
    if policy.random is None:
        return None
    last = policy.horizon or horizon or 0
    ordered = sorted(range(1, last + 1), key=lambda k: (draw(key, k), k))
    return tuple(sorted(ordered[: policy.random]))
