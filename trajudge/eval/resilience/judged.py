"""What judges make of runs with faults: precision with and without them, on the same tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trajudge.annotations import store as annotation_store
from trajudge.annotations.model import Labels, primary_labels
from trajudge.eval.data.run_folder import read_manifest
from trajudge.eval.data.sources import read_last_judgments
from trajudge.eval.resilience.measures import (
    CONFIDENCE,
    IntervalEstimate,
    all_alike,
    estimate_of,
    rate,
    with_width,
)
from trajudge.eval.resilience.records import ExperimentArm, FaultExperiment
from trajudge.eval.stats.intervals.cluster_bootstrap import sum_clusters
from trajudge.eval.stats.intervals.clustered_differences import clustered_differences
from trajudge.judges.client import NoModel
from trajudge.judges.judging import judge_trajectory
from trajudge.judges.model import Judge, Judgment
from trajudge.judges.registry import find_judge, make_judge
from trajudge.trajectories import store
from trajudge.trajectories.goals import split_goals
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.local.folders import refuse_repeated


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
    place = _judged_place(str(manifest.get("data")))
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
