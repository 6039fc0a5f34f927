"""Train the telemetry judge, and evaluate it on tasks that it was not trained on."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from trajudge.eval.analysis.cross_fit import write_cross_fitted
from trajudge.eval.analysis.held_out import FeatureTable, evaluate, read_labelled, rendered
from trajudge.eval.store.settings import TelemetryConfig
from trajudge.judges.methods.telemetry import FEATURES, TelemetryModel
from trajudge.judges.telemetry_training import fit
from trajudge.judges.training import key_hash
from trajudge.util.commands import OK, saved_behind_output
from trajudge.util.errors import UserError
from trajudge.util.files import save_bytes


def train_telemetry(config: TelemetryConfig) -> int:
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
        names=_features(config),
        target_precision=config.target_precision,
    )
    with saved_behind_output() as save:
        if config.cross_fit:
            save(_save_cross_fitted, config.cross_fit, table, config)
        if config.save:
            save(_save_model, config.save, training, config)
        sys.stdout.write(rendered(evaluation))
    return OK


def _features(config: TelemetryConfig) -> list[str]:
    """List the features that are used, in the order of ``FEATURES``."""
    return [name for name in FEATURES if name not in config.without]


def _save_cross_fitted(folder: Path, table: FeatureTable, config: TelemetryConfig) -> None:
    write_cross_fitted(
        folder,
        table,
        (config.data, config.annotations),
        names=_features(config),
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
        names=_features(config),
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
