"""The scores as pictures, PNG and SVG, with matplotlib (extra ``plots``).

The same scores give the same SVG: no date, no random ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trajudge.eval.reporting.sentences import benchmark_name, evaluator_name, is_labelled
from trajudge.eval.scoring.observations import Observations
from trajudge.eval.scoring.records import ALL_AGENTS, OVERALL, Limits, Score, ScoreReport
from trajudge.stats.intervals import Floats, rates_by_cluster
from trajudge.stats.suites import performance_profile
from trajudge.util.errors import MissingExtra, UserError
from trajudge.util.files import make_folder

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BINS = 10
_LEVEL_NAMES = 8  # more agents' names run into each other
Draw = Callable[["Axes"], bool]


class ScoreBin(NamedTuple):
    """``n`` trajectories of like scores: their mean score, and the ``share`` that is labelled
    successful with its 95 % limits over tasks."""

    score: float
    share: float
    limits: Limits
    n: int


def write_plots(
    folder: Path, scores: ScoreReport, detailed: ScoreReport, observed: Mapping[str, Observations]
) -> list[Path]:
    """Write the plots that the scores allow, and give their paths.

    ``detailed`` holds the scores by agent; ``observed`` what each judge said of success. Without
    a judge that gives scores there is no calibration plot. Raises MissingExtra without
    matplotlib, UserError if the folder cannot be written.
    """
    draws: dict[str, Draw] = {
        "precision": lambda axes: draw_precision(axes, scores),
        "success_rate": lambda axes: draw_success_rates(axes, scores),
        "precision_recall": lambda axes: draw_precision_recall(axes, scores, observed),
        "calibration": lambda axes: draw_calibration(axes, observed),
        "performance_profile": lambda axes: draw_profiles(axes, detailed),
    }
    written: list[Path] = []
    try:
        make_folder(folder, "--plots")
        for name, draw in draws.items():
            written += write_plot(folder / name, draw)
    except OSError as error:
        raise UserError(f"--plots {folder}: cannot be written ({error.strerror})") from error
    return written


def write_plot(stem: Path, draw: Draw) -> list[Path]:
    """Write one plot as ``.png`` and ``.svg``, unless ``draw`` had nothing to draw. Raises
    MissingExtra without matplotlib, OSError if a file cannot be written."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - an extra
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("matplotlib", "plots", "--plots") from error
    with mpl.rc_context({"svg.hashsalt": "trajudge", "svg.fonttype": "none"}):
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        if not draw(figure.add_subplot()):
            return []
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
        figure.savefig(stem.with_suffix(".png"), dpi=150)
    return [stem.with_suffix(".png"), stem.with_suffix(".svg")]


def draw_precision(axes: Axes, scores: ScoreReport) -> bool:
    """Precision with its interval, where it has one, on every benchmark, judges beside each
    other."""
    by_place = _by_place(scores)
    if not any(map(is_labelled, by_place.values())):
        return False
    benchmarks = list(dict.fromkeys(b for _, b in by_place))
    names = list(dict.fromkeys(name for name, _ in by_place))
    for index, name in enumerate(names):
        at = {b: i + _offset(index, len(names)) for i, b in enumerate(benchmarks)}
        points = [
            (at[b], s.precision, s.intervals.get("precision"))
            for b in benchmarks
            if (s := by_place.get((name, b))) and s.counts.accepted
        ]
        _errorbars(axes, points, name)
    _percent_axis(axes, "precision")
    axes.set_xticks(range(len(benchmarks)), [benchmark_name(b) for b in benchmarks])
    axes.legend(fontsize="small")
    return True


def draw_success_rates(axes: Axes, scores: ScoreReport) -> bool:
    """Success rate of every agent by expert, judge and rule, over all benchmarks; of several
    judges the expert's and the rule's bars are those of the first."""
    rates = [r for r in scores.success_rates if r.benchmark == OVERALL and r.agent != ALL_AGENTS]
    if not rates:
        return False
    judges = list(dict.fromkeys(r.judge for r in rates))
    agents = list(dict.fromkeys(r.agent for r in rates))
    first = {r.agent: r for r in reversed(rates)}
    bars: list[tuple[str, dict[str, tuple[float | None, Limits | None]]]] = [
        ("expert", {a: (r.expert, r.intervals.get("expert")) for a, r in first.items()})
    ]
    for judge in judges:
        mine = [r for r in rates if r.judge == judge]
        values = {r.agent: (r.judge_rate, r.intervals.get("judge_rate")) for r in mine}
        bars.append((judge, values))
    rule = {a: (r.rule_based, r.intervals.get("rule_based")) for a, r in first.items()}
    bars.append(("rule-based", rule))
    for index, (name, values) in enumerate(bars):
        points = [
            (i + _offset(index, len(bars)), *values[agent])
            for i, agent in enumerate(agents)
            if agent in values
        ]
        _errorbars(axes, points, name)
    _percent_axis(axes, "success rate")
    axes.set_xticks(range(len(agents)), [fill(a, 22) for a in agents], fontsize="small")
    if len(agents) > _LEVEL_NAMES:
        axes.tick_params(axis="x", labelrotation=45)
    axes.legend(fontsize="small")
    return True


