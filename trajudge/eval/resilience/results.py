"""Results of an experiment with faults: what they cost agents, whether popups are got past, what
judges make of the runs, and the files that are written.
"""

from __future__ import annotations

import asyncio
import csv
import dataclasses
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson

from trajudge.annotations import store as annotation_store
from trajudge.annotations.model import Labels, primary_labels
from trajudge.eval.reporting.plots import write_plot
from trajudge.eval.resilience.reading import (
    LATENCY_PARTS,
    ExperimentArm,
    FaultExperiment,
    FaultPair,
    FaultRun,
    MetFault,
)
from trajudge.eval.sources import read_last_judgments
from trajudge.eval.store.inputs import recorded_data
from trajudge.eval.store.run_folder import read_manifest
from trajudge.judges.judging import NoModel, judge_trajectory
from trajudge.judges.model import Judge, Judgment
from trajudge.judges.registry import find_judge, make_judge
from trajudge.stats.comparison import TaskRuns, mcnemar_by_task
from trajudge.stats.intervals import (
    Floats,
    Interval,
    clustered_differences,
    defined,
    rates_by_cluster,
    ratio_limits,
    sum_clusters,
    t_quantile,
    wilson_limits,
)
from trajudge.trajectories import store
from trajudge.trajectories.goals import split_goals
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.files import make_folder, refuse_repeated, write_bytes
from trajudge.util.terminal import count_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


CONFIDENCE = 0.95

_NO_WIDTH = 1e-12  # rounding


class IntervalEstimate(NamedTuple):
    """An estimate with both ends of its interval; None where undefined."""

    estimate: float | None = None
    low: float | None = None
    high: float | None = None


def estimate_of(interval: Interval) -> IntervalEstimate:
    """Return the only value of an interval as plain numbers."""
    parts = (interval.estimate, interval.low, interval.high)
    return IntervalEstimate(*(defined(p.flat[0]) for p in parts))


UNDEFINED = IntervalEstimate()


@dataclass(frozen=True)
class ArmMeasures:
    """What the faults of an arm did to an agent, or to all (``agent`` "").

    ``planned`` and ``fired`` count page loads, ``exposed`` pairs in which a fault fired;
    ``recovery`` is the share of fired faults that the run got past, ``kept`` the share of successes
    kept among exposed pairs whose clean run succeeded. ``extra`` are means over exposed pairs in
    which both runs succeeded: what recovering cost.
    """

    agent: str
    arm: str
    kind: str
    pairs: int
    tasks: int
    clean: IntervalEstimate
    faulted: IntervalEstimate
    difference: IntervalEstimate
    retention: IntervalEstimate
    planned: int
    fired: int
    exposed: int
    recovery: IntervalEstimate
    kept: IntervalEstimate
    lost: int
    won: int
    p_value: float
    extra: dict[str, IntervalEstimate]
    recovered_pairs: int


def measures(experiment: FaultExperiment) -> list[ArmMeasures]:
    """Measure every faulted arm: for all agents together, then agent by agent."""
    agents = experiment.agents
    rows = []
    for arm in experiment.faulted:
        for agent in [None, *agents] if len(agents) > 1 else agents:
            pairs = experiment.pairs(arm, agent)
            if pairs:
                rows.append(arm_measures(arm, agent or "", pairs))
    return rows


