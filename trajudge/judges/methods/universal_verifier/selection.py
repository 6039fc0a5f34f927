"""Which screenshots are looked at for which criterion: pure functions over relevance scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# A screenshot of this relevance shows something; where one does, those below WEAK that lie
# further than GAP below the least of them are dropped.
RELEVANT = 6
WEAK = 5
GAP = 2


def ranked_screenshots(relevance: Sequence[Sequence[int]], keep: int) -> dict[int, list[int]]:
    """Choose the ``keep`` most relevant screenshots of every criterion, best first.

    ``relevance`` has shape (screenshots, criteria), scores 0-10. Of equal ones the later comes
    first.
    """
    criteria = len(relevance[0]) if relevance else 0
    return {
        criterion: _later_first([scores[criterion] for scores in relevance])[:keep]
        for criterion in range(criteria)
    }


def _later_first(scores: Sequence[int]) -> list[int]:
    """Order indices by their score, the best and of equal ones the latest first."""
    return sorted(range(len(scores)), key=lambda index: (scores[index], index), reverse=True)


def relevant_only(
    ranked: Mapping[int, Sequence[int]], relevance: Sequence[Sequence[int]]
) -> dict[int, list[int]]:
    """Drop the screenshots that are clearly less relevant than the relevant ones of a criterion;
    all stay where none is relevant."""
    return {
        criterion: _without_weak(shots, {shot: relevance[shot][criterion] for shot in shots})
        for criterion, shots in ranked.items()
    }


def _without_weak(shots: Sequence[int], score: Mapping[int, int]) -> list[int]:
    relevant = [score[shot] for shot in shots if score[shot] >= RELEVANT]
    if not relevant:
        return list(shots)
    least = min(relevant)
    return [shot for shot in shots if not (score[shot] < WEAK and least - score[shot] > GAP)]


def by_screenshot(chosen: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    """Invert the choice: the criteria of every distinct screenshot, in their order; screenshots in
    the order in which the criteria name them."""
    inverted: dict[int, list[int]] = {}
    for criterion in sorted(chosen):
        for shot in chosen[criterion]:
            inverted.setdefault(shot, []).append(criterion)
    return inverted
