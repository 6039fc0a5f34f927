"""Train the telemetry judge, and evaluate it on tasks that it was not trained on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from trajudge.annotations import LabelsBy
from trajudge.eval.analysis.cross_fit import write_cross_fitted
from trajudge.eval.analysis.held_out import FeatureTable, evaluate, read_labelled, rendered
from trajudge.judges.methods.telemetry import FEATURES, TelemetryModel
from trajudge.judges.telemetry_training import fit
from trajudge.judges.training import key_hash
from trajudge.trajectories.model import Record, Seed
from trajudge.util.commands import saved_behind_output
from trajudge.util.errors import UserError
from trajudge.util.files import save_bytes


class TelemetryConfig(Record):
    """What the judge is trained on, how it is evaluated, and what is written.

    ``train_split`` and ``eval_split`` name two splits (None: ``seeds`` task-grouped
    cross-validations in ``folds`` folds, from ``seed`` on); ``without`` are features left out;
    ``save`` is the model's file, ``cross_fit`` the folder of a run of cross-fitted verdicts.
    """

    data: str | None = None
    annotations: str | None = None
    labels_by: LabelsBy | None = None
    train_split: Literal["dev", "test"] | None = None
    eval_split: Literal["dev", "test"] | None = None
    cross_validate: bool = False
    folds: int = Field(default=5, ge=2)
    seeds: int = Field(default=20, ge=1)
    seed: Seed = 0
    target_precision: float = 0.85
    without: tuple[str, ...] = ()
    save: Path | None = None
    cross_fit: Path | None = None

    @property
    def features(self) -> list[str]:
        """The features that are used, in the order of ``FEATURES``."""
        return [name for name in FEATURES if name not in self.without]


def train_telemetry(config: TelemetryConfig) -> None:
    """Train and evaluate, print the evaluation, then write what ``config`` names: the table is not
    lost to a file that cannot be written.

    Raises UserError for settings that contradict each other, for too few labelled tasks and for
    files that cannot be written.
    """
    _check(config)
    table = read_labelled(config.data, config.annotations, config.labels_by)
    training = table.split(config.train_split) if config.train_split else table
    _require_both_kinds(training, config.folds)
    evaluation = evaluate(
        training,
        table.split(config.eval_split) if config.eval_split else None,
        seeds=range(config.seed, config.seed + config.seeds),
        folds=config.folds,
        names=config.features,
        target_precision=config.target_precision,
    )
    with saved_behind_output() as save:
        if config.cross_fit:
            save(_save_cross_fitted, config.cross_fit, table, config)
        if config.save:
            save(_save_model, config.save, training, config)
        sys.stdout.write(rendered(evaluation))


def _save_cross_fitted(folder: Path, table: FeatureTable, config: TelemetryConfig) -> None:
    write_cross_fitted(
        folder,
        table,
        (config.data, config.annotations),
        names=config.features,
        folds=config.folds,
        seed=config.seed,
        target=config.target_precision,
    )
    sys.stderr.write(f"the cross-fitted verdicts are in {folder}\n")


def _save_model(file: Path, training: FeatureTable, config: TelemetryConfig) -> None:
    model = _trained(training, config)
    save_bytes(file, (model.model_dump_json(indent=2) + "\n").encode())
    sys.stderr.write(f"the model is in {file}\n")


def _trained(training: FeatureTable, config: TelemetryConfig) -> TelemetryModel:
    """Train the model on all training data; the model names what it was trained on."""
    model = fit(
        training.rows,
        training.labels,
        training.groups,
        np.random.default_rng(config.seed),
        names=config.features,
        target_precision=config.target_precision,
    )
    keys = tuple(sorted(key_hash(key) for key in training.keys))
    return model.model_copy(update={"training_keys": keys})


def _check(config: TelemetryConfig) -> None:
    for name in config.without:
        if name not in FEATURES:
            raise UserError(f"--without {name}: no such feature; there are {', '.join(FEATURES)}")
    train, other = config.train_split, config.eval_split
    if bool(train) != bool(other) or (train and config.cross_validate):
        raise UserError("--train-split goes with --eval-split, and neither with --cross-validate")
    if train and train == other:
        raise UserError(f"--train-split {train} --eval-split {other}: name two splits")


def _require_both_kinds(training: FeatureTable, folds: int) -> None:
    for kind, name in ((True, "successful"), (False, "unsuccessful")):
        tasks = len(set(training.groups[training.labels == kind]))
        if tasks < 2 * folds:
            raise UserError(
                f"{tasks} tasks with a run labelled {name} are too few to train on in {folds} "
                "folds: name more --data, or fewer --folds"
            )