def arm_measures(arm: ExperimentArm, agent: str, pairs: Sequence[FaultPair]) -> ArmMeasures:
    """Measure one arm on its pairs, at least one."""
    tasks = [pair.faulted.key.task for pair in pairs]
    clean = np.array([bool(pair.clean.success) for pair in pairs])
    faulted = np.array([bool(pair.faulted.success) for pair in pairs])
    exposed = np.array([pair.faulted.fired > 0 for pair in pairs])
    fired = [pair.faulted.fired for pair in pairs]
    past = [sum(met.recovered for met in pair.faulted.faults) for pair in pairs]
    both = [pair for pair in pairs if pair.faulted.fired and _both_succeed(pair)]
    return ArmMeasures(
        agent=agent,
        arm=arm.name,
        kind="; ".join(dict.fromkeys(fault.described for fault in arm.faults)),
        pairs=len(pairs),
        tasks=len(set(tasks)),
        clean=rate(clean, tasks),
        faulted=rate(faulted, tasks),
        difference=difference(faulted, clean, tasks),
        retention=retention(clean, faulted, tasks),
        planned=sum(met.planned for pair in pairs for met in pair.faulted.faults),
        fired=sum(fired),
        exposed=int(exposed.sum()),
        recovery=rate(past, tasks, fired),
        kept=rate(faulted & clean & exposed, tasks, clean & exposed),
        lost=int((clean & ~faulted).sum()),
        won=int((faulted & ~clean).sum()),
        p_value=mcnemar_by_task(clean, faulted, TaskRuns.of(tasks)),
        extra=extras(both),
        recovered_pairs=len(both),
    )


def _both_succeed(pair: FaultPair) -> bool:
    return bool(pair.clean.success and pair.faulted.success)


def rate(
    hits: Sequence[float] | Floats | np.ndarray, tasks: Sequence[str], trials: object = 1.0
) -> IntervalEstimate:
    """Estimate a rate whose trials come in tasks; Wilson's interval with their design effect. With
    all trials in one task the rate has no interval, without a trial nothing is defined."""
    numbers = np.asarray(hits, dtype=float)
    weights = np.broadcast_to(np.asarray(trials, dtype=float), numbers.shape)
    if not weights.sum():
        return UNDEFINED
    return estimate_of(rates_by_cluster(numbers, weights, tasks, confidence=CONFIDENCE).interval)


def difference(first: np.ndarray, second: np.ndarray, tasks: Sequence[str]) -> IntervalEstimate:
    """Estimate the first rate minus the second on the same tasks."""
    ones = np.ones(len(tasks))
    clusters = sum_clusters(np.stack([first, second, ones], axis=1), tasks)
    if len(clusters.sums) < 2:
        return IntervalEstimate(float(first.mean() - second.mean()))
    hits, trials = clusters.sums[:, :2].T, np.stack([clusters.sums[:, 2]] * 2)
    apart = clustered_differences(
        hits, trials, clusters.stratum_sizes, CONFIDENCE, with_p_value=False
    )
    found = estimate_of(apart.interval)
    return with_width(found, hits, trials)


def with_width(difference: IntervalEstimate, hits: Floats, trials: Floats) -> IntervalEstimate:
    """Return a difference of two rates; one that all tasks show alike, which says nothing of how
    they vary, has at least the limits of a share of changes of which none was seen."""
    value, low, high = difference
    if value is None or low is None or high is None or not all_alike(hits, trials):
        return difference
    change = _unseen(int(trials.any(axis=0).sum()))
    low, high = min(low, value - change), max(high, value + change)
    return IntervalEstimate(value, max(low, -1.0), min(high, 1.0))


def all_alike(hits: Floats, trials: Floats) -> bool:
    """Tell whether two rates (2, C) differ by the same in each of C tasks."""
    both = trials.all(axis=0)
    if not both.any() or (trials.any(axis=0) != both).any():
        return False
    apart = np.subtract(*(hits[:, both] / trials[:, both]))
    return bool(np.ptp(apart) <= _NO_WIDTH)


def _unseen(tasks: int) -> float:
    """Compute Wilson's upper limit of a share that none of so many tasks shows, with Student's
    quantile."""
    quantile = t_quantile(CONFIDENCE, tasks - 1)
    return float(wilson_limits(np.array(0.0), np.array(float(tasks)), quantile)[1])