def draw_precision_recall(
    axes: Axes, scores: ScoreReport, observed: Mapping[str, Observations]
) -> bool:
    """Each judge's verdicts as a point; of judges that give scores the whole curve."""
    overall = {name: s for (name, b), s in _by_place(scores).items() if b == OVERALL}
    points = {
        name: (s.recall, s.precision, s.intervals)
        for name, s in overall.items()
        if s.recall is not None and s.precision is not None and s.counts.accepted
    }
    if not points:
        return False
    for name, (x, y, limits) in points.items():
        mark = axes.errorbar(
            [100 * x],
            [100 * y],
            xerr=_ends(x, limits.get("recall")),
            yerr=_ends(y, limits.get("precision")),
            fmt="o",
            capsize=3,
            label=name,
        )
        seen = observed.get(name)
        curve = None if seen is None else threshold_curve(seen)
        if curve is not None:
            axes.step(*(100 * curve), where="post", color=mark[0].get_color(), linewidth=1)
    _percent_axis(axes, "precision")
    axes.set_xlim(0, 105)
    axes.set_xlabel("recall (%)")
    axes.legend(fontsize="small")
    return True


def draw_calibration(axes: Axes, observed: Mapping[str, Observations]) -> bool:
    """Share of real successes by the judge's score, with intervals, ten equal bins."""
    drawn = False
    for name, seen in observed.items():
        bins = score_bins(seen)
        if not bins:
            continue
        _errorbars(axes, [(100 * each.score, each.share, each.limits) for each in bins], name)
        drawn = True
    if not drawn:
        return False
    axes.plot([0, 100], [0, 100], color="grey", linewidth=1)
    _percent_axis(axes, "labelled successful")
    axes.set_xlabel("judge's score (%)")
    axes.legend(fontsize="small")
    return True


def draw_profiles(axes: Axes, detailed: ScoreReport) -> bool:
    """Share of the (benchmark, agent) cells on which a judge's precision is at least so high
    (Statistical Precipice section 6.2); a cell without an accepted trajectory is left out."""
    cells: dict[str, dict[tuple[str, str], float]] = {}
    for s in detailed.scores:
        whole = s.benchmark == OVERALL or s.agent == ALL_AGENTS or s.label != "success"
        if not whole and s.precision is not None and s.counts.accepted:
            cells.setdefault(evaluator_name(s), {}).setdefault((s.benchmark, s.agent), s.precision)
    if not cells:
        return False
    thresholds = np.linspace(0, 1, 201)
    for name, values in cells.items():
        axes.step(
            100 * thresholds, 100 * performance_profile([*values.values()], thresholds), label=name
        )
    _percent_axis(axes, "benchmark × agent cells")
    axes.set_xlabel("precision at least (%)")
    axes.legend(fontsize="small")
    return True


def _by_place(scores: ScoreReport) -> dict[tuple[str, str], Score]:
    """(judge or rule, benchmark) -> success over all agents; one rule-based row, the first."""
    by_place: dict[tuple[str, str], Score] = {}
    for s in scores.scores:
        if s.label == "success" and s.agent == ALL_AGENTS:
            by_place.setdefault((evaluator_name(s), s.benchmark), s)
    return by_place


def threshold_curve(seen: Observations) -> Floats | None:
    """Return recall and precision, (2, K), by descending threshold; None without scores or
    successes."""
    here = seen.at(~np.isnan(seen.scores))
    if not here.labels.any():
        return None
    order = np.argsort(-here.scores, kind="stable")
    last = np.r_[np.diff(here.scores[order]) != 0, True]
    true = here.labels[order].cumsum()[last]
    accepted = np.flatnonzero(last) + 1
    return np.stack([true / here.labels.sum(), true / accepted])


def score_bins(seen: Observations) -> list[ScoreBin]:
    """Set labels beside scores in ten equal bins, those without a score left out.

    The interval of a bin is that of the precision of a judge that accepts the bin, over all tasks:
    that over the bin's own takes for certain how many of them each benchmark has, and covers too
    seldom where benchmarks differ.
    """
    scored = np.flatnonzero(~np.isnan(seen.scores))
    place = np.full(len(seen), -1)
    place[scored] = np.minimum((seen.scores[scored] * _BINS).astype(int), _BINS - 1)
    inside = place[:, None] == np.unique(place[scored])
    rates = rates_by_cluster(inside & seen.labels[:, None], inside, seen.task, seen.benchmark)
    ends = zip(
        rates.interval.estimate.tolist(),
        rates.interval.low.tolist(),
        rates.interval.high.tolist(),
        strict=True,
    )
    return [
        # Of one task nothing is known of the next: the whole scale.
        ScoreBin(
            float(seen.scores[mine].mean()),
            share,
            (0.0, 1.0) if np.isnan(low) else (low, high),
            int(mine.sum()),
        )
        for mine, (share, low, high) in zip(inside.T, ends, strict=True)
    ]


def _errorbars(
    axes: Axes, points: Sequence[tuple[float, float | None, Limits | None]], name: str
) -> None:
    """Draw points with their bars; one without an interval stands without a bar."""
    shown = [(x, y, limits) for x, y, limits in points if y is not None]
    axes.errorbar(
        [x for x, _, _ in shown],
        [100 * y for _, y, _ in shown],
        yerr=np.concatenate([_ends(y, limits) for _, y, limits in shown], axis=1)
        if shown
        else None,
        fmt="o",
        capsize=3,
        label=name,
    )


def _ends(value: float, limits: Limits | None) -> np.ndarray[Any, Any]:
    """Lengths (2, 1) of an error bar in percentage points, NaN where there is none. Under the
    paper's rounding an estimate may lie a digit outside its interval."""
    low, high = limits or (np.nan, np.nan)
    return 100 * np.array([[np.maximum(0.0, value - low)], [np.maximum(0.0, high - value)]])


def _offset(index: int, n: int) -> float:
    """Places beside each other within a unit of the axis."""
    return 0.7 * ((index + 0.5) / n - 0.5)


def _percent_axis(axes: Axes, name: str) -> None:
    axes.set_ylim(0, 105)
    axes.set_ylabel(f"{name} (%)")
    axes.grid(axis="y", alpha=0.3)
