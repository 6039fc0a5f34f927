"""Sentences that must stand below the tables: what weakens the numbers."""

from __future__ import annotations

from collections import Counter

from trajudge.eval.reporting.formatting import benchmark_name
from trajudge.eval.scoring.records import ALL_AGENTS, LABEL_TITLES, OVERALL, Score, Scores
from trajudge.trajectories.util.terminal import one_line

FEW_POSITIVES = 20

_METRICS = {
    "f1": "F1",
    "npv": "NPV",
    "tnr": "TNR",
    "kappa": "κ",
    "mcc": "MCC",
    "roc_auc": "ROC-AUC",
    "average_precision": "average precision",
    "brier": "Brier",
    "calibration_error": "calibration error",
}

SHOWN = 4  # warnings of one kind
_FAILED = {
    "negative": "counted as not accepted",
    "exclude": "left out",
    "agentrewardbench": "counted as AgentRewardBench does",
}


def notes(scores: Scores, wall_seconds: float | None = None) -> list[str]:
    """Too few positives, failed judgments, what was left out, undefined comparisons, wall time."""
    lines = [*_few_positives(scores), *scores.remarks]
    for found in scores.scores:
        if found.benchmark == OVERALL and found.agent == ALL_AGENTS:
            lines += _left_out(found, _FAILED[scores.missing])
    lines += _without_interval(scores)
    if wall_seconds is not None:
        lines.append(f"wall time: {wall_seconds:.1f} s")
    return [one_line(line) for line in lines]


def is_labelled(found: Score) -> bool:
    """Whether an expert's label stands behind the row, judged or not."""
    return bool(found.n or found.missing or found.unsure)


def shown_benchmarks(scores: Scores) -> set[str]:
    """One benchmark alone is shown once, not as overall a second time."""
    benchmarks = {found.benchmark for found in scores.coverage}
    return benchmarks - {OVERALL} if len(benchmarks) == 2 else benchmarks


def _few_positives(scores: Scores) -> list[str]:
    """A warning for every label and benchmark with too few positives, its judges together."""
    judges: dict[tuple[str, str, int], list[str]] = {}
    shown = shown_benchmarks(scores)
    for found in scores.scores:
        few = found.positives < FEW_POSITIVES and found.benchmark in shown
        if few and not found.baseline and is_labelled(found):
            whole = found.benchmark == OVERALL
            place = "overall" if whole else f"on {benchmark_name(found.benchmark)}"
            if found.agent != ALL_AGENTS:
                place += f" by {found.agent}"
            cell = (LABEL_TITLES[found.label], place, found.positives)
            judges.setdefault(cell, []).append(found.judge)
    lines = [
        f"warning: {title} {place} has {positives} positives, fewer than "
        f"{FEW_POSITIVES}, for {', '.join(names)}: read the intervals, not the points"
        for (title, place, positives), names in judges.items()
    ]
    return _first(lines, "warnings of few positives", "positives")


def _without_interval(scores: Scores) -> list[str]:
    """Why metrics, or differences between judges, have no interval."""
    if not any(map(is_labelled, scores.scores)):
        return []
    lines = _reasons(scores, shown_benchmarks(scores))
    if not scores.resamples:
        return [*lines, "no resamples: judges are not compared"]
    return [*lines, *_different_trajectories(scores), *_undefined_differences(scores)]


def _different_trajectories(scores: Scores) -> list[str]:
    """Where the judges' order and their differences are not on the same trajectories."""
    sizes = {
        s.n
        for s in scores.scores
        if (s.benchmark, s.agent, s.label, s.baseline) == (OVERALL, ALL_AGENTS, "success", False)
    }
    compared = {
        d.n for d in scores.comparison.differences if (d.benchmark, d.label) == (OVERALL, "success")
    }
    if len(sizes | compared) < 2:
        return []
    return [
        "the judges were not all scored on the same trajectories: their order is by what each "
        "was scored on, their differences are on the trajectories that both judged"
    ]


def _undefined_differences(scores: Scores) -> list[str]:
    reasons = Counter(d.note for d in scores.comparison.differences if d.note)
    return [
        f"{count} differences between judges have no interval: {reason}"
        for reason, count in reasons.items()
    ]


def _reasons(scores: Scores, shown: set[str]) -> list[str]:
    """Which metrics have no interval and why, judges with the same ones together."""
    cells: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for s in scores.scores:
        if s.benchmark not in shown:
            continue
        by = "" if s.agent == ALL_AGENTS else f" by {s.agent}"
        place = f"{LABEL_TITLES[s.label]}, {benchmark_name(s.benchmark)}{by}"
        name = f"rule-based beside {s.judge}" if s.baseline else s.judge
        for reason in dict.fromkeys(s.no_interval.values()):
            names = tuple(_METRICS.get(r, r) for r, why in s.no_interval.items() if why == reason)
            cells.setdefault((place, reason, names), []).append(name)
    lines = [
        f"{place}: no interval of {', '.join(names)} for {', '.join(judges)}: {reason}"
        for (place, reason, names), judges in cells.items()
    ]
    return _first(lines, "reasons for no interval", "no_interval")


def _first(lines: list[str], what: str, column: str) -> list[str]:
    """The first few of many alike; what they say stands in every row of the results too."""
    if len(lines) <= SHOWN + 1:
        return lines
    rest = len(lines) - SHOWN
    return [*lines[:SHOWN], f"and {rest} more {what}: see {column} in results.csv"]


def _left_out(found: Score, policy: str) -> list[str]:
    """What one overall row does not count, or counts by policy."""
    name, where = found.judge, LABEL_TITLES[found.label]
    if found.baseline:
        what = f"{found.without_reward} trajectories without official reward left out"
        return [f"rule-based beside {name}: {what}"] if found.without_reward else []
    lines = []
    if found.missing:
        lines.append(f"{name}, {where}: {found.missing} failed judgments {policy}")
    if found.unsure:
        lines.append(f"{name}, {where}: {found.unsure} labels unsure, left out")
    return lines