def retention(clean: np.ndarray, faulted: np.ndarray, tasks: Sequence[str]) -> IntervalEstimate:
    """Estimate the success rate with faults over that without; without limits where so few tasks
    succeed that the rate without may be next to none, so that no retention is excluded.

    Where no task differs from another, so that a ratio has no spread of its own, the limits are
    those of a share of pairs that changed of which none was seen.
    """
    if not clean.any():
        return UNDEFINED
    clusters = sum_clusters(np.stack([faulted, clean], axis=1).astype(float), tasks)
    ratio = float(faulted.sum() / clean.sum())
    if len(clusters.sums) < 2:
        return IntervalEstimate(ratio, None, None)
    if np.abs(clusters.sums @ [1.0, -ratio]).max() <= _NO_WIDTH * len(clean):
        return _still(ratio, clean, tasks)
    quantile = float(t_quantile(CONFIDENCE, len(clusters.sums) - 1))
    low, high = ratio_limits(clusters, lambda s: s[..., 0], lambda s: s[..., 1], quantile)
    if np.isnan(low):
        return IntervalEstimate(ratio, None, None)
    return IntervalEstimate(ratio, max(float(low), 0.0), float(high))


def _still(ratio: float, clean: np.ndarray, tasks: Sequence[str]) -> IntervalEstimate:
    """Return the limits of a retention that every task shows alike."""
    change = _unseen(len(set(tasks))) / float(clean.mean())
    return IntervalEstimate(ratio, max(ratio - change, 0.0), ratio + change)


Figure = Callable[[FaultPair], tuple[float | None, float | None]]

FIGURES: dict[str, Figure] = {
    "steps": lambda pair: (pair.faulted.steps, pair.clean.steps),
    "page_loads": lambda pair: (pair.faulted.page_loads, pair.clean.page_loads),
    "model_calls": lambda pair: (pair.faulted.model_calls, pair.clean.model_calls),
    "tokens": lambda pair: (pair.faulted.tokens, pair.clean.tokens),
    "dollars": lambda pair: (pair.faulted.dollars, pair.clean.dollars),
    "seconds": lambda pair: (pair.faulted.seconds, pair.clean.seconds),
}


def _part(name: str) -> Figure:
    return lambda pair: (pair.faulted.latency.get(name), pair.clean.latency.get(name))


FIGURES |= {f"{name}_seconds": _part(name) for name in LATENCY_PARTS}


def extras(pairs: Sequence[FaultPair]) -> dict[str, IntervalEstimate]:
    """Estimate the mean of faulted minus clean for every figure; pairs in which it is not known on
    both sides are left out."""
    return {name: _extra(pairs, of) for name, of in FIGURES.items()}


def _extra(pairs: Sequence[FaultPair], of: Figure) -> IntervalEstimate:
    values, tasks = [], []
    for pair in pairs:
        more, less = of(pair)
        if more is not None and less is not None:
            values.append(more - less)
            tasks.append(pair.faulted.key.task)
    return mean(values, tasks)


def mean(values: Sequence[float], tasks: Sequence[str]) -> IntervalEstimate:
    """Estimate a mean over runs, with Student's interval over tasks; with none where no task
    differs from another, since how far the next one may is not known."""
    if not values:
        return UNDEFINED
    pooled = float(np.mean(values))
    table = np.stack([np.asarray(values, dtype=float) - pooled, np.ones(len(values))], axis=1)
    sums = sum_clusters(table, tasks).sums
    count = len(sums)
    if count < 2:
        return IntervalEstimate(pooled, None, None)
    error = np.sqrt(count / (count - 1) * np.square(sums[:, 0]).sum()) / len(values)
    half = float(t_quantile(CONFIDENCE, count - 1) * error)
    if half <= _NO_WIDTH * max(1.0, abs(pooled)):
        return IntervalEstimate(pooled, None, None)
    return IntervalEstimate(pooled, pooled - half, pooled + half)


@dataclass(frozen=True)
class ArmCost:
    """Means over an agent's runs in an arm. ``unknown_usage`` counts runs whose tokens are not
    known: they are left out of ``tokens`` and ``dollars``, not counted as 0."""

    agent: str
    arm: str
    runs: int
    open: int
    success: IntervalEstimate
    side_effects: int
    steps: IntervalEstimate
    page_loads: IntervalEstimate
    model_calls: IntervalEstimate
    tokens: IntervalEstimate
    dollars: IntervalEstimate
    seconds: IntervalEstimate
    latency: dict[str, float | None]
    unknown_usage: int


