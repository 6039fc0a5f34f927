"""What the telemetry judge reaches on tasks that it was not trained on, over many seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trajudge.annotations import primary_labels
from trajudge.annotations.agentrewardbench import BENCHMARKS, benchmark_of
from trajudge.eval.data.inputs import find_source, open_spec
from trajudge.eval.reporting.formatting import benchmark_name
from trajudge.judges.methods.telemetry_judge import ended_by_environment, features
from trajudge.judges.methods.telemetry_training import fit, folds_of
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.needs import NO_NEEDS
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.tables import Table, text

_RESAMPLES = 100
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


class HeldOutResult(NamedTuple):
    """One row of the table. Rates: mean over the seeds, then the 95 % limits of a bootstrap that
    draws tasks again within every seed (both kinds of chance in one); None: not defined."""

    name: str
    n: int
    positives: int
    accepted: float
    precision: tuple[float, float, float] | None
    recall: tuple[float, float, float] | None


def read_labelled(spec: str | None, annotations: str | None) -> FeatureTable:
    """Read every run that has an action and a label. Raises UserError if there is none."""
    source = find_source(spec, annotations)
    labels = primary_labels(source.annotations)
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
        raise UserError(f"{source.spec}: no run has both an action and an expert's label")
    runs = [run for run, _ in rows]
    return FeatureTable(
        rows=np.array([features(run) for run, _ in rows]),
        labels=np.array([bool(label.success) for _, label in rows]),
        groups=np.array([f"{run.key.benchmark}/{run.key.task_id}" for run, _ in rows]),
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
    rng = np.random.default_rng(seeds[0])
    return [_outcome(name, judged, kept, accepted, rng) for name, kept in _rows(judged)]


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
    yield "Overall", np.ones(len(judged.labels), dtype=bool)
    yield ENDED, judged.ended_by_environment
    yield OTHERS, ~judged.ended_by_environment


def _outcome(
    name: str,
    judged: FeatureTable,
    kept: NDArray[np.bool_],
    accepted: NDArray[np.bool_],
    rng: np.random.Generator,
) -> HeldOutResult:
    labels, verdicts = judged.labels[kept], accepted[:, kept]
    tasks, task = np.unique(judged.groups[kept], return_inverse=True)
    if not len(tasks):
        return HeldOutResult(name, 0, 0, 0.0, None, None)

    def by_task(values: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Count, per task, the runs for which a value holds: (..., tasks)."""
        return np.stack([np.bincount(task, row, len(tasks)) for row in np.atleast_2d(values)])

    hits, taken = by_task(verdicts & labels), by_task(verdicts)
    positives = by_task(labels)
    drawn = rng.multinomial(len(tasks), np.full(len(tasks), 1 / len(tasks)), size=_RESAMPLES)
    return HeldOutResult(
        name,
        len(labels),
        int(labels.sum()),
        float(taken.sum(axis=1).mean()),
        _rate(hits, taken, drawn),
        _rate(hits, np.broadcast_to(positives, hits.shape), drawn),
    )


def _rate(
    parts: NDArray[np.int64], wholes: NDArray[np.int64], drawn: NDArray[np.int64]
) -> tuple[float, float, float] | None:
    """Mean over seeds and limits of sums of ``parts`` over sums of ``wholes`` (seeds, tasks)."""
    point = _ratios(parts.sum(axis=1), wholes.sum(axis=1))
    again = _ratios(parts @ drawn.T, wholes @ drawn.T)
    if not len(point) or not len(again):
        return None
    low, high = np.quantile(again, (0.025, 0.975))
    return float(point.mean()), float(low), float(high)


def _ratios(parts: NDArray[np.int64], wholes: NDArray[np.int64]) -> NDArray[np.float64]:
    defined = wholes > 0
    return parts[defined] / wholes[defined]


def rendered(outcomes: Sequence[HeldOutResult]) -> str:
    """Render the table as text."""
    head = ("benchmark", "precision [95 %]", "recall [95 %]", "accepted", "n", "positives")
    rows = [
        (
            row.name,
            _percent(row.precision),
            _percent(row.recall),
            f"{row.accepted:.1f}",
            str(row.n),
            str(row.positives),
        )
        for row in outcomes
    ]
    return text(Table("", head, rows, names=1)).lstrip("\n")


def _percent(rate: tuple[float, float, float] | None) -> str:
    return "–" if rate is None else "{:.1f} [{:.1f}, {:.1f}]".format(*(100 * r for r in rate))
