"""The nouns of typed values: modes, kinds, normal forms, matches."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

if TYPE_CHECKING:
    from pydantic import JsonValue

T = TypeVar("T")

Normal: TypeAlias = "JsonValue"
"""A value's normal form: text for most kinds, an object for addresses, a list for lists and
for the alternatives of a specification, None for nothing. Normalising it again changes nothing."""


class Mode(StrEnum):
    """Whose semantics."""

    SOUND = "sound"
    RELEASE = "release-1.2.3"


class Match(NamedTuple):
    """The verdict on one value: both normal forms (None if invalid), and the reason if unequal.

    ``equal`` is None where it cannot be told: the specification's own value or pattern is none, or
    its pattern takes too long.
    """

    equal: bool | None
    expected: JsonValue
    actual: JsonValue
    reason: str


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """How values of one kind are read, shown and compared in one mode.

    ``parse`` raises InvalidValue; ``show`` gives the normal form of what ``parse`` read;
    ``texts`` are the readings of a raw value that a specification's pattern may match, and its
    absence means that this kind knows no patterns; ``case_matters`` to them or not.
    ``is_list``: a list is one value of this kind, not a list of alternatives. ``nothing``: the
    texts, in lower case, that state no value.
    """

    parse: Callable[[JsonValue], T]
    show: Callable[[T], JsonValue]
    same: Callable[[T, T], bool] = operator.eq
    texts: Callable[[JsonValue], Sequence[str]] | None = None
    case_matters: bool = False
    is_list: Callable[[JsonValue], bool] = lambda _: False
    nothing: frozenset[str] = frozenset({""})