def costs(experiment: FaultExperiment) -> list[ArmCost]:
    """Compute the means of every agent in every arm, the clean one first."""
    return [
        _cost(agent, arm.name, [run for run in arm.runs if run.key.agent == agent])
        for agent in experiment.agents
        for arm in experiment.arms
        if any(run.key.agent == agent for run in arm.runs)
    ]


def _cost(agent: str, arm: str, runs: Sequence[FaultRun]) -> ArmCost:
    known = [run for run in runs if run.success is not None]
    return ArmCost(
        agent=agent,
        arm=arm,
        runs=len(runs),
        open=len(runs) - len(known),
        success=rate([float(bool(run.success)) for run in known], _tasks(known)),
        side_effects=sum(run.side_effect is True for run in runs),
        steps=_mean(runs, lambda run: run.steps),
        page_loads=_mean(runs, lambda run: run.page_loads),
        model_calls=_mean(runs, lambda run: run.model_calls),
        tokens=_mean(runs, lambda run: run.tokens),
        dollars=_mean(runs, lambda run: run.dollars),
        seconds=_mean(runs, lambda run: run.seconds),
        latency={part: _mean(runs, _latency(part))[0] for part in LATENCY_PARTS},
        unknown_usage=sum(run.tokens is None for run in runs),
    )


def _latency(part: str) -> Callable[[FaultRun], float | None]:
    return lambda run: run.latency.get(part)


def _mean(runs: Sequence[FaultRun], of: Callable[[FaultRun], float | None]) -> IntervalEstimate:
    known = [run for run in runs if of(run) is not None]
    return mean([of(run) or 0.0 for run in known], _tasks(known))


def _tasks(runs: Sequence[FaultRun]) -> list[str]:
    return [run.key.task for run in runs]


LEVELS = ("full", "none")


@dataclass(frozen=True)
class PopupFactor:
    """Popups of both accessibilities in an agent's runs (``agent`` "": all agents): how many fired,
    the share recovered from, and by how much a popup with full accessibility is recovered from more
    often."""

    agent: str
    fired: dict[str, int]
    recovery: dict[str, IntervalEstimate]
    dismissed: dict[str, int]
    difference: IntervalEstimate


class _Meeting(NamedTuple):
    """A task, an accessibility, and the popup that was met."""

    task: str
    level: str
    met: MetFault


def popup_factor(experiment: FaultExperiment) -> list[PopupFactor]:
    """Compare popups with and without accessibility; nothing where a plan has only one kind."""
    agents = experiment.agents
    rows = []
    for agent in ["", *agents] if len(agents) > 1 else agents:
        found = list(_meetings(experiment, agent))
        if {*LEVELS} <= {level for _, level, _ in found}:
            rows.append(_factor(agent, found))
    return rows


def _meetings(experiment: FaultExperiment, agent: str) -> Iterator[_Meeting]:
    for arm in experiment.faulted:
        levels = {fault.id: fault.accessibility for fault in arm.faults if fault.kind == "popup"}
        for run in arm.runs:
            if agent in ("", run.key.agent):
                for met in run.faults:
                    if met.fault in levels and met.fired:
                        yield _Meeting(run.key.task, levels[met.fault], met)


def _factor(agent: str, found: Sequence[_Meeting]) -> PopupFactor:
    tasks = [task for task, _, _ in found]
    fired, past = np.zeros((len(found), 2)), np.zeros((len(found), 2))
    for row, (_, level, met) in enumerate(found):
        fired[row, LEVELS.index(level)] = met.fired
        past[row, LEVELS.index(level)] = met.recovered
    clusters = sum_clusters(np.concatenate([past, fired], axis=1), tasks)
    sums = clusters.sums.T
    apart = IntervalEstimate(None, None, None)
    if len(clusters.sums) > 1:
        found_apart = clustered_differences(
            sums[:2], sums[2:], clusters.stratum_sizes, CONFIDENCE, with_p_value=False
        )
        apart = with_width(estimate_of(found_apart.interval), sums[:2], sums[2:])
    return PopupFactor(
        agent=agent,
        fired={level: int(fired[:, at].sum()) for at, level in enumerate(LEVELS)},
        recovery={level: rate(past[:, at], tasks, fired[:, at]) for at, level in enumerate(LEVELS)},
        dismissed={
            wanted: sum(met.means.count("dismissed") for _, level, met in found if level == wanted)
            for wanted in LEVELS
        },
        difference=apart,
    )


