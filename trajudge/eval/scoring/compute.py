"""Score judgments against expert labels, per benchmark, agent and label: metrics, coverage,
stability, usage and cost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf, nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trajudge.annotations.model import Labels
from trajudge.eval.rungs import RUNGS, WHOLE
from trajudge.eval.scoring.comparison import against_baseline, compare
from trajudge.eval.scoring.intervals import Bootstrap, ScoredObservations, with_intervals
from trajudge.eval.scoring.observations import (
    Observations,
    Predictions,
    ProtocolCounts,
    ReferenceLabels,
    TrajectoryGroup,
    groups,
    on_training_set,
    protocol_counts,
    protocol_rates,
    reward_notes,
)
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    RULE_BASED,
    Counts,
    Coverage,
    EstimatedRate,
    JudgeUsage,
    Label,
    Missing,
    PaidBeside,
    Score,
    ScoreReport,
    StageUsage,
    VerdictRates,
    WeightedCounts,
    rates,
    weighted_counts,
)
from trajudge.eval.scoring.success_rates import RateCells, estimated_rates, success_rates
from trajudge.eval.store.labels import LabelColumns, RewardColumns
from trajudge.eval.store.table import (
    NO_REQUEST,
    STATUSES,
    UNKNOWN,
    CallColumns,
    JudgmentColumns,
    KeyColumns,
    columns_of,
    distinct,
    request_number,
)
from trajudge.judges.model import USAGE_FIELDS, Judgment, Usage
from trajudge.stats.intervals import Bools, Floats, Ints
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.machine import collection_paused
from trajudge.util.terminal import count_of


def coverage_of(
    judge: str,
    group: TrajectoryGroup,
    predictions: Predictions,
    expected: Bools,
    members: Bools,
    *,
    training: Bools,
    answers: Mapping[Label, Bools],
) -> Coverage:
    """Count how the judgments of a group ended.

    ``expected`` (T,) are the trajectories that the judge had to judge, ``members`` (T,) those of
    the group, ``training`` (T,) those that are left out because the judge was trained on them;
    ``answers`` (N,) tell of every label that was predicted which judgments gave it.
    """
    inside = members[predictions.index]
    ended = np.bincount(predictions.status[inside], minlength=len(STATUSES)).tolist()
    cut = np.bincount(predictions.rung[inside], minlength=len(RUNGS)).tolist()
    judged, trained = int(inside.sum()), int((training & members).sum())
    annotated = predictions.reference.annotated[predictions.index]
    answered_by = {label: inside & answered for label, answered in answers.items()}
    return Coverage(
        judge=judge,
        benchmark=group.benchmark,
        agent=group.agent,
        judged=judged,
        statuses={status: n for status, n in zip(STATUSES, ended, strict=True) if n},
        shortened={rung: n for rung, n in zip(RUNGS, cut, strict=True) if n and rung != WHOLE},
        unjudged=int((expected & members & ~training).sum()) - judged,
        unlabelled=int((inside & ~annotated).sum()),
        training=trained,
        verdicts={label: int(answered.sum()) for label, answered in answered_by.items()},
        positive={
            label: int((answered & (predictions.values[label] == 1)).sum())
            for label, answered in answered_by.items()
        },
    )


def unsure(predictions: Predictions, label: Label) -> Bools:
    """Tell which judged trajectories (N,) have an annotation that lacks this label."""
    reference = predictions.reference
    unknown = reference.annotated & (reference.labels[label] == UNKNOWN)
    return np.asarray(unknown[predictions.index])


def stability_notes(judgments: JudgmentColumns, trajectories: int) -> list[str]:
    """Sentences about one judge of so many trajectories for the notes below the tables."""
    several = len(judgments) > trajectories
    samples = [*_flips(judgments), *_failed_samples(judgments)] if several else []
    return [*samples, *_cascade(judgments)]


def flip_rate(judgments: JudgmentColumns) -> tuple[int, int]:
    """(trajectories whose samples disagree on success, trajectories with two verdicts or more);
    failed samples are left out."""
    success = judgments.verdict("success")
    decided = judgments.ok() & (success != UNKNOWN)
    _, place = distinct(judgments.keys.at(decided))
    verdicts = np.bincount(place)
    accepted = np.bincount(place, weights=success[decided])
    flipped = (accepted > 0) & (accepted < verdicts)
    return int(flipped.sum()), int((verdicts > 1).sum())


def repeated_note(judgments: JudgmentColumns, last: Ints) -> str:
    """Say how many judgments come more than once, of which ``last`` are the rows that count, and
    how many with another verdict; a failed one that was asked for again contradicts nothing."""
    places = distinct(judgments.keys)[1]
    each = np.stack((judgments.judge, places, judgments.sample))
    one = np.unique(each, axis=1, return_inverse=True)[1].ravel()
    counted = np.empty(len(last), dtype=np.int64)
    counted[one[last]] = last
    earlier = np.setdiff1d(np.arange(len(judgments)), last)
    now, verdicts, ok = counted[one[earlier]], judgments.verdicts, judgments.ok()
    other = (verdicts[:, earlier] != verdicts[:, now]).any(axis=0) & ok[earlier] & ok[now]
    repeated, different = len(np.unique(now)), len(np.unique(now[other]))
    return (
        f"holds {count_of(repeated, 'judgment')} more than once, {different} of them with another "
        "verdict: the last of each counts"
    )


def _flips(judgments: JudgmentColumns) -> list[str]:
    flipped, repeated = flip_rate(judgments)
    if not repeated:
        return []
    rate = f"{100 * flipped / repeated:.1f} %"
    return [
        f"{_name(judgments)}: samples disagree on {flipped} of {repeated} trajectories "
        f"(flip rate {rate})"
    ]


def _failed_samples(judgments: JudgmentColumns) -> list[str]:
    """Those beside which another sample decides: coverage counts trajectories alone."""
    known, place = distinct(judgments.keys)
    ok = judgments.ok()
    decided = np.bincount(place[ok], minlength=len(known)) > 0
    failed = judgments.status[~ok & decided[place]]
    if not len(failed):
        return []
    counts = np.bincount(failed, minlength=len(STATUSES)).tolist()
    each = ", ".join(f"{status} {n}" for status, n in zip(STATUSES, counts, strict=True) if n)
    return [
        f"{_name(judgments)}: {len(failed):,} of {len(judgments):,} samples failed ({each}); the "
        "others of their trajectories count"
    ]


def _cascade(judgments: JudgmentColumns) -> list[str]:
    """Asked and spared; what was spared is priced by the mean of what was asked."""
    settled = ~np.isnan(judgments.second_asked)
    if not settled.any():
        return []
    reached = settled & (judgments.second_asked != 0)
    count, spared = int(reached.sum()), int((settled & ~reached).sum())
    shares = f"{count} of {count + spared} trajectories"
    line = f"{_name(judgments)}: the second member was asked on {shares}"
    calls = judgments.calls
    # The ledger names the member before the stage: what the first one did not ask is the second's.
    members = np.array([name.split(" ")[0] for name in calls.stages], dtype=object)
    member = members[calls.stage]
    first = set(member[(settled & ~reached)[calls.judgment]].tolist())
    of_second = reached[calls.judgment] & np.array([one not in first for one in member], dtype=bool)
    costs = calls.cost[of_second]
    if count and spared and len(costs) and not np.isnan(costs).any():
        spent = sum(costs.tolist())
        line += f"; it cost ${spent:.4f}, sparing the others about ${spent / count * spared:.4f}"
    return [line]


def _name(judgments: JudgmentColumns) -> str:
    return judgments.judges[int(judgments.judge[0])]


class _Requests(NamedTuple):
    """Distinct requests, (R,), in the order of their first calls. ``cached`` if no call was paid;
    ``seconds`` of the call that took longest, for the others waited for it."""

    stage: Ints
    cost: Floats
    cached: Bools
    seconds: Floats
    usage: Ints


def judge_usage(judge: str, judgments: JudgmentColumns) -> JudgeUsage:
    """Add up what one judge used over all of its judgments, samples and failures included. A
    request that several judgments have in common was made once and counts once."""
    calls = judgments.calls
    requests = _requests(calls)
    codes, first = np.unique(requests.stage, return_index=True)
    stages = [
        _stage(calls.stages[code], requests, requests.stage == code)
        for code in codes[np.argsort(first)].tolist()
    ]
    priced = [stage.cost for stage in stages if stage.cost is not None]
    return JudgeUsage(
        judge=judge,
        stages=tuple(stages),
        calls=sum(stage.calls for stage in stages),
        usage=sum((stage.usage for stage in stages), Usage()),
        cost=sum(priced) if priced else None,
        unpriced=sum(stage.unpriced for stage in stages),
        cached=sum(stage.cached for stage in stages),
        cached_cost=sum(stage.cached_cost for stage in stages),
        cached_unpriced=sum(stage.cached_unpriced for stage in stages),
        seconds=sum(stage.seconds for stage in stages),
        unreported=sum(stage.unreported for stage in stages),
    )


def _requests(calls: CallColumns) -> _Requests:
    """Put the calls of a request together; one whose request is not known is like no other."""
    alone = -1 - np.arange(len(calls))
    numbers = np.where(calls.request == NO_REQUEST, alone, calls.request)
    _, first, which = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(first)
    paid = np.bincount(which, weights=~calls.cached, minlength=len(first))
    seconds = np.zeros(len(first))
    np.maximum.at(seconds, which, calls.seconds)
    rows = first[order]
    return _Requests(
        stage=calls.stage[rows],
        cost=calls.cost[rows],
        cached=paid[order] == 0,
        seconds=seconds[order],
        usage=calls.usage[:, rows],
    )


def _stage(name: str, requests: _Requests, mine: Bools) -> StageUsage:
    cost, cached = requests.cost[mine], requests.cached[mine]
    is_priced = ~np.isnan(cost)
    tokens = [int(column[mine].sum()) for column in requests.usage]
    return StageUsage(
        stage=name,
        calls=len(cost),
        usage=Usage(**dict(zip(USAGE_FIELDS, tokens, strict=True))),
        unreported=int((~is_priced & ~requests.usage[:, mine].any(axis=0)).sum()),
        cost=_sum(cost[is_priced]) if is_priced.any() else None,
        unpriced=int((~is_priced).sum()),
        cached=int(cached.sum()),
        cached_cost=_sum(cost[is_priced & cached]),
        cached_unpriced=int((~is_priced & cached).sum()),
        seconds=_sum(requests.seconds[mine]),
    )


def _sum(values: Floats) -> float:
    """Add up one after the other, as ever: another order of additions has other last digits."""
    return float(np.cumsum(values)[-1]) if len(values) else 0.0


class _RequestCosts(NamedTuple):
    """What was paid for requests (R,): ``dollars``, and for ``unpriced`` attempts nobody knows."""

    numbers: Ints
    dollars: Floats
    unpriced: Ints


def paid_beside(
    payments: Path, calls: CallColumns, waiting: Mapping[str, float] | None = None
) -> PaidBeside:
    """Compare what a run has paid in all of its sessions with what the ``calls`` of its judgments
    state. ``waiting`` are the dollars by request (nan: unknown) of replies whose judgments are
    still to come.

    An attempt that was under way when its process was killed counts with its worst case where
    --max-cost was given, else not.
    """
    paid = _by_request(payments)
    if paid is None:
        return PaidBeside()
    held = _held(paid.numbers, calls, waiting or {})
    is_held, is_unknown = ~np.isinf(held), np.isnan(held)
    # The reply is one of the attempts: of those of unknown price where it has none itself, or where
    # nothing else was paid.
    among_unpriced = is_unknown | (is_held & (paid.dollars == 0))
    unpriced = np.maximum(paid.unpriced - among_unpriced, 0)
    reply = np.where(is_held & ~among_unpriced, held, 0.0)
    # What was reserved for it counts, or its price was known when it was paid.
    is_presumed = is_unknown & (paid.unpriced == 0)
    reply = np.where(is_presumed, paid.dollars, reply)
    more = paid.dollars - reply
    return PaidBeside(
        dollars=float(np.maximum(more, 0.0).sum()),
        unpriced=int(unpriced.sum()),
        rebate=float(np.maximum(-more, 0.0).sum()),
        presumed=float(paid.dollars[is_presumed].sum()),
    )


def paid_in_all(parts: Iterable[PaidBeside]) -> PaidBeside:
    """Add up what several runs paid beside."""
    dollars = rebate = presumed = 0.0
    unpriced = 0
    for part in parts:
        dollars, rebate = dollars + part.dollars, rebate + part.rebate
        unpriced, presumed = unpriced + part.unpriced, presumed + part.presumed
    return PaidBeside(dollars=dollars, unpriced=unpriced, rebate=rebate, presumed=presumed)


def _by_request(payments: Path) -> _RequestCosts | None:
    from trajudge.judges.engine.budget import read_attempts  # noqa: PLC0415 - scores need no engine

    attempts = read_attempts(payments).values()
    if not attempts:
        return None
    costs = np.array([nan if cost is None else cost for _, cost in attempts])
    numbers = np.array([request_number(request) for request, _ in attempts], dtype=np.int64)
    numbers, which = np.unique(numbers, return_inverse=True)
    dollars = np.bincount(which, weights=np.nan_to_num(costs)).astype(float)
    return _RequestCosts(
        numbers, dollars, np.bincount(which[np.isnan(costs)], minlength=len(numbers))
    )


def _held(requests: Ints, calls: CallColumns, waiting: Mapping[str, float]) -> Floats:
    """Return what the replies to requests (R,) cost by their first call, or by ``waiting`` (nan:
    unknown); inf of one whose reply neither has."""
    awaited = np.array([*map(request_number, waiting)], dtype=np.int64)
    # Of several of a request the first counts.
    numbers, first = np.unique(np.concatenate([calls.request, awaited]), return_index=True)
    costs = np.concatenate([calls.cost, np.array([*waiting.values()])])[first]
    if not len(numbers):
        return np.full(len(requests), inf)
    place = np.minimum(np.searchsorted(numbers, requests), len(numbers) - 1)
    return np.where(numbers[place] == requests, costs[place], inf)


WEIGHTED = (
    "labels: drawn with unequal probabilities: every rate weights a label by one over its "
    "inclusion probability, while n counts labels"
)


def score(
    judgments: Iterable[Judgment],
    labels: Labels,
    *,
    rewards: Mapping[TrajectoryKey, float | None],
    missing: Missing = "negative",
    by_agent: bool = False,
    bootstrap: Bootstrap | None = None,
    compare_by_benchmark: bool = False,
    training: Mapping[str, Collection[TrajectoryKey]] | None = None,
) -> ScoreReport:
    """Score every judge on every benchmark and overall; ``by_agent`` also agent by agent. Judges
    are compared over all benchmarks, and where ``compare_by_benchmark`` also in each.

    ``rewards`` holds the official reward of every trajectory of the run (None: unknown). Several
    samples of one judge on one trajectory are one observation: their majority.

    ``training`` are trajectories that a judge was trained on: they are left out of its metrics and
    counted in its coverage.

    What a failed judgment counts as: ``negative``, as not accepted (a reward model would not have
    taken it); ``exclude``, not at all; ``agentrewardbench``, as the paper has it: a reply without
    the tag is 0, no valid reply is -1, and its arithmetic (``eval.scoring.observations``) gives the
    rates.
    """
    bootstrap = bootstrap or Bootstrap()
    left_out = training or {}
    with collection_paused():
        columns = columns_of(judgments)
        reference = ReferenceLabels.of(
            columns.keys, LabelColumns.of(labels), RewardColumns.of(rewards)
        )
        if reference.is_weighted and missing == "agentrewardbench":
            raise UserError(
                "the labels were drawn with unequal probabilities, and the paper's arithmetic has "
                "no weights: score with --protocol default"
            )
        judges = [
            _judged(name, columns, mine, reference, left_out.get(name, ()))
            for name, mine in by_judge(columns)
        ]
        rows = _Rows([], [], [], [], {})
        for judge in judges:
            rows.add(judge, missing, by_agent)
        predictions = {judge.name: judge.predictions for judge in judges}
        return ScoreReport(
            missing=missing,
            resamples=bootstrap.resamples,
            seed=bootstrap.seed,
            scores=tuple(with_intervals(rows.scored(missing))),
            success_rates=tuple(success_rates(rows.rates, missing)),
            estimated_rates=tuple(rows.estimated),
            against_baseline=tuple(
                against_baseline(rows.rates, exclude_missing=missing == "exclude")
            ),
            comparison=compare(predictions, missing, bootstrap, by_benchmark=compare_by_benchmark),
            coverage=tuple(rows.coverage),
            spending=tuple(judge.usage for judge in judges),
            remarks=(
                *(line for judge in judges for line in judge.remarks),
                *reward_notes(reference.reward),
                *([WEIGHTED] if reference.is_weighted else []),
            ),
        )


def by_judge(judgments: JudgmentColumns) -> Iterator[tuple[str, Bools]]:
    """Yield which judgments are a judge's, judges by name."""
    for name in sorted(judgments.judges):
        mine = judgments.judge == judgments.judges.index(name)
        if mine.any():
            yield name, mine


