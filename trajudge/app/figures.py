"""Figures and tables of scores, ready to be drawn: no template computes.

Positions of SVG figures are worked out as text of SVG's numbers; colours come from the style
sheet, and every figure stands next to its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Any, NamedTuple

import numpy as np

from trajudge.eval.reporting.plots import score_bins, threshold_curve
from trajudge.eval.reporting.sentences import (
    benchmark_name,
    ordered_judges,
    percent,
    precision_cell,
    rate_cell,
    shown_benchmarks,
    with_limits,
)
from trajudge.eval.scoring.observations import Observations
from trajudge.eval.scoring.records import ALL_AGENTS, OVERALL, LabelName, Score, ScoreReport
from trajudge.eval.store.run_folder import read_manifest
from trajudge.trajectories.loaders import parse_source
from trajudge.trajectories.sources import SourceCard, card_of_kind
from trajudge.util.errors import UserError

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


RULE, BASELINE = "rule-based", "baseline"


class JudgeRow(NamedTuple):
    """An evaluator's overall figures; ``kind`` is "judge", "rule-based" or "baseline", ``judge``
    whose trajectories they are on. ``counts`` are true and false positives, false and true
    negatives."""

    name: str
    kind: str
    judge: str
    bar: IntervalBar | None
    precision: str
    recall: str
    f1: str
    npv: str
    kappa: str
    n: str
    counts: tuple[int, int, int, int]


class BenchmarkCell(NamedTuple):
    """An evaluator's precision on one benchmark."""

    bar: IntervalBar | None
    text: str
    n: str


class BenchmarkTable(NamedTuple):
    """Precision by benchmark: a row an evaluator, with a cell (or None) for each of ``names``."""

    names: list[str]
    rows: list[tuple[str, list[BenchmarkCell | None]]]


class RunCard(NamedTuple):
    """What a run's manifest says it was: names and values."""

    folder: str
    facts: list[tuple[str, str]]


def judge_rows(scores: ScoreReport, label: LabelName) -> list[JudgeRow]:
    """Make a row a judge, best first, then the rule-based baseline and the trivial ones."""
    return [
        JudgeRow(
            name=name,
            kind=kind,
            judge=score.judge,
            bar=interval_bar(score),
            precision=precision_cell(score),
            recall=rate_cell(score, "recall"),
            f1=rate_cell(score, "f1"),
            npv=percent(score.npv),
            kappa=rate_cell(score, "kappa"),
            n=f"{score.n:,}",
            counts=(score.counts.tp, score.counts.fp, score.counts.fn, score.counts.tn),
        )
        for name, kind, score in overall_scores(scores, label)
    ]


def overall_scores(scores: ScoreReport, label: LabelName) -> list[tuple[str, str, Score]]:
    """List every evaluator with its kind and its score over all benchmarks."""
    return [
        (name, kind, places[OVERALL])
        for (name, kind), places in _evaluators(scores, label).items()
        if OVERALL in places
    ]


def benchmark_table(scores: ScoreReport, label: LabelName) -> BenchmarkTable | None:
    """Set the precision on every benchmark beside each other; None where there is one alone."""
    names = [b for b in sorted(shown_benchmarks(scores)) if b != OVERALL]
    if len(names) < 2:
        return None
    rows = [
        (name, [_cell(places.get(benchmark)) for benchmark in names])
        for (name, _), places in _evaluators(scores, label).items()
    ]
    return BenchmarkTable([benchmark_name(name) for name in names], rows)


def _cell(score: Score | None) -> BenchmarkCell | None:
    if score is None:
        return None
    return BenchmarkCell(interval_bar(score), precision_cell(score), f"{score.n:,}")


def _evaluators(scores: ScoreReport, label: LabelName) -> dict[tuple[str, str], dict[str, Score]]:
    """Map an evaluator's name and kind to its scores by benchmark: judges best first, the rule
    once where it is the same beside all judges."""
    order = {judge: place for place, judge in enumerate(ordered_judges(scores))}
    here = [s for s in scores.scores if (s.agent, s.label) == (ALL_AGENTS, label)]
    judges = sorted((s for s in here if not s.baseline), key=lambda s: order.get(s.judge, 0))
    rules = [s for s in here if s.baseline and s.n]
    same = len({(s.n, s.counts) for s in rules if s.benchmark == OVERALL}) < 2
    found: dict[tuple[str, str], dict[str, Score]] = {}
    for score in judges:
        found.setdefault((score.judge, "judge"), {})[score.benchmark] = score
    for score in rules:
        name = RULE if same else f"{RULE} beside {score.judge}"
        found.setdefault((name, RULE), {}).setdefault(score.benchmark, score)
    for score in scores.baselines:
        if (score.agent, score.label) == (ALL_AGENTS, label):
            found.setdefault((score.judge, BASELINE), {})[score.benchmark] = score
    return found


# Their paths are those of the machine that judged: only the last part is told.
_SPECIFICATIONS = {"data", "annotations"}
_FACTS = {
    "judge": "judge",
    "model": "model",
    "data": "data",
    "revision": "revision of the data",
    "annotations": "expert labels",
    "samples": "samples per trajectory",
    "parameters": "parameters",
    "options": "options",
    "selection": "selection",
    "protocol": "protocol",
    "prompt_hash": "hash of the prompts",
    "seed": "seed",
    "version": "version of trajudge",
}


def run_card(folder: Path) -> RunCard:
    """Say what a run was, by its manifest. Raises UserError if it cannot be read."""
    manifest = read_manifest(folder)
    facts = [
        (title, _specification(fact) if name in _SPECIFICATIONS else fact)
        for name, title in _FACTS.items()
        if manifest.get(name) and (fact := _fact(manifest[name]))
    ]
    return RunCard(folder.name, facts)


def _fact(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {one}" for name, one in value.items() if one is not None)
    return str(value)


def _specification(spec: str) -> str:
    kind, colon, path = spec.partition(":")
    return f"{kind}{colon}{Path(path).name}" if colon else Path(spec).name


def data_licences(specs: Sequence[str]) -> list[SourceCard]:
    """Find the cards of the data sets that these specifications name, where they are known."""
    cards: dict[str, SourceCard] = {}
    for spec in specs:
        try:
            card = card_of_kind(parse_source(spec)[0])
        except UserError:
            card = card_of_kind(spec.partition(":")[0])
        if card is not None:
            cards[card.name] = card
    return list(cards.values())