@dataclass(frozen=True)
class JudgedArm:
    """A judge on one arm: its precision and recall there, the share it accepts, and how its
    precision differs from that on the clean arm (None there)."""

    judge: str
    arm: str
    runs: int
    accepted: int
    precision: IntervalEstimate
    recall: IntervalEstimate
    difference: IntervalEstimate | None = None
    p_value: float | None = None


@dataclass(frozen=True)
class _Verdicts:
    """By run: its key and task, whether the judge accepts it, and whether it succeeded."""

    keys: Sequence[TrajectoryKey]
    tasks: Sequence[str]
    accepted: np.ndarray
    truth: np.ndarray


def judged(
    experiment: FaultExperiment, names: Sequence[str], options: Mapping[str, Any]
) -> list[JudgedArm]:
    """Let judges that need no model judge the runs of every arm, each with those of the ``options``
    that it takes. Raises UserError for one that needs a model, for an option that none takes, and
    for runs without trajectories."""
    taken = {name: find_judge(name).options_class.model_fields.keys() for name in names}
    for option in options.keys() - {one for known in taken.values() for one in known}:
        raise UserError(f"--judge-option {option}: is no option of {', '.join(names) or 'a judge'}")
    judges: dict[str, tuple[str, Judge]] = {}
    for name in names:
        if find_judge(name).needs_model:
            raise UserError(f"--judge {name} asks a model: judge the arms with  trajudge judge")
        judges[name] = make_judge(name, {one: options[one] for one in options.keys() & taken[name]})
    if not judges:
        return []
    by_arm = {arm.name: _verdicts(judges, arm) for arm in experiment.arms}
    return [
        row
        for name in judges
        for row in _rows(experiment, name, {arm: found[name] for arm, found in by_arm.items()})
    ]


def judged_before(
    experiment: FaultExperiment, folders: Sequence[Path]
) -> tuple[list[JudgedArm], list[str]]:
    """Read what ``trajudge judge`` wrote of the arms, a run folder for each judge and arm; notes
    name judgments that come more than once, of which the last counts. A sample counts as a
    judgment of its own. Raises UserError for a folder that judged none of the arms, for judgments
    that two folders hold, and for a judge that has not judged the clean one."""
    refuse_repeated(folders)
    arms = {Path(folder).resolve(): arm for arm in experiment.arms for folder in arm.folders}
    judgments: dict[str, dict[str, list[Judgment]]] = {}
    known: dict[tuple[str, TrajectoryKey, str, int], Path] = {}
    notes: list[str] = []
    for folder in folders:
        judge, arm = _judged_arm(folder, arms)
        last, repeated = read_last_judgments(folder)
        for one in last:
            other = known.setdefault((arm.name, one.key, one.judge, one.sample), folder)
            if other != folder:
                raise UserError(
                    f"--judged {folder}: it holds judgments of {judge} on the {arm.name} arm that "
                    f"{other} holds, too, and they would count twice: name one of the two"
                )
        judgments.setdefault(judge, {}).setdefault(arm.name, []).extend(last)
        notes += repeated
    rows: list[JudgedArm] = []
    for name, by_arm in judgments.items():
        if experiment.clean.name not in by_arm or len(by_arm) < 2:
            raise UserError(
                f"--judged: {name} has judged {', '.join(by_arm)} alone: name its runs on the "
                f"{experiment.clean.name} arm and on one with faults"
            )
        truths = {arm.name: _truth(arm) for arm in experiment.arms if arm.name in by_arm}
        found = {arm: _answered(some, truths[arm]) for arm, some in by_arm.items()}
        rows += _rows(experiment, name, found)
    return rows, notes