def _judged(
    name: str,
    judgments: JudgmentColumns,
    mine: Bools,
    reference: ReferenceLabels,
    training: Collection[TrajectoryKey],
) -> _Judged:
    """Read what one judge said, without the trajectories that it was trained on."""
    trained = np.zeros(len(reference), dtype=bool)
    index, judgments = reference.judged[mine], judgments.at(mine)
    usage = judge_usage(name, judgments)
    if training:
        places = reference.places(KeyColumns.of(training))
        trained[places[places >= 0]] = True
        judgments, index = judgments.at(~trained[index]), index[~trained[index]]
    predictions = Predictions.of(judgments, reference, index)
    remarks = (
        *stability_notes(judgments, len(predictions)),
        *on_training_set(name, len(training)),
    )
    return _Judged(name, predictions, trained, usage, remarks)


class _Judged(NamedTuple):
    """One judge: its predictions, which trajectories (T,) it was trained on, what it used, and what
    else is to be said."""

    name: str
    predictions: Predictions
    trained: Bools
    usage: JudgeUsage
    remarks: tuple[str, ...]

    def expected(self) -> Bools:
        """Mark the trajectories (T,) that the judge had to judge, or judged."""
        due = self.predictions.reference.in_run | self.trained
        due[self.predictions.index] = True
        return due


