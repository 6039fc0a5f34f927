"""Sentences that must stand below the tables: what weakens the numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from itertools import chain

from trajudge.eval.reporting.costs import beside_sentence
from trajudge.eval.reporting.estimated_rate_table import without_estimate
from trajudge.eval.reporting.finding import unfinished
from trajudge.eval.reporting.formatting import benchmark_name, evaluator_name
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    LABEL_TITLES,
    LABELS,
    OVERALL,
    EqualRecall,
    Label,
    Score,
    ScoreReport,
)
from trajudge.judges.model import Status
from trajudge.trajectories.util.terminal import count_of, listed, one_line

FEW_POSITIVES = 20
DOES_NOT_READ = "a judge that does not beat these at equal recall does not read the page"

_METRICS = {
    "f1": "F1",
    "npv": "NPV",
    "tnr": "TNR",
    "kappa": "κ",
    "mcc": "MCC",
    "balanced_accuracy": "balanced accuracy",
    "fpr": "FPR",
    "fnr": "FNR",
    "over_accept_share": "over-accept share",
    "roc_auc": "ROC-AUC",
    "average_precision": "average precision",
    "brier": "Brier",
    "calibration_error": "calibration error",
}

SHOWN = 4  # warnings or names of one kind
FAILED = {
    "negative": "counted as not accepted",
    "exclude": "left out",
    "agentrewardbench": "counted as AgentRewardBench does",
}
"""What is said of failed judgments, by what they count as."""


def notes(scores: ScoreReport, wall_seconds: float | None = None) -> list[str]:
    """Say what is not finished or was left out, where positives are too few, judgments failed or
    comparisons are undefined, what was paid beside the tables' cost, and the wall time."""
    lines = [f"warning: {cut}"] if (cut := unfinished(scores.unfinished)) else []
    lines += [*_few_positives(scores, by_agent=True), *beaten_by_baselines(scores), *scores.remarks]
    for score in scores.scores:
        if score.benchmark == OVERALL and score.agent == ALL_AGENTS:
            lines += _left_out(score, scores)
    lines += [*without_estimate(scores), *_without_interval(scores)]
    if paid := beside_sentence(scores.beside):
        lines.append(f"cost: {paid}")
    if wall_seconds is not None:
        lines.append(f"wall time of this session: {wall_seconds:.1f} s")
    return [one_line(line) for line in lines]


def warnings_of(scores: ScoreReport, most: int | None = None) -> list[str]:
    """List what weakens the first screen's figures, the gravest first: failed judgments, judges
    that a trivial baseline equals, too few positives, precision without an interval, judges on
    different trajectories. Of more than ``most`` names a list holds the first."""
    whole = [s for s in scores.scores if s.benchmark == OVERALL and s.agent == ALL_AGENTS]
    lines = _missing_judgments(scores, whole, SHOWN if most is None else min(most, SHOWN))
    few = _few_positives(scores, most, by_agent=False)
    lines += [*beaten_by_baselines(scores, most), *few, *scores.remarks]
    lines += _precision_without_interval(scores, most)
    lines += [f"warning: {line}" for line in _different_trajectories(scores)]
    unrewarded = max((s.without_reward for s in whole if s.baseline), default=0)
    if unrewarded:
        runs = count_of(unrewarded, "trajectory")
        lines.append(f"rule-based: {runs} without official reward left out")
    return lines


def beaten_by_baselines(scores: ScoreReport, most: int | None = None) -> list[str]:
    """Name the judges that do not beat a trivial baseline at equal recall, and those whose
    advantage is within the interval; of more than ``most`` the first."""
    below = _beaten(scores, lambda paired: paired.difference <= 0, most)
    close = _beaten(scores, lambda paired: paired.difference > 0 and (paired.low or 0) <= 0, most)
    lines = []
    if below:
        lines.append(f"warning: no more precise at equal recall: {below}: {DOES_NOT_READ}")
    if close:
        lines.append(f"warning: not significantly more precise at equal recall: {close}")
    return lines