def _judged_arm(folder: Path, arms: Mapping[Path, ExperimentArm]) -> tuple[str, ExperimentArm]:
    """Return the judge of a run, and the arm that it judged. Raises UserError."""
    manifest = read_manifest(folder)
    place = _judged_place(recorded_data(folder))
    arm = arms.get(place) if place else None
    if arm is None:
        raise UserError(
            f"--judged {folder}: it judged {manifest.get('data')}, which is no arm of these "
            "recordings: judge an arm with  trajudge judge --data trajudge:RECORDED/ARM"
        )
    return str(manifest.get("judge")), arm


def _judged_place(spec: str) -> Path | None:
    """Return the folder that a run's manifest names as its data."""
    kind, colon, path = split_goals(spec)[0].partition(":")
    return Path(path).expanduser().resolve() if colon and kind == "trajudge" else None


def _rows(
    experiment: FaultExperiment, name: str, by_arm: Mapping[str, _Verdicts]
) -> Iterator[JudgedArm]:
    """Yield a judge's figures on the arms that it judged, the clean one first."""
    clean = by_arm[experiment.clean.name]
    yield _row(name, experiment.clean, clean)
    for arm in experiment.faulted:
        if arm.name in by_arm:
            found = by_arm[arm.name]
            # An arm that lacks an agent's runs is compared with the clean runs of the others.
            yield _row(name, arm, found, _shared(clean, found))


def _truth(arm: ExperimentArm) -> dict[TrajectoryKey, bool]:
    truth: dict[TrajectoryKey, bool] = {}
    for folder in map(Path, arm.folders):
        labels: Labels = primary_labels(annotation_store.load(folder / "labels.jsonl"))
        truth |= {key: one.success for key, one in labels.items() if one.success is not None}
    return truth


def _verdicts(judges: Mapping[str, tuple[str, Judge]], arm: ExperimentArm) -> dict[str, _Verdicts]:
    """Read an arm's trajectories once, and let every judge judge them."""
    judgments: dict[str, list[Judgment]] = {name: [] for name in judges}
    truth = _truth(arm)
    for folder in map(Path, arm.folders):
        runs = [one for one in store.read(folder) if isinstance(one, Trajectory)]
        labelled = [one for one in runs if one.key in truth]
        for name, judge in judges.items():
            judgments[name] += asyncio.run(_judged(judge, labelled))
    for name, found in judgments.items():
        if not found:
            raise UserError(f"--judge {name}: arm {arm.name!r} has no trajectories to judge")
    return {name: _answered(found, truth) for name, found in judgments.items()}


def _answered(judgments: Sequence[Judgment], truth: Mapping[TrajectoryKey, bool]) -> _Verdicts:
    known = [one for one in judgments if one.success is not None and one.key in truth]
    return _Verdicts(
        [one.key for one in known],
        [f"{one.key.benchmark}/{one.key.task_id}" for one in known],
        np.array([one.success is True for one in known], dtype=float),
        np.array([truth[one.key] for one in known], dtype=float),
    )


def _shared(found: _Verdicts, other: _Verdicts) -> _Verdicts:
    """Return the verdicts on runs that ``other`` has too."""
    wanted = set(other.keys)
    places = [at for at, key in enumerate(found.keys) if key in wanted]
    return _Verdicts(
        [found.keys[at] for at in places],
        [found.tasks[at] for at in places],
        found.accepted[places],
        found.truth[places],
    )


async def _judged(judge: tuple[str, Judge], runs: Sequence[Trajectory]) -> list[Judgment]:
    return [await judge_trajectory(*judge, run, NoModel()) for run in runs]


def _row(
    name: str, arm: ExperimentArm, found: _Verdicts, clean: _Verdicts | None = None
) -> JudgedArm:
    right = found.accepted * found.truth
    apart = _apart(found, clean) if clean else None
    return JudgedArm(
        judge=name,
        arm=arm.name,
        runs=len(found.tasks),
        accepted=int(found.accepted.sum()),
        precision=rate(right, found.tasks, found.accepted),
        recall=rate(right, found.tasks, found.truth),
        difference=apart[0] if apart else None,
        p_value=apart[1] if apart else None,
    )


