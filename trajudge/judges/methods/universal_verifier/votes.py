"""Several scorings and verdicts of one run made into one: the median, the majority."""

from __future__ import annotations

from collections.abc import Sequence


def median_index(scores: Sequence[float]) -> int:
    """Return the index of the scoring with the median score; of equal ones in their order."""
    order = sorted(range(len(scores)), key=lambda index: scores[index])
    return order[len(scores) // 2]


def majority(votes: Sequence[bool | None]) -> bool | None:
    """Return what more than half of the given votes say, False on a tie; None where fewer than
    half of all were given."""
    cast = [vote for vote in votes if vote is not None]
    if len(cast) < len(votes) // 2 + 1:
        return None
    return sum(cast) > len(cast) / 2