@dataclass
class _Rows:
    """The rows of the tables, in their order. ``rules`` are those of the baseline, which judges of
    the same trajectories share."""

    counted: list[_Counted]
    rates: list[RateCells]
    coverage: list[Coverage]
    estimated: list[EstimatedRate]
    rules: dict[tuple[TrajectoryGroup, bytes], _Counted]

    def add(self, judged: _Judged, missing: Missing, by_agent: bool) -> None:
        """Add every group of one judge."""
        judge, predictions = judged.name, judged.predictions
        expected = judged.expected()
        answers = {label: predictions.answered(label) for label in predictions.predicted_labels()}
        observed = {label: predictions.observe(label, missing) for label in answers}
        unknown = {label: unsure(predictions, label) for label in answers}
        listed = groups(predictions.reference, expected)
        self.estimated += estimated_rates(judge, predictions, listed, missing)
        for group in listed:
            detailed = by_agent or group.agent == ALL_AGENTS
            members = group.members(predictions.reference)
            if detailed:
                self.coverage.append(
                    coverage_of(
                        judge,
                        group,
                        predictions,
                        expected,
                        members,
                        training=judged.trained,
                        answers=answers,
                    )
                )
            inside = members[predictions.index]
            if not inside.any():
                continue
            cut = {label: each.where(members[each.index]) for label, each in observed.items()}
            self.rates.append(RateCells(judge, group, cut["success"]))
            for label in observed if detailed else ():
                left_out = int(np.count_nonzero(unknown[label] & inside))
                self._add_label(_Cell(judge, group, label, left_out), cut[label], missing)

    def _add_label(self, cell: _Cell, observations: Observations, missing: Missing) -> None:
        """Add the judge and, for success, the baseline on the trajectories it was scored on."""
        failed = len(observations) - int(np.count_nonzero(observations.answered))
        if missing == "exclude":
            observations = observations.where(observations.answered)
        self.counted.append(_counted(cell, observations, {"missing": failed}))
        if cell.label != "success" or cell.judge == RULE_BASED:
            return
        shared = cell.group, observations.trajectories
        if (rule := self.rules.get(shared)) is None:
            rewarded = ~np.isnan(observations.reward)
            more = {"baseline": True, "without_reward": int((~rewarded).sum())}
            by_rule = observations.where(rewarded).as_rule_based()
            rule = self.rules[shared] = _counted(cell, by_rule, more)
        self.counted.append(rule._replace(cell=cell))

    def scored(self, missing: Missing) -> list[ScoredObservations]:
        """Compute the metrics of all labels at once; intervals come later."""
        by_paper = missing == "agentrewardbench"
        names = MORE_RATES if by_paper else (*VerdictRates._fields, *MORE_RATES)
        computed = rates(names, [_cells(each) for each in self.counted])
        return [
            ScoredObservations(
                _score(
                    each,
                    dict(zip(names, values, strict=True))
                    | (protocol_rates(each.protocol).model_dump() if by_paper else {}),
                ),
                each.observations,
            )
            for each, values in zip(self.counted, computed, strict=True)
        ]