def _apart(faulted: _Verdicts, clean: _Verdicts) -> tuple[IntervalEstimate, float | None]:
    """Compare the precision of two arms over the same tasks: first faulted, then clean."""
    table = np.concatenate([_columns(faulted, first=True), _columns(clean, first=False)])
    clusters = sum_clusters(table, [*faulted.tasks, *clean.tasks])
    hits, trials = clusters.sums[:, :2].T, clusters.sums[:, 2:].T
    if len(clusters.sums) < 2 or not trials.sum(axis=1).all():
        return IntervalEstimate(None, None, None), None
    found = clustered_differences(hits, trials, clusters.stratum_sizes, CONFIDENCE)
    apart = with_width(estimate_of(found.interval), hits, trials)
    unknown = np.isnan(found.p_value) or all_alike(hits, trials)
    return apart, None if unknown else float(found.p_value)


def _columns(found: _Verdicts, *, first: bool) -> np.ndarray:
    """Return (N, 4): hits of both arms, trials of both; those of the other arm are 0."""
    nothing = np.zeros(len(found.tasks))
    hits, trials = found.accepted * found.truth, found.accepted
    columns = (hits, nothing, trials, nothing) if first else (nothing, hits, nothing, trials)
    return np.stack(columns, axis=1)


FORMAT = {"format": "trajudge-resilience-results", "version": 1}

_STALLED_SHARE = 0.05  # of an arm's runs; more is said

_INTERVAL = ("", "_low", "_high")


@dataclass(frozen=True)
class ResilienceResults:
    """What faults did, what runs cost, what popups' accessibility changes, what judges say."""

    measures: Sequence[ArmMeasures]
    costs: Sequence[ArmCost]
    popups: Sequence[PopupFactor]
    judged: Sequence[JudgedArm]
    notes: Sequence[str]


def results_of(
    experiment: FaultExperiment,
    judges: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    runs: Sequence[Path] = (),
) -> ResilienceResults:
    """Compute everything; ``options`` are the judges', ``runs`` folders of judges that were run
    before. Raises UserError as ``judged`` and ``judged_before`` do."""
    before, repeated = judged_before(experiment, runs)
    return ResilienceResults(
        measures(experiment),
        costs(experiment),
        popup_factor(experiment),
        [*judged(experiment, judges, options or {}), *before],
        [*experiment.notes, *repeated, *_remarks(experiment)],
    )


def _remarks(experiment: FaultExperiment) -> Iterator[str]:
    """Yield what a reader has to know before the figures."""
    for arm in experiment.arms:
        stalled = sum(run.stalled for run in arm.runs)
        if stalled > _STALLED_SHARE * len(arm.runs):
            yield (
                f"{arm.name}: in {stalled} of {len(arm.runs)} runs the browser waited in vain: a "
                "slow machine, or a fault that holds pages, and then no effect of faults on agents"
            )
    for arm in experiment.faulted:
        paired = len(experiment.pairs(arm))
        alone = len(arm.runs) - paired
        if alone:
            yield f"{arm.name}: {alone} of {len(arm.runs)} runs have no pair of known outcome"
        if paired and not any(pair.faulted.fired for pair in experiment.pairs(arm)):
            yield f"{arm.name}: no fault fired in any run: its figures say nothing of faults"
    runs = [run for arm in experiment.arms for run in arm.runs]
    unmeasured = sum(run.model_calls is None for run in runs)
    if unmeasured:
        yield (
            f"in {unmeasured} of {len(runs)} runs model calls were not measured, so their calls, "
            "tokens and dollars are not known: give  trajudge proxy run  the option --api"
        )
    unknown = sum(run.tokens is None and run.model_calls is not None for run in runs)
    if unknown:
        untold = count_of(unknown, "run")
        yield f"the tokens of {untold} with model calls of unknown usage are left out"


