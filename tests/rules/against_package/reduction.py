"""The smallest case that still differs: parts go while both sides disagree as before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Case = dict[str, Any]

MOST_TRIES = 2_000


def reduced(case: Case, differs: Callable[[Case], bool]) -> Case:
    """Return the case with the fewest parts found; ``differs`` tells whether one still differs.

    Only what the two sides compare is made smaller: both values, or the answer and the requests.
    """
    case = {key: value for key, value in case.items() if key != "changes"}
    fields = [name for name in ("expected", "actual", "answer", "entries") if name in case]
    tries = 0
    progress = True
    while progress:
        progress = False
        for field in fields:
            for smaller in _smaller(case[field]):
                tries += 1
                if tries > MOST_TRIES:
                    return case
                candidate = {**case, field: smaller}
                if differs(candidate):
                    case, progress = candidate, True
                    break
    return case


def _smaller(value: Any) -> Iterator[Any]:
    """Yield the value with one part fewer, or one part smaller; the largest steps first."""
    if isinstance(value, str):
        for length in (len(value) // 2, len(value) // 4, 1):
            if length:
                yield from (
                    value[:at] + value[at + length :] for at in range(0, len(value), length)
                )
    elif isinstance(value, list):
        yield from (value[:at] + value[at + 1 :] for at in range(len(value)))
        for at, part in enumerate(value):
            yield from ([*value[:at], less, *value[at + 1 :]] for less in _smaller(part))
    elif isinstance(value, dict):
        yield from ({k: part for k, part in value.items() if k != key} for key in value)
        for key, part in value.items():
            yield from ({**value, key: less} for less in _smaller(part))
