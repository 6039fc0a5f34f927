"""Every judge against the rule-based baseline on the same trajectories: AgentRewardBench's first
question, asked of precision, recall and F1 in every benchmark and overall."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from trajudge.eval.comparison.paired import paired_differences
from trajudge.eval.scoring.observations import Observations
from trajudge.eval.scoring.records import ALL_AGENTS, RULE_BASED, MetricDifference
from trajudge.eval.scoring.success_rates import RateCells
from trajudge.eval.stats.judging.comparison import holm


def against_baseline(
    cells: Iterable[RateCells], *, exclude_missing: bool
) -> list[MetricDifference]:
    """Differences, judge less rule, of every judge and benchmark with all agents; trajectories
    without an official reward are left out, failed judgments where ``exclude_missing``."""
    together: dict[tuple[str, bytes], list[tuple[str, Observations]]] = {}
    for cell in cells:
        if cell.judge == RULE_BASED or cell.group.agent != ALL_AGENTS:
            continue
        observations = cell.observations.where(~np.isnan(cell.observations.reward))
        if exclude_missing:
            observations = observations.where(observations.answered)
        if len(observations):
            shared = cell.group.benchmark, observations.trajectories
            together.setdefault(shared, []).append((cell.judge, observations))
    found = [
        difference
        for (benchmark, _), judges in together.items()
        for difference in _differences(benchmark, judges)
    ]
    return _corrected(found)


def _differences(
    benchmark: str, judges: Sequence[tuple[str, Observations]]
) -> Iterator[MetricDifference]:
    """Of judges on the same trajectories."""
    rule = judges[0][1].as_rule_based()
    pairs = [(number, len(judges)) for number in range(len(judges))]
    differences = paired_differences([*(observations for _, observations in judges), rule], pairs)
    for number, (judge, observations) in enumerate(judges):
        for metric, found in differences.items():
            yield MetricDifference(
                benchmark=benchmark,
                metric=metric,
                first=judge,
                second=RULE_BASED,
                n=len(observations),
                p_holm=None,
                **found[number]._asdict(),
            )


def _corrected(found: list[MetricDifference]) -> list[MetricDifference]:
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
