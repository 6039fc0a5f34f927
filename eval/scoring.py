"""Judgments against expert labels: what a judge is worth, per benchmark and label.

A failed judgment is never dropped in silence: ``missing`` states what it counts as, and every
score says how many there were.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from annotations.agentrewardbench import BENCHMARKS, benchmark_of
from annotations.model import Labels
from eval.intervals import wilson
from eval.metrics import Counts, accuracy, f1, kappa, npv, precision, recall, tnr
from eval.protocol import MISSING, ProtocolCounts, protocol_counts, protocol_rates
from eval.remarks import remarks
from judges.model import Call, Judgment, Status, Usage
from trajectories.model import Record, TrajectoryKey

Label = Literal["success", "side_effect", "repetition"]
Missing = Literal["negative", "exclude", "agentrewardbench"]
LABELS: tuple[Label, ...] = get_args(Label)
OVERALL = "overall"
RULE_BASED = "rule-based"

# There was a reply, without the verdict: AgentRewardBench counts the missing tag as 0.
_REPLY_WITHOUT_VERDICT = {Status.OK, Status.UNPARSABLE, Status.TRUNCATED}


class Score(Record):
    """One judge (or the rule-based ``baseline`` on the same trajectories) on one label.

    ``n`` trajectories were scored, ``positives`` of them labelled positive; ``missing`` of the
    ``n`` judgments failed (under ``exclude``: beside the ``n``). Left out and counted: ``unsure``
    labels and, for the baseline, trajectories ``without_reward``. Rates are fractions, None where
    undefined; ``precision_low`` and ``precision_high`` are Wilson's 95 % limits.
    """

    judge: str
    baseline: bool = False
    benchmark: str
    label: Label
    n: int
    positives: int
    counts: Counts
    missing: int = 0
    unsure: int = 0
    without_reward: int = 0
    precision: float | None
    precision_low: float | None
    precision_high: float | None
    recall: float | None
    f1: float | None
    accuracy: float | None
    npv: float | None
    tnr: float | None
    kappa: float | None


class Coverage(Record):
    """How the judgments of one judge ended: ``statuses`` sum to ``judged``. Beside them the
    trajectories of the run that were not judged, and the judged ones without annotation."""

    judge: str
    benchmark: str
    judged: int
    statuses: dict[Status, int]
    unjudged: int
    unlabelled: int


class Ledger(Record):
    """What calls used. ``cost`` in US dollars over the calls whose price is known, None if there
    is none; ``unpriced`` calls come on top. ``seconds`` is the latency of those that were sent,
    added up."""

    calls: int
    usage: Usage
    cost: float | None
    unpriced: int
    seconds: float = 0.0


class StageLedger(Ledger):
    """One stage of a judge: caption, describe, verdict, ..."""

    stage: str


class Spending(Ledger):
    """What one judge used; ``stages`` in the order in which it asks."""

    judge: str
    stages: tuple[StageLedger, ...]


class Scores(Record):
    """Everything that the tables show, in a stable order."""

    missing: Missing
    scores: tuple[Score, ...]
    coverage: tuple[Coverage, ...]
    spending: tuple[Spending, ...]
    remarks: tuple[str, ...] = ()


def score(
    judgments: Iterable[Judgment],
    labels: Labels,
    *,
    rewards: Mapping[TrajectoryKey, float | None],
    missing: Missing = "negative",
) -> Scores:
    """Score every judge on every benchmark and overall.

    ``rewards`` holds the official reward of every trajectory of the run (None: unknown). Several
    samples of one judge on one trajectory are one observation: their majority.

    What a failed judgment counts as: ``negative``, as not accepted (a reward model would not have
    taken it); ``exclude``, not at all; ``agentrewardbench``, as the paper has it: a reply without
    the tag is 0, no valid reply is -1, and its arithmetic (``eval.protocol``) gives the rates.
    """
    by_judge: dict[str, list[Judgment]] = defaultdict(list)
    for judgment in judgments:
        by_judge[judgment.judge].append(judgment)
    scores: list[Score] = []
    coverage: list[Coverage] = []
    for judge in sorted(by_judge):
        verdicts = one_per_trajectory(by_judge[judge])
        asked = _asked_labels(verdicts)
        for benchmark, keys in _by_benchmark({j.key for j in verdicts} | set(rewards)).items():
            here = [j for j in verdicts if j.key in keys]
            coverage.append(_coverage(judge, benchmark, here, keys, labels))
            if here:
                for label in asked:
                    scores += _score_label(benchmark, label, here, labels, rewards, missing=missing)
    return Scores(
        missing=missing,
        scores=tuple(scores),
        coverage=tuple(coverage),
        spending=tuple(_spending(judge, by_judge[judge]) for judge in sorted(by_judge)),
        remarks=tuple(line for judge in sorted(by_judge) for line in remarks(by_judge[judge])),
    )


def one_per_trajectory(judgments: Iterable[Judgment]) -> list[Judgment]:
    """One judgment a trajectory, in the order of keys: of several samples the strict majority of
    those that answered, label by label; a tie is a no."""
    samples: dict[TrajectoryKey, list[Judgment]] = defaultdict(list)
    for judgment in judgments:
        samples[judgment.key].append(judgment)
    return [_majority(samples[key]) for key in sorted(samples, key=lambda key: key.order)]


def _majority(samples: Sequence[Judgment]) -> Judgment:
    answered = [judgment for judgment in samples if judgment.status is Status.OK]
    if len(samples) == 1 or not answered:
        return samples[0]
    merged: dict[str, bool | None] = {}
    for label in LABELS:
        votes = [vote for j in answered if (vote := getattr(j, label)) is not None]
        merged[label] = 2 * sum(votes) > len(votes) if votes else None
    return answered[0].model_copy(update=merged)


def _asked_labels(verdicts: Sequence[Judgment]) -> list[Label]:
    """Success, and what this judge answered at least once."""
    return [
        label
        for label in LABELS
        if label == "success" or any(getattr(j, label) is not None for j in verdicts)
    ]


def _by_benchmark(keys: Iterable[TrajectoryKey]) -> dict[str, set[TrajectoryKey]]:
    """Known benchmarks in the paper's order, others by name, all of them under ``overall``."""
    groups: dict[str, set[TrajectoryKey]] = defaultdict(set)
    for key in keys:
        groups[benchmark_of(key)].add(key)
    known = [benchmark for benchmark in BENCHMARKS if benchmark in groups]
    ordered = [*known, *sorted(set(groups) - set(known))]
    return {b: groups[b] for b in ordered} | {OVERALL: set().union(*groups.values())}


