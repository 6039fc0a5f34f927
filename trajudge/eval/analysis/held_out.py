"""What the telemetry judge reaches on tasks that it was not trained on, over many seeds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trajudge.annotations import LabelsBy, primary_labels
from trajudge.annotations.agentrewardbench import BENCHMARKS, benchmark_of, family_of
from trajudge.eval.reporting.sentences import benchmark_name, percent, with_limits
from trajudge.eval.scoring.records import Limits
from trajudge.eval.store.inputs import find_source, open_spec
from trajudge.eval.store.labels import refuse_unequal
from trajudge.judges.methods.telemetry import ended_by_environment, features
from trajudge.judges.telemetry_training import fit, folds_of
from trajudge.stats.intervals import rates_by_cluster
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.needs import NO_NEEDS
from trajudge.util.errors import UserError
from trajudge.util.tables import Table, text
from trajudge.util.terminal import count_of

OVERALL_ROW = "Overall"
ENDED = "ended by environment"
OTHERS = "all others"


@dataclass(frozen=True)
class FeatureTable:
    """n runs with a label: ``rows`` (n, features), the other arrays (n,). ``groups`` are tasks;
    ``splits`` are empty where there are none; ``keys`` and ``annotations`` are the runs'."""

    rows: NDArray[np.float64]
    labels: NDArray[np.bool_]
    groups: NDArray[np.str_]
    benchmarks: NDArray[np.str_]
    splits: NDArray[np.str_]
    ended_by_environment: NDArray[np.bool_]
    keys: NDArray[np.object_]
    annotations: NDArray[np.object_]
    rewards: NDArray[np.float64]

    def part(
        self, kept: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.str_]]:
        """Return ``rows``, ``labels`` and ``groups`` of the runs ``kept`` (m,), to fit a model."""
        return self.rows[kept], self.labels[kept], self.groups[kept]

    def split(self, name: str) -> FeatureTable:
        """Select the runs of one split. Raises UserError if it is empty."""
        kept = self.splits == name
        if not kept.any():
            raise UserError(f"the annotations of this data put no trajectory into {name}")
        return FeatureTable(**{field: values[kept] for field, values in vars(self).items()})


class Share(NamedTuple):
    """A rate over all seeds, None where it is not defined; its 95 % limits and the lowest and
    highest of single seeds, None where there are none."""

    value: float | None = None
    limits: Limits | None = None
    of_seeds: Limits | None = None


class HeldOutResult(NamedTuple):
    """One row of the table, of ``n`` runs. A run counts as accepted with the share of seeds that
    accept it; ``accepted`` is the sum, and ``empty`` seeds accept none. Limits are Wilson's on the
    effective number of runs, tasks as clusters within benchmarks, as for every precision and recall
    (docs/statistics.md)."""

    name: str
    n: int
    positives: int
    accepted: float
    precision: Share
    recall: Share
    empty: int = 0


def read_labelled(
    spec: str | None, annotations: str | None, by: LabelsBy | None = None
) -> FeatureTable:
    """Read every run that has an action and a label. Raises UserError if there is none."""
    source = find_source(spec, annotations, by=by)
    labels = primary_labels(source.annotations)
    refuse_unequal(labels, "trajudge run telemetry")
    rows = []
    for trajectory in open_source(open_spec(source.spec), labels.__contains__, NO_NEEDS):
        if not isinstance(trajectory, Trajectory) or not any(
            step.action for step in trajectory.steps
        ):
            continue
        label = labels.get(trajectory.key)
        if label is not None and label.success is not None:
            rows.append((trajectory, label))
    if not rows:
        labelled = f" in {source.labels}" if source.labels else ""
        raise UserError(
            f"{source.spec}: no run has both an action and an expert's label of success{labelled}: "
            "name the labels of these runs with --annotations KIND:PATH"
        )
    runs = [run for run, _ in rows]
    return FeatureTable(
        rows=np.array([features(run) for run, _ in rows]),
        labels=np.array([bool(label.success) for _, label in rows]),
        groups=np.array([f"{run.key.benchmark}/{family_of(run.key)}" for run, _ in rows]),
        benchmarks=np.array([benchmark_of(run.key) for run, _ in rows]),
        splits=np.array([label.split or "" for _, label in rows]),
        ended_by_environment=np.array([ended_by_environment(run) for run, _ in rows]),
        keys=_objects([run.key for run in runs]),
        annotations=_objects([label for _, label in rows]),
        rewards=np.array(
            [np.nan if r.official_reward is None else r.official_reward for r in runs]
        ),
    )


