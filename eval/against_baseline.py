"""Every judge against the rule-based baseline on the same trajectories: AgentRewardBench's first
question, asked of precision, recall and F1 in every benchmark and overall."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from eval.observations import Observations
from eval.scores import ALL_AGENTS, RULE_BASED, Difference, Rate
from eval.stats.cluster_bootstrap import sum_clusters
from eval.stats.clustered_differences import clustered_differences
from eval.stats.comparison import holm
from eval.stats.interval import Floats
from eval.stats.verdict_intervals import PARTS, verdict_columns
from eval.success_rates import RateCells

METRICS: tuple[Rate, ...] = ("precision", "recall", "f1")
UNDEFINED = "one of the two is undefined: a denominator is zero"
ONE_TASK = "fewer than two tasks: no interval"


def against_baseline(cells: Iterable[RateCells], *, exclude_missing: bool) -> list[Difference]:
    """Differences, judge less rule, of every judge and benchmark with all agents; trajectories
    without an official reward are left out, failed judgments where ``exclude_missing``."""
    found: list[Difference] = []
    for cell in cells:
        if cell.judge == RULE_BASED or cell.group.agent != ALL_AGENTS:
            continue
        seen = cell.seen.where(~np.isnan(cell.seen.reward))
        if exclude_missing:
            seen = seen.where(seen.answered)
        if len(seen):
            found += _differences(cell.judge, cell.group.benchmark, seen)
    return _corrected(found)


def _differences(judge: str, benchmark: str, seen: Observations) -> Iterator[Difference]:
    verdicts = np.column_stack([seen.verdict, seen.ruled().verdict])
    columns = verdict_columns(verdicts, np.column_stack([seen.truth] * 2))
    clusters = sum_clusters(columns.reshape(len(seen), -1), seen.task, seen.benchmark)
    counts = clusters.sums.reshape(len(clusters.sums), 2, -1).transpose(1, 0, 2)
    for metric in METRICS:
        hits, trials = (counts[..., list(part)].sum(axis=-1) for part in PARTS[metric])
        transform = _f1 if metric == "f1" else np.asarray
        told = clustered_differences(hits, trials, clusters.stratum_sizes, transform=transform)
        value, low, high, p = (
            None if np.isnan(number) else float(number)
            for number in (
                told.interval.estimate,
                told.interval.low,
                told.interval.high,
                told.p_value,
            )
        )
        yield Difference(
            benchmark=benchmark,
            metric=metric,
            first=judge,
            second=RULE_BASED,
            n=len(seen),
            difference=value,
            low=low,
            high=high,
            p=p,
            p_holm=None,
            note=UNDEFINED if value is None else "" if low is not None else ONE_TASK,
        )


def _f1(jaccard: Floats) -> Floats:
    return np.asarray(2 * jaccard / (1 + jaccard))


def _corrected(found: list[Difference]) -> list[Difference]:
    """With Holm's correction over the judges of one benchmark and metric."""
    families: dict[tuple[str, str], list[int]] = {}
    for place, each in enumerate(found):
        families.setdefault((each.benchmark, each.metric), []).append(place)
    corrected = [*found]
    for places in families.values():
        p_values = holm([np.nan if (p := found[i].p) is None else p for i in places])
        for place, p in zip(places, p_values.tolist(), strict=True):
            value = None if np.isnan(p) else p
            corrected[place] = found[place].model_copy(update={"p_holm": value})
    return corrected
