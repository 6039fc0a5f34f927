"""Judgments against expert labels: what a judge is worth, per benchmark, agent and label.

``score`` is the whole of it; the records that it gives are those of ``eval.scores``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from annotations.agentrewardbench import BENCHMARKS, benchmark_of
from annotations.model import Labels
from eval.comparing import compare
from eval.metrics import accuracy, f1, kappa, mcc, npv, precision, recall, tnr
from eval.observations import Observations, asked_labels, observe, one_per_trajectory
from eval.protocol import ProtocolCounts, protocol_counts, protocol_rates
from eval.remarks import remarks
from eval.scores import (
    ALL_AGENTS,
    LABELS,
    OVERALL,
    RULE_BASED,
    Coverage,
    Label,
    Missing,
    Score,
    Scores,
    Spending,
    StageLedger,
)
from eval.stats.interval import Bools
from eval.success_rates import success_rate_of
from eval.uncertainty import Bootstrap, Scored, with_intervals
from judges.model import Call, Judgment, Status, Usage
from trajectories.model import TrajectoryKey

__all__ = ["OVERALL", "Label", "Missing", "Score", "Scores", "one_per_trajectory", "score"]


class Group(NamedTuple):
    """What a row of a table is about: a benchmark or all, an agent or all."""

    benchmark: str
    agent: str

    def mask(self, seen: Observations) -> Bools:
        """Which observations belong to it."""
        chosen = np.ones(len(seen), dtype=bool)
        if self.benchmark != OVERALL:
            chosen &= seen.benchmark == self.benchmark
        if self.agent != ALL_AGENTS:
            chosen &= seen.agent == self.agent
        return chosen

    def covers(self, benchmark: str, agent: str) -> bool:
        return self.benchmark in (OVERALL, benchmark) and self.agent in (ALL_AGENTS, agent)


def score(
    judgments: Iterable[Judgment],
    labels: Labels,
    *,
    rewards: Mapping[TrajectoryKey, float | None],
    missing: Missing = "negative",
    by_agent: bool = False,
    bootstrap: Bootstrap | None = None,
) -> Scores:
    """Score every judge on every benchmark and overall; ``by_agent`` also agent by agent.

    ``rewards`` holds the official reward of every trajectory of the run (None: unknown). Several
    samples of one judge on one trajectory are one observation: their majority.

    What a failed judgment counts as: ``negative``, as not accepted (a reward model would not have
    taken it); ``exclude``, not at all; ``agentrewardbench``, as the paper has it: a reply without
    the tag is 0, no valid reply is -1, and its arithmetic (``eval.protocol``) gives the rates.
    """
    bootstrap = bootstrap or Bootstrap()
    # The judgments' own key objects: equal keys that are one object are found without comparing.
    own = {key: key for key in rewards}
    labels = {own.get(key, key): label for key, label in labels.items()}
    by_judge: dict[str, list[Judgment]] = defaultdict(list)
    for judgment in judgments:
        by_judge[judgment.judge].append(judgment)
    found: list[Scored] = []
    rates, coverage, success = [], [], {}
    for judge in sorted(by_judge):
        verdicts = one_per_trajectory(by_judge[judge])
        keys = {j.key for j in verdicts} | set(rewards)
        observed = {
            label: observe(verdicts, label, labels, rewards, missing)
            for label in asked_labels(verdicts)
        }
        success[judge] = observed["success"]
        tally = _Tally(verdicts, keys, labels)
        for group in groups(keys, by_agent=True):
            detailed = by_agent or group.agent == ALL_AGENTS
            if detailed:
                coverage.append(tally.coverage(judge, group))
            if not tally.count("judged", group):
                continue
            cut = observed["success"].where(group.mask(observed["success"]))
            rates.append(success_rate_of(judge, *group, cut, missing))
            for label in observed if detailed else ():
                cut = observed[label].where(group.mask(observed[label]))
                place = {"judge": judge, **group._asdict(), "label": label}
                place["unsure"] = tally.count(label, group)
                found += _score_label(place, cut, missing)
    return Scores(
        missing=missing,
        resamples=bootstrap.resamples,
        seed=bootstrap.seed,
        scores=tuple(with_intervals(found, bootstrap)),
        success_rates=tuple(rates),
        comparison=compare(success, missing, bootstrap),
        coverage=tuple(coverage),
        spending=tuple(_spending(judge, by_judge[judge]) for judge in sorted(by_judge)),
        remarks=tuple(line for judge in sorted(by_judge) for line in remarks(by_judge[judge])),
    )


def groups(keys: Iterable[TrajectoryKey], *, by_agent: bool) -> list[Group]:
    """Known benchmarks in the paper's order, others by name, then all of them; of each first all
    agents, then one by one where it has several (or where ``overall`` has)."""
    agents: dict[str, set[str]] = defaultdict(set)
    for key in keys:
        agents[benchmark_of(key)].add(key.agent)
    known = [benchmark for benchmark in BENCHMARKS if benchmark in agents]
    ordered = [*known, *sorted(set(agents) - set(known)), OVERALL]
    agents[OVERALL] = set().union(*agents.values())
    return [
        Group(benchmark, agent)
        for benchmark in ordered
        for agent in (ALL_AGENTS, *(sorted(agents[benchmark]) if by_agent else ()))
    ]


class _Tally:
    """Counts of one judge: how judgments ended, what was not judged, which labels are unsure."""

    def __init__(
        self, judgments: Sequence[Judgment], keys: Iterable[TrajectoryKey], labels: Labels
    ) -> None:
        self._cells: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for key in keys:
            self._cells[benchmark_of(key), key.agent]["all"] += 1
        for judgment in judgments:
            cell = self._cells[benchmark_of(judgment.key), judgment.key.agent]
            cell["judged"] += 1
            cell[f"status {judgment.status}"] += 1
            annotation = labels.get(judgment.key)
            if annotation is None:
                cell["unlabelled"] += 1
                continue
            for label in LABELS:
                if getattr(annotation, label) is None:
                    cell[label] += 1

    def count(self, what: str, group: Group) -> int:
        """How many judgments of the group are ``judged``, ``unlabelled``, unsure of a label."""
        return sum(found[what] for cell, found in self._cells.items() if group.covers(*cell))

    def coverage(self, judge: str, group: Group) -> Coverage:
        judged = self.count("judged", group)
        ended = {status: self.count(f"status {status}", group) for status in Status}
        return Coverage(
            judge=judge,
            benchmark=group.benchmark,
            agent=group.agent,
            judged=judged,
            statuses={status: n for status, n in ended.items() if n},
            unjudged=self.count("all", group) - judged,
            unlabelled=self.count("unlabelled", group),
        )


def _score_label(place: Mapping[str, object], seen: Observations, missing: Missing) -> list[Scored]:
    """The judge's score and, for success, the baseline's on the trajectories it was scored on."""
    failed = int((~seen.answered).sum())
    if missing == "exclude":
        seen = seen.where(seen.answered)
    found = protocol_counts(seen.truth, seen.verdict)
    score = Score.model_validate({**place, "missing": failed, **_rates(found, missing)})
    scored = [Scored(score, seen, found.missing_negative)]
    if place["label"] == "success" and place["judge"] != RULE_BASED:
        rewarded = ~np.isnan(seen.reward)
        rule = seen.where(rewarded).ruled()
        counts = protocol_counts(rule.truth, rule.verdict)
        more = {"baseline": True, "without_reward": int((~rewarded).sum())}
        score = Score.model_validate({**place, **more, **_rates(counts, missing)})
        scored.append(Scored(score, rule, 0))
    return scored


def _rates(found: ProtocolCounts, missing: Missing) -> dict[str, object]:
    """The numbers of a Score."""
    counts = found.counts
    rates: dict[str, object] = {
        "n": found.n,
        "positives": counts.positives + found.missing_positive,
        "counts": counts,
        "kappa": kappa(counts),
        "mcc": mcc(counts),
    }
    if missing == "agentrewardbench":
        return rates | protocol_rates(found).model_dump()
    plain = (precision, recall, f1, accuracy, npv, tnr)
    return rates | {rate.__name__: rate(counts) for rate in plain}


def _spending(judge: str, judgments: Iterable[Judgment]) -> Spending:
    stages: dict[str, list[Call]] = {}
    for judgment in judgments:
        for call in judgment.calls:
            stages.setdefault(call.stage, []).append(call)
    return Spending(
        judge=judge,
        stages=tuple(StageLedger(stage=name, **_sums(calls)) for name, calls in stages.items()),
        **_sums([call for calls in stages.values() for call in calls]),
    )


def _sums(calls: Sequence[Call]) -> dict[str, Any]:
    prices = [call.cost for call in calls if call.cost is not None]
    return {
        "calls": len(calls),
        "usage": sum((call.usage for call in calls), Usage()),
        "cost": sum(prices) if prices else None,
        "unpriced": len(calls) - len(prices),
        "seconds": sum(call.seconds for call in calls),
    }
