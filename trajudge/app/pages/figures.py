"""Figures as SVG: where a rate lies in its interval, precision against recall, and how often a
judge's scores come true.

Only positions are worked out here, as text of SVG's numbers; the templates draw them. Colours come
from the style sheet. Every figure stands beside its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import NamedTuple

import numpy as np

from trajudge.eval.reporting.plots import score_bins, threshold_curve
from trajudge.eval.reporting.sentences import with_limits
from trajudge.eval.scoring.observations import Observations
from trajudge.eval.scoring.records import Score

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
    bins: list[ReliabilityPoint]


class ReliabilityPoint(NamedTuple):
    """Trajectories of like scores on the same axes: ``x`` is their mean score, ``y`` the share that
    the expert calls right, ``top`` and ``bottom`` its limits; then the figures themselves."""

    x: str
    y: str
    top: str
    bottom: str
    score: str
    share: str
    n: int


def interval_bar(score: Score, rate: str = "precision") -> IntervalBar | None:
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
        bins=[] if seen is None else _reliability(seen),
    )


def _reliability(seen: Observations) -> list[ReliabilityPoint]:
    return [
        ReliabilityPoint(
            x=_across(each.score),
            y=_down(each.share),
            top=_down(each.limits[1]),
            bottom=_down(each.limits[0]),
            score=f"{each.score:.2f}",
            share=with_limits(each.share, each.limits),
            n=each.n,
        )
        for each in score_bins(seen)
    ]


def _line(seen: Observations | None) -> str:
    """Draw recall and precision by descending threshold, as steps of at least a unit."""
    points = None if seen is None else threshold_curve(seen)
    if points is None:
        return ""
    drawn: list[str] = []
    before = points[:, 0]
    for place, point in enumerate(points.T, 1):
        if drawn and place < points.shape[1] and np.abs(point - before).max() < 1 / SIDE:
            continue
        across = _across(point[0])
        drawn += [f"{across},{_down(before[1])}", f"{across},{_down(point[1])}"]
        before = point
    return " ".join(drawn)


def _across(share: float) -> str:
    return _number(SIDE * share)


def _down(share: float) -> str:
    return _number(SIDE * (1 - share))


def _number(value: float) -> str:
    return f"{round(value, 2) + 0.0:g}"
