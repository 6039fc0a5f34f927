"""Figures as SVG: where a rate lies in its interval, and precision against recall.

Only positions are worked out here, as text of SVG's numbers; the templates draw them. Colours come
from the style sheet. Every figure stands beside its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import NamedTuple

from trajudge.eval.reporting.plots import threshold_curve
from trajudge.eval.scoring.observations import Observations
from trajudge.eval.scoring.records import Rate, Score

SIDE = 300
"""Length of the axes of the precision-recall figure, in SVG's units."""


class IntervalBar(NamedTuple):
    """A rate and its limits on a line from 0 to 100; "" where there are none."""

    at: str
    low: str = ""
    width: str = ""


class CurvePoint(NamedTuple):
    """A judge's verdicts: ``x`` from the left and ``y`` from the top, the ends of its intervals,
    and the ``line`` of its thresholds (points of a polyline), "" where it gives no scores."""

    letter: str
    name: str
    precision: str
    recall: str
    x: str
    y: str
    left: str
    right: str
    top: str
    bottom: str
    line: str


def interval_bar(score: Score, rate: Rate = "precision") -> IntervalBar | None:
    """Place a rate and its 95 % limits; None where it is undefined."""
    value = getattr(score, rate)
    if value is None or (rate == "precision" and not score.counts.accepted):
        return None
    limits = score.intervals.get(rate)
    if limits is None:
        return IntervalBar(_number(100 * value))
    low, high = limits
    return IntervalBar(_number(100 * value), _number(100 * low), _number(100 * (high - low)))


def curve_points(
    scores: Sequence[tuple[str, Score]], observed: Mapping[str, Observations]
) -> list[CurvePoint]:
    """Place every named evaluator that accepts something under a letter of its own, with the curve
    of its scores; those behind the 26th are left out."""
    shown = [
        (name, score)
        for name, score in scores
        if score.precision is not None and score.recall is not None and score.counts.accepted
    ]
    return [
        _point(letter, name, score, observed.get(name))
        for letter, (name, score) in zip(ascii_uppercase, shown, strict=False)
    ]


def _point(letter: str, name: str, score: Score, seen: Observations | None) -> CurvePoint:
    precision, recall = score.precision or 0.0, score.recall or 0.0
    left, right = score.intervals.get("recall", (recall, recall))
    bottom, top = score.intervals.get("precision", (precision, precision))
    return CurvePoint(
        letter=letter,
        name=name,
        precision=f"{100 * precision:.1f}",
        recall=f"{100 * recall:.1f}",
        x=_across(recall),
        y=_down(precision),
        left=_across(left),
        right=_across(right),
        top=_down(top),
        bottom=_down(bottom),
        line=_line(seen),
    )


def _line(seen: Observations | None) -> str:
    """Draw recall and precision by descending threshold, as steps."""
    points = None if seen is None else threshold_curve(seen)
    if points is None:
        return ""
    drawn: list[str] = []
    last = points[1, 0]
    for recall, precision in points.T.tolist():
        drawn += [f"{_across(recall)},{_down(last)}", f"{_across(recall)},{_down(precision)}"]
        last = precision
    return " ".join(drawn)


def _across(share: float) -> str:
    return _number(SIDE * share)


def _down(share: float) -> str:
    return _number(SIDE * (1 - share))


def _number(value: float) -> str:
    return f"{round(value, 2) + 0.0:g}"
