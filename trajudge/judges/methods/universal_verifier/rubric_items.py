"""A rubric's criteria with their points, and the totals over them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from trajudge.trajectories.model import Record


class RubricItem(Record):
    """One criterion of a rubric; the fields are filled stage by stage.

    ``earned_points`` and ``justification`` come from the action history alone, the
    ``post_image_`` fields from the screenshots as well (None: not scored yet).
    ``is_condition_met`` is None without a ``condition``. A ``penalty`` earns nothing.
    """

    criterion: str
    description: str
    max_points: float
    condition: str | None = None
    justification: str = ""
    earned_points: float = 0.0
    is_condition_met: bool | None = None
    reality_notes: str = ""
    applicable_evidence: str = ""
    post_image_justification: str = ""
    post_image_earned_points: float | None = None
    penalty: bool = False

    @property
    def counts(self) -> bool:
        """Whether the points count: a criterion whose condition is not met does not."""
        return self.condition is None or self.is_condition_met is True

    @property
    def final_points(self) -> float:
        """The points with the screenshots seen, else those of the action history."""
        scored = self.post_image_earned_points
        return self.earned_points if scored is None else scored


class PointTotals(NamedTuple):
    """Points that a rubric offers and those that a run earned."""

    earned: float
    max: float

    @property
    def score(self) -> float:
        """Earned of offered points, 0 where none are offered."""
        return self.earned / self.max if self.max else 0.0


def totals(items: Iterable[RubricItem]) -> PointTotals:
    """Sum the final points over the criteria that count; penalties add to the offered ones only."""
    counted = [item for item in items if item.counts]
    return PointTotals(
        float(sum(item.final_points for item in counted)),
        float(sum(item.max_points for item in counted)),
    )


def baseline_totals(items: Iterable[RubricItem]) -> PointTotals:
    """Sum the points given on the action history alone, without penalties."""
    counted = [item for item in items if item.counts and not item.penalty]
    return PointTotals(
        float(sum(item.earned_points for item in counted)),
        float(sum(item.max_points for item in counted)),
    )


def conditional(items: Sequence[RubricItem]) -> list[int]:
    """Return the indices of the criteria that have a condition."""
    return [index for index, item in enumerate(items) if item.condition is not None]
