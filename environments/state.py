"""The shop's state as a set of facts, and what changed between two states.

A state is the JSON document that the shop keeps in the browser: ``cart``, ``coupon``, ``wishlist``,
``orders``, ``address``, ``newsletter``, ``returns``, ``messages``; prices in cents.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal, NamedTuple

State = Mapping[str, Any]


class Change(NamedTuple):
    """One entry that appeared in or disappeared from a part of the state."""

    kind: Literal["added", "removed"]
    part: str
    entry: Any


def diff(before: State, after: State) -> list[Change]:
    """The entries that differ, in stable order. A list holds its items, anything else itself."""
    old, new = _entries(before), _entries(after)
    changes: list[Change] = []
    for kind, entries in (("removed", old - new), ("added", new - old)):
        for (part, text), count in sorted(entries.items()):
            changes += [Change(kind, part, json.loads(text))] * count  # type: ignore[arg-type]
    return changes


def digest(state: State) -> str:
    """A short name for a state: equal for equal states."""
    return sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()[:16]


def _entries(state: State) -> Counter[tuple[str, str]]:
    return Counter(
        (part, json.dumps(entry, sort_keys=True))
        for part, value in state.items()
        for entry in (value if isinstance(value, list) else [] if value is None else [value])
    )