def write_results(results: ResilienceResults, out: Path) -> None:
    """Write ``results.json`` and ``results.csv`` (a row an agent and arm). Raises UserError."""
    content = {**FORMAT, **{name: _plain(rows) for name, rows in _parts(results).items()}}
    try:
        make_folder(out, "--out")
        text = orjson.dumps(content, default=_estimate, option=orjson.OPT_INDENT_2)
        write_bytes(out / "results.json", text)
        write_bytes(out / "results.csv", _table([_flat(row) for row in results.measures]))
        write_bytes(out / "costs.csv", _table([_flat(row) for row in results.costs]))
    except OSError as error:
        raise UserError(f"--out {out}: cannot be written ({error.strerror})") from error


def _parts(results: ResilienceResults) -> dict[str, Sequence[Any]]:
    return {part.name: getattr(results, part.name) for part in dataclasses.fields(results)}


def _plain(rows: Sequence[Any]) -> list[Any]:
    return [row if isinstance(row, str) else dataclasses.asdict(row) for row in rows]


def _estimate(value: Any) -> dict[str, float | None]:
    """Write an estimate as an object. Raises TypeError for what is none."""
    if isinstance(value, IntervalEstimate):
        return value._asdict()
    raise TypeError(f"{type(value).__name__} is not written")


def _flat(row: ArmMeasures | ArmCost) -> dict[str, Any]:
    """Return a record as columns: an estimate takes three."""
    found: dict[str, Any] = {}
    for part in dataclasses.fields(row):
        value = getattr(row, part.name)
        for name, one in value.items() if isinstance(value, Mapping) else [("", value)]:
            column = "_".join(filter(None, (part.name, name)))
            cells = one if isinstance(one, IntervalEstimate) else (one,)
            found |= {f"{column}{end}": cell for end, cell in zip(_INTERVAL, cells, strict=False)}
    return found


def _table(rows: Sequence[Mapping[str, Any]]) -> bytes:
    file = io.StringIO()
    if rows:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return file.getvalue().encode()


_BESIDE = 0.12  # of a category's width, between two agents


def plot_retention(rows: Sequence[ArmMeasures], folder: Path) -> list[Path]:
    """Write ``retention.png`` and ``.svg``. Raises MissingExtra without matplotlib, UserError if
    the folder cannot be written."""
    known = [row for row in rows if row.retention[0] is not None]
    try:
        make_folder(folder, "--plots")
        return write_plot(folder / "retention", lambda axes: draw_retention(axes, known))
    except OSError as error:
        raise UserError(f"--plots {folder}: cannot be written ({error.strerror})") from error


def draw_retention(axes: Axes, rows: Sequence[ArmMeasures]) -> bool:
    """Retention with its interval under every fault, agents beside each other."""
    if not rows:
        return False
    arms = list(dict.fromkeys(row.arm for row in rows))
    agents = list(dict.fromkeys(row.agent for row in rows))
    for number, agent in enumerate(agents):
        mine = [row for row in rows if row.agent == agent]
        places = [arms.index(row.arm) + (number - (len(agents) - 1) / 2) * _BESIDE for row in mine]
        ends = [_percentages(row.retention) for row in mine]
        values = [value for value, _, _ in ends]
        limits = [
            [value - low for value, low, _ in ends],
            [high - value for value, _, high in ends],
        ]
        axes.errorbar(places, values, limits, fmt="o", capsize=3, label=agent or "all agents")
    axes.axhline(100, color="0.6", linewidth=0.8)
    axes.set_xticks(range(len(arms)), arms)
    axes.set_ylabel("success retained (%)")
    axes.set_ylim(bottom=0)
    axes.legend()
    return True


def _percentages(retention: IntervalEstimate) -> tuple[float, float, float]:
    """Return the estimate and its limits; the estimate itself for a limit that is not known."""
    value = 100 * (retention[0] or 0.0)
    low, high = (value if end is None else 100 * end for end in retention[1:])
    return value, min(low, value), max(high, value)