def _objects(values: Sequence[object]) -> NDArray[np.object_]:
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def evaluate(
    training: FeatureTable,
    applied: FeatureTable | None,
    *,
    seeds: Sequence[int],
    folds: int,
    names: Sequence[str],
    target_precision: float,
) -> list[HeldOutResult]:
    """Train on ``training`` and judge ``applied``; without it, cross-validate ``training``.

    Thresholds come from training data alone, within every fold. Rows: each benchmark, overall,
    and the runs that the environment ended apart from the others.
    """
    judged = applied or training
    accepted = np.zeros((len(seeds), len(judged.labels)), dtype=bool)
    for place, seed in enumerate(seeds):
        rng = np.random.default_rng(seed)
        for train, test in _parts(training, applied, rng, folds):
            part = training.part(train)
            model = fit(*part, rng, names=names, target_precision=target_precision)
            scores = np.array([model.probability(row) for row in judged.rows[test].tolist()])
            accepted[place, test] = scores >= model.threshold
    return [_outcome(name, judged, kept, accepted) for name, kept in _rows(judged)]


def _parts(
    training: FeatureTable, applied: FeatureTable | None, rng: np.random.Generator, folds: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    if applied is None:
        yield from folds_of(training.labels, training.groups, rng, folds)
    else:
        yield np.arange(len(training.labels)), np.arange(len(applied.labels))


def _rows(judged: FeatureTable) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    there = set(judged.benchmarks.tolist())
    for benchmark in [*(b for b in BENCHMARKS if b in there), *sorted(there - set(BENCHMARKS))]:
        yield benchmark_name(benchmark), judged.benchmarks == benchmark
    yield OVERALL_ROW, np.ones(len(judged.labels), dtype=bool)
    yield ENDED, judged.ended_by_environment
    yield OTHERS, ~judged.ended_by_environment


def _outcome(
    name: str, judged: FeatureTable, kept: NDArray[np.bool_], accepted: NDArray[np.bool_]
) -> HeldOutResult:
    labels, share = judged.labels[kept], accepted[:, kept].mean(axis=0)
    if not len(labels):
        return HeldOutResult(name, 0, 0, 0.0, Share(), Share())
    hits = np.stack([share * labels] * 2, axis=1)
    trials = np.stack([share, labels], axis=1)
    tasks, benchmarks = judged.groups[kept], judged.benchmarks[kept]
    interval = rates_by_cluster(hits, trials, tasks, benchmarks).interval
    right, taken = (accepted[:, kept] & labels).sum(axis=1), accepted[:, kept].sum(axis=1)
    whole = (taken, np.full_like(taken, labels.sum()))
    limits = zip(interval.low.tolist(), interval.high.tolist(), strict=True)
    precision, recall = map(_rate, (right, right), whole, limits)
    return HeldOutResult(
        name,
        len(labels),
        int(labels.sum()),
        float(share.sum()),
        precision,
        recall,
        empty=int((taken == 0).sum()),
    )


def _rate(hits: NDArray[np.int64], trials: NDArray[np.int64], limits: Limits) -> Share:
    """Pool ``hits`` and ``trials`` (seeds,); a seed without a trial has no rate of its own."""
    if not trials.any():
        return Share()
    single = hits[trials > 0] / trials[trials > 0]
    return Share(
        float(hits.sum() / trials.sum()),
        None if math.isnan(limits[0]) else limits,
        (float(single.min()), float(single.max())),
    )


def rendered(outcomes: Sequence[HeldOutResult]) -> str:
    """Render the table as text."""
    head = ("benchmark", "precision [95 %]", "recall [95 %]", "accepted", "n", "positives")
    rows = [
        (
            row.name,
            with_limits(row.precision.value, row.precision.limits),
            with_limits(row.recall.value, row.recall.limits),
            f"{row.accepted:.1f}",
            str(row.n),
            str(row.positives),
        )
        for row in outcomes
    ]
    shown = text(Table("", head, rows, names=1)).lstrip("\n")
    return shown + _seeds_line(next(row for row in outcomes if row.name == OVERALL_ROW))


def _seeds_line(overall: HeldOutResult) -> str:
    """Say how far single seeds lie apart, which limits of their mean do not show."""
    single = {"precision": overall.precision.of_seeds, "recall": overall.recall.of_seeds}
    ranges = [
        f"{name} {percent(limits[0])} to {percent(limits[1])}"
        for name, limits in single.items()
        if limits and limits[0] < limits[1]
    ]
    if overall.empty:
        ranges.append(f"{count_of(overall.empty, 'seed')} accepted nothing and had no precision")
    return f"Single seeds, overall: {', '.join(ranges)}.\n" if ranges else ""
