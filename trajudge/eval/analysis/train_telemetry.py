"""``trajudge judges train``: train the telemetry judge, and score it on tasks that it did not see.

The score is of cross-fitted verdicts: every labelled run is judged by a model that was trained on
other tasks, threshold included.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trajudge.annotations import Label, primary_labels
from trajudge.annotations.agentrewardbench import family_of
from trajudge.eval.reporting.summary import summary
from trajudge.eval.scoring.compute import score
from trajudge.eval.settings import TelemetryConfig
from trajudge.eval.store.inputs import DataSource, find_source, open_spec
from trajudge.eval.store.labels import refuse_unequal
from trajudge.eval.store.manifest import RunManifest, code_version
from trajudge.eval.store.run_folder import (
    JUDGMENTS,
    write_judgments,
    write_labels,
    write_manifest,
    write_rewards,
    writing,
)
from trajudge.judges.model import Judgment, Status
from trajudge.judges.telemetry import FEATURES, features, fit, folds_of
from trajudge.judges.training import key_hash
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.trajectories.needs import NO_NEEDS
from trajudge.util.commands import OK, saved_behind_output
from trajudge.util.errors import UserError
from trajudge.util.files import make_folder, save_bytes

JUDGE = "telemetry-cross-fitted"


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """n labelled runs that have an action, by key: ``rows`` (n, features), ``labels`` (n,), and
    ``groups`` (n,), which are tasks."""

    rows: NDArray[np.float64]
    labels: NDArray[np.bool_]
    groups: NDArray[np.str_]
    annotations: dict[TrajectoryKey, Label]
    rewards: dict[TrajectoryKey, float | None]


def train_telemetry(config: TelemetryConfig) -> int:
    """Train, print the score on held-out tasks, and write what ``config`` names; the exit code.

    Raises UserError for too few labelled tasks and for files that cannot be written.
    """
    for name in config.without:
        if name not in FEATURES:
            raise UserError(f"--without {name}: no such feature; there are {', '.join(FEATURES)}")
    source = find_source(config.data, config.annotations)
    table = _read(source, config)
    judgments = _cross_fitted(table, config)
    scores = score(judgments, table.annotations, rewards=table.rewards)
    with saved_behind_output() as save:
        if config.cross_fit:
            save(_write_run, config.cross_fit, source, table, judgments, config)
        if config.save:
            save(_write_model, config.save, table, config)
        sys.stdout.write(summary(scores))
    return OK


def _read(source: DataSource, config: TelemetryConfig) -> FeatureTable:
    """Read every run of the split that has an action and a label. Raises UserError if there are too
    few."""
    labels = primary_labels(source.annotations)
    refuse_unequal(labels, "trajudge judges train")
    runs: dict[TrajectoryKey, Trajectory] = {}
    for run in open_source(open_spec(source.spec), labels.__contains__, NO_NEEDS):
        if not isinstance(run, Trajectory) or not any(step.action for step in run.steps):
            continue
        label = labels[run.key]
        if label.success is not None and config.split in ("all", label.split):
            runs[run.key] = run
    success = np.array([bool(labels[key].success) for key in runs])
    groups = np.array([f"{key.benchmark}/{family_of(key)}" for key in runs])
    than = f" than {config.annotations}" if config.annotations else ""
    for kind, name in ((True, "successful"), (False, "unsuccessful")):
        tasks = len(set(groups[success == kind])) if runs else 0
        if tasks < 2 * config.folds:
            raise UserError(
                f"{source.spec}: {tasks} tasks with a run that has an action and is labelled "
                f"{name} are too few to train on in {config.folds} folds: name more --data, other "
                f"--annotations{than}, or fewer --folds"
            )
    return FeatureTable(
        rows=np.array([features(run) for run in runs.values()]),
        labels=success,
        groups=groups,
        annotations={key: labels[key] for key in runs},
        rewards={key: run.official_reward for key, run in runs.items()},
    )


def _cross_fitted(table: FeatureTable, config: TelemetryConfig) -> list[Judgment]:
    """Judge every run by a model that saw nothing of its task, in the order of keys."""
    rng = np.random.default_rng(config.seed)
    keys = [*table.annotations]
    judgments = []
    for train, test in folds_of(table.labels, table.groups, rng, config.folds):
        model = fit(
            table.rows[train],
            table.labels[train],
            table.groups[train],
            rng,
            names=_features(config),
            target_precision=config.target_precision,
        )
        for place in test:
            chance = model.probability(table.rows[place].tolist())
            success = chance >= model.threshold
            judgments.append(
                Judgment(
                    key=keys[place], judge=JUDGE, status=Status.OK, success=success, score=chance
                )
            )
    return sorted(judgments, key=lambda judgment: judgment.key.order)


def _features(config: TelemetryConfig) -> list[str]:
    """List the features that are used, in the order of ``FEATURES``."""
    return [name for name in FEATURES if name not in config.without]


def _write_run(
    folder: Path,
    source: DataSource,
    table: FeatureTable,
    judgments: list[Judgment],
    config: TelemetryConfig,
) -> None:
    if (folder / JUDGMENTS).exists():
        raise UserError(f"--cross-fit {folder}: holds judgments already: choose another folder")
    used, target = _features(config), config.target_precision
    manifest = RunManifest(
        judge=JUDGE,
        options={"features": used, "folds": config.folds, "target_precision": target},
        seed=config.seed,
        data=source.spec,
        annotations=source.labels,
        version=code_version(),
    )
    with writing(folder):
        make_folder(folder, "--cross-fit")
        write_judgments(folder, judgments)
        write_labels(folder, [*table.annotations.values()])
        write_rewards(folder, table.rewards)
        write_manifest(folder, manifest.model_dump(mode="json"))
    sys.stderr.write(f"the cross-fitted verdicts are in {folder}\n")


def _write_model(file: Path, table: FeatureTable, config: TelemetryConfig) -> None:
    """Train on all runs; the model names what it was trained on."""
    model = fit(
        table.rows,
        table.labels,
        table.groups,
        np.random.default_rng(config.seed),
        names=_features(config),
        target_precision=config.target_precision,
    )
    keys = tuple(sorted(map(key_hash, table.annotations)))
    model = model.model_copy(update={"training_keys": keys})
    save_bytes(file, (model.model_dump_json(indent=2) + "\n").encode())
    sys.stderr.write(f"the model is in {file}\n")