def _score_label(
    benchmark: str,
    label: Label,
    judgments: Sequence[Judgment],
    labels: Labels,
    rewards: Mapping[TrajectoryKey, float | None],
    *,
    missing: Missing,
) -> list[Score]:
    """The judge's score and, for success, the baseline's on the trajectories it was scored on."""
    judge = judgments[0].judge
    annotated = [j for j in judgments if j.key in labels]
    known = [j for j in annotated if getattr(labels[j.key], label) is not None]
    failed = sum(not _answered(j, label) for j in known)
    scored = [j for j in known if missing != "exclude" or _answered(j, label)]
    truth = [int(getattr(labels[j.key], label)) for j in scored]
    found = protocol_counts(truth, [_verdict(j, label, missing) for j in scored])
    unsure = len(annotated) - len(known)
    place = {"judge": judge, "benchmark": benchmark, "label": label, "unsure": unsure}
    scores = [Score(**place, missing=failed, **_rates(found, missing))]
    if label == "success" and judge != RULE_BASED:
        pairs = [
            (expert, int(reward > 0.5))
            for expert, judgment in zip(truth, scored, strict=True)
            if (reward := rewards.get(judgment.key)) is not None
        ]
        rule = protocol_counts([t for t, _ in pairs], [v for _, v in pairs])
        without = len(scored) - len(pairs)
        scores.append(
            Score(**place, baseline=True, without_reward=without, **_rates(rule, missing))
        )
    return scores


def _answered(judgment: Judgment, label: Label) -> bool:
    return judgment.status is Status.OK and getattr(judgment, label) is not None


def _verdict(judgment: Judgment, label: Label, missing: Missing) -> int:
    """1, 0, or -1 for what the paper's protocol calls a missing response."""
    if _answered(judgment, label):
        return int(getattr(judgment, label))
    if missing == "agentrewardbench" and judgment.status not in _REPLY_WITHOUT_VERDICT:
        return MISSING
    return 0


def _rates(found: ProtocolCounts, missing: Missing) -> dict[str, object]:
    """The numbers of a Score."""
    counts = found.counts
    limits = wilson(counts.tp, counts.accepted)
    rates: dict[str, object] = {
        "n": found.n,
        "positives": counts.positives + found.missing_positive,
        "counts": counts,
        "precision_low": limits.low if limits else None,
        "precision_high": limits.high if limits else None,
        "kappa": kappa(counts),
    }
    if missing == "agentrewardbench":
        return rates | protocol_rates(found).model_dump()
    plain = (precision, recall, f1, accuracy, npv, tnr)
    return rates | {rate.__name__: rate(counts) for rate in plain}


def _coverage(
    judge: str,
    benchmark: str,
    judgments: Sequence[Judgment],
    keys: set[TrajectoryKey],
    labels: Labels,
) -> Coverage:
    ended = Counter(j.status for j in judgments)
    return Coverage(
        judge=judge,
        benchmark=benchmark,
        judged=len(judgments),
        statuses={status: ended[status] for status in Status if ended[status]},
        unjudged=len(keys) - len(judgments),
        unlabelled=sum(j.key not in labels for j in judgments),
    )


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