class _Cell(NamedTuple):
    """Identifies a score; ``unsure`` labels of the group are left out of it."""

    judge: str
    group: TrajectoryGroup
    label: Label
    unsure: int


class _Counted(NamedTuple):
    """What a score is computed from, and the fields of it that no metric tells."""

    cell: _Cell
    observations: Observations
    protocol: ProtocolCounts
    more: Mapping[str, Any]


MORE_RATES = ("kappa", "mcc", "balanced_accuracy", "fpr", "fnr", "over_accept_share")

"""Beside those of VerdictRates, in every protocol."""


def _cells(counted: _Counted) -> Counts | WeightedCounts:
    """Return what rates are computed from: counts, or sums of weights."""
    weights = counted.observations.weights
    if weights is None:
        return counted.protocol.counts
    return weighted_counts(counted.observations.labels, counted.observations.predictions, weights)


def _counted(cell: _Cell, observations: Observations, more: Mapping[str, Any]) -> _Counted:
    protocol = protocol_counts(observations.labels, observations.predictions)
    return _Counted(cell, observations, protocol, more)


def _score(counted: _Counted, metrics: Mapping[str, float | None]) -> Score:
    """Record the metrics of one label."""
    cell, protocol = counted.cell, counted.protocol
    fields = {
        "judge": cell.judge,
        "benchmark": cell.group.benchmark,
        "agent": cell.group.agent,
        "label": cell.label,
        "n": protocol.n,
        "positives": protocol.counts.positives + protocol.missing_positive,
        "counts": protocol.counts,
        "unsure": cell.unsure,
    }
    return Score(**fields, **counted.more, **metrics)
