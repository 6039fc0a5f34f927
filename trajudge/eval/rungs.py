"""How far a judgment's prompts were shortened, as its calls tell it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from trajudge.trajectories.truncate import TruncationLevel

WHOLE = TruncationLevel.FULL.label
RUNGS = (*(rung.label for rung in TruncationLevel), "fewer", "other")
"""From a prompt that shows everything downwards; ``fewer`` are screenshots, ``other`` is what a
judge of the user's own calls it."""

_PLACES = {rung: place for place, rung in enumerate(RUNGS)}
_OTHER = _PLACES["other"]


class PromptCall(Protocol):
    """A Call, or its fields as they stand in a file."""

    @property
    def rung(self) -> str: ...
    @property
    def finish(self) -> str: ...


class Prompted(Protocol):
    """A Judgment, or its fields as they stand in a file."""

    @property
    def calls(self) -> Sequence[PromptCall]: ...


def furthest_rungs(judgments: Iterable[Prompted]) -> list[int]:
    """Find the index in RUNGS of every judgment's most shortened prompt that was not too long; 0
    for no call."""
    rungs = []
    for judgment in judgments:
        furthest = 0
        for call in judgment.calls:
            if call.rung != WHOLE and call.finish != "context_overflow":
                furthest = max(furthest, _PLACES.get(call.rung, _OTHER))
        rungs.append(furthest)
    return rungs
