"""Verdicts of the telemetry judge on all labelled runs, each by a model that saw nothing of its
task, as the folder of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from trajudge.eval.analysis.held_out import FeatureTable
from trajudge.eval.store.inputs import find_source
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
from trajudge.judges.telemetry_training import fit, folds_of
from trajudge.util.errors import UserError
from trajudge.util.files import make_folder

JUDGE = "telemetry-cross-fitted"


def cross_fitted(
    table: FeatureTable,
    rng: np.random.Generator,
    *,
    folds: int,
    names: Sequence[str],
    target: float,
) -> list[Judgment]:
    """One judgment a run, in the order of keys; thresholds come from the other folds, too."""
    judgments = []
    for train, test in folds_of(table.labels, table.groups, rng, folds):
        model = fit(*table.part(train), rng, names=names, target_precision=target)
        for place in test:
            score = model.probability(table.rows[place].tolist())
            judgments.append(
                Judgment(
                    key=table.keys[place],
                    judge=JUDGE,
                    status=Status.OK,
                    success=score >= model.threshold,
                    score=score,
                )
            )
    return sorted(judgments, key=lambda judgment: judgment.key.order)


def write_cross_fitted(
    folder: Path,
    table: FeatureTable,
    source: tuple[str | None, str | None],
    *,
    names: Sequence[str],
    folds: int,
    seed: int,
    target: float,
) -> None:
    """Write the folder of a run; ``source`` names the data and the annotations.

    Raises UserError if the folder holds a run, or cannot be written.
    """
    if (folder / JUDGMENTS).exists():
        raise UserError(f"--cross-fit {folder}: holds judgments already: choose another folder")
    rng = np.random.default_rng(seed)
    judgments = cross_fitted(table, rng, folds=folds, names=names, target=target)
    dataset = find_source(*source)
    manifest = RunManifest(
        judge=JUDGE,
        options={"features": list(names), "folds": folds, "target_precision": target},
        seed=seed,
        data=dataset.spec,
        annotations=dataset.labels,
        version=code_version(),
    )
    with writing(folder):
        make_folder(folder, "--cross-fit")
        write_judgments(folder, judgments)
        write_labels(folder, table.annotations.tolist())
        rewards = zip(table.keys.tolist(), table.rewards.tolist(), strict=True)
        write_rewards(folder, {key: None if np.isnan(r) else r for key, r in rewards})
        write_manifest(folder, manifest.model_dump(mode="json"))