def _beaten(scores: ScoreReport, chosen: Callable[[EqualRecall], bool], most: int | None) -> str:
    """List the comparisons that are ``chosen``, with both precisions in percent."""
    beaten = [
        f"{one.judge} ({100 * one.precision:.1f} %) than {one.baseline} "
        f"({100 * one.baseline_precision:.1f} %)"
        for one in filter(chosen, scores.equal_recall)
    ]
    return listed(beaten, most)


def _missing_judgments(scores: ScoreReport, whole: Sequence[Score], most: int) -> list[str]:
    """Say in one line what judges left without a prediction, and what that counts as; labels are
    named where they differ in it."""
    missing: dict[str, dict[str, list[str]]] = {}
    labels_of = Counter(s.judge for s in whole if not s.baseline and is_labelled(s))
    for s in whole:
        if s.missing and not s.baseline:
            labels = missing.setdefault(s.judge, {}).setdefault(_missing(s, scores), [])
            labels.append(LABEL_TITLES[s.label].lower())
    if not missing:
        return []
    named = [
        " and ".join(
            count + (f" ({', '.join(labels)})" if len(labels) < labels_of[judge] else "")
            for count, labels in counts.items()
        )
        + f" of {judge}"
        for judge, counts in missing.items()
    ]
    if len(named) > most:
        named[most:] = [f"of {count_of(len(named) - most, 'more judge')}"]
    return [f"warning: {', '.join(named)} {FAILED[scores.missing]}"]


def _missing(score: Score, scores: ScoreReport) -> str:
    """Count the labelled trajectories without a prediction: their judgments failed, or ended well
    and left the label open."""
    (judged,) = (
        c
        for c in scores.coverage
        if (c.judge, c.benchmark, c.agent) == (score.judge, score.benchmark, score.agent)
    )
    ok = judged.statuses.get(Status.OK, 0)
    kinds = {"failed": judged.judged > ok, "undecided": judged.verdicts.get(score.label, 0) < ok}
    kind = " or ".join(name for name, some in kinds.items() if some)
    return count_of(score.missing, f"{kind} judgment")


def _precision_without_interval(scores: ScoreReport, most: int | None) -> list[str]:
    """One warning per label and reason, with the benchmarks and, where they differ, whose."""
    shown, missing = shown_benchmarks(scores), dict[tuple[Label, str], dict[str, list[str]]]()
    for s in scores.scores:
        if s.benchmark in shown and "precision" in s.no_interval and s.agent == ALL_AGENTS:
            places = missing.setdefault((s.label, s.no_interval["precision"]), {})
            places.setdefault(evaluator_name(s), []).append(benchmark_name(s.benchmark))
    lines = []
    for (label, reason), places in sorted(
        missing.items(), key=lambda each: LABELS.index(each[0][0])
    ):
        scored = {evaluator_name(s) for s in scores.scores if s.label == label and s.n}
        of = LABEL_TITLES[label].lower() + _where(places, scored, most)
        lines.append(f"warning: precision without an interval ({of}): {reason}")
    return lines


