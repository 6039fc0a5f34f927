"""Seeded draws that the tables of every application are filled with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

from trajudge.environments.model.spec import TODAY
from trajudge.environments.model.state import Value

P = ParamSpec("P")
T = TypeVar("T")
Row = tuple[Value, ...]


def listed(draw: Callable[P, Iterator[Row]]) -> Callable[P, list[Row]]:
    """Decorate a generator of a table's rows: they are drawn at once, before whatever is drawn
    next, and given as a list."""

    @wraps(draw)
    def rows(*args: P.args, **named: P.kwargs) -> list[Row]:
        return list(draw(*args, **named))

    return rows


def one(rng: np.random.Generator, values: Sequence[T]) -> T:
    """Draw one of the values."""
    return values[int(rng.integers(len(values)))]


def day(rng: np.random.Generator, first: int, last: int) -> str:
    """Draw an ISO date ``first`` to ``last - 1`` days after today; negative: before."""
    return shifted(int(rng.integers(first, last)))


def day_before(rng: np.random.Generator, first: int, last: int) -> str:
    """Draw an ISO date ``first`` to ``last - 1`` days before today."""
    return shifted(-int(rng.integers(first, last)))


def shifted(days: int) -> str:
    """Return the ISO date so many days after today."""
    return (date.fromisoformat(TODAY) + timedelta(days=days)).isoformat()


def numbers(rng: np.random.Generator, prefix: str, count: int) -> list[str]:
    """Draw ``count`` different codes, such as ``PR-4711``."""
    return [f"{prefix}-{n}" for n in (rng.choice(9000, count, replace=False) + 1000).tolist()]