def _where(places: Mapping[str, Sequence[str]], scored: Set[str], most: int | None) -> str:
    """List the benchmarks of each evaluator, of all together where they are alike or too many."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for evaluator, benchmarks in places.items():
        alike.setdefault(tuple(dict.fromkeys(benchmarks)), []).append(evaluator)
    if len(alike) > SHOWN or (len(alike) == 1 and places.keys() == scored):
        return f", {listed(list(dict.fromkeys(chain(*places.values()))), most)}"
    return "".join(
        f"; {', '.join(names) if len(names) <= (most or SHOWN) else f'{len(names)} judges'} on "
        f"{listed(benchmarks, most)}"
        for benchmarks, names in alike.items()
    )


def is_labelled(score: Score) -> bool:
    """Tell whether an expert's answer stands behind the row, judged or not: where none is known,
    the labels do not hold the question at all."""
    return bool(score.n or score.missing)


def shown_benchmarks(scores: ScoreReport) -> set[str]:
    """One benchmark alone is shown once, not as overall a second time."""
    benchmarks = {coverage.benchmark for coverage in scores.coverage}
    return benchmarks - {OVERALL} if len(benchmarks) == 2 else benchmarks


def _few_positives(scores: ScoreReport, most: int | None = None, *, by_agent: bool) -> list[str]:
    """Warn once per label of the benchmarks with too few positives, ``by_agent`` of each agent's
    too; judges are named where not all were scored on the same trajectories."""
    few: dict[Label, dict[str, dict[str, int]]] = {}
    shown = shown_benchmarks(scores)
    for score in scores.scores:
        low = score.positives < FEW_POSITIVES and score.benchmark in shown
        low &= by_agent or score.agent == ALL_AGENTS
        if low and not score.baseline and is_labelled(score):
            place = benchmark_name(score.benchmark)
            place += "" if score.agent == ALL_AGENTS else f" by {score.agent}"
            few.setdefault(score.label, {}).setdefault(score.judge, {})[place] = score.positives
    lines = []
    for label, by_judge in few.items():
        same: dict[tuple[tuple[str, int], ...], list[str]] = {}
        for judge, places in by_judge.items():
            same.setdefault(tuple(places.items()), []).append(judge)
        scored = {s.judge for s in scores.scores if s.label == label and not s.baseline}
        for counts, judges in same.items():
            alike = len(same) == 1 and len(judges) == len(scored)
            names = "" if alike else f" for {listed(judges, most)}"
            lines.append(_few_sentence(LABEL_TITLES[label].lower() + names, counts, most))
    return lines


def _few_sentence(label: str, places: tuple[tuple[str, int], ...], most: int | None) -> str:
    if len(places) == 1:
        place, count = places[0]
        few = f"only {count_of(count, 'positive label')}" if count else "no positive label"
        return f"warning: {few} ({label}, {place}); estimates are unreliable"
    counts = listed([f"{place} {count}" for place, count in places], most)
    return f"warning: few positive labels ({label}): {counts}; estimates are unreliable"


def _without_interval(scores: ScoreReport) -> list[str]:
    """Why metrics, or differences between judges, have no interval."""
    if not any(map(is_labelled, scores.scores)):
        return []
    lines = _reasons(scores, shown_benchmarks(scores))
    if not scores.resamples:
        return [*lines, "no resamples: judges are not compared"]
    return [*lines, *_different_trajectories(scores), *_undefined_differences(scores)]


def _different_trajectories(scores: ScoreReport) -> list[str]:
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
    return ["judges are scored on different trajectories, differences on common ones"]


def _undefined_differences(scores: ScoreReport) -> list[str]:
    reasons = Counter(d.note for d in scores.comparison.differences if d.note)
    return [
        f"no interval of {count_of(count, 'difference')} between judges: {reason}"
        for reason, count in reasons.items()
    ]


def _reasons(scores: ScoreReport, shown: set[str]) -> list[str]:
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


def _first(lines: list[str], kind: str, column: str) -> list[str]:
    """Keep the first few of many alike; every row of the results holds what they say."""
    if len(lines) <= SHOWN + 1:
        return lines
    rest = len(lines) - SHOWN
    return [*lines[:SHOWN], f"and {rest} more {kind}: see {column} in results.csv"]


def _left_out(score: Score, scores: ScoreReport) -> list[str]:
    """Say what one overall row does not count, or counts by policy."""
    name, where = score.judge, LABEL_TITLES[score.label]
    if score.baseline:
        runs = count_of(score.without_reward, "trajectory")
        sentence = f"{runs} without official reward left out"
        return [f"rule-based beside {name}: {sentence}"] if score.without_reward else []
    lines = []
    if score.missing:
        lines.append(f"{name}, {where}: {_missing(score, scores)} {FAILED[scores.missing]}")
    if score.unsure and is_labelled(score):
        lines.append(f"{name}, {where}: {count_of(score.unsure, 'unsure label')} left out")
    return lines
