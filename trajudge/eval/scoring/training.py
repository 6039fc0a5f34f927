"""Judgments of trajectories that a judge was trained on are kept apart from its metrics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from trajudge.judges.model import Judgment
from trajudge.judges.training_set import key_hash
from trajudge.trajectories.model import TrajectoryKey
from trajudge.trajectories.util.terminal import count_of

Training = Mapping[str, Collection[TrajectoryKey]]
"""Judge -> the trajectories that it was trained on."""


def trained_on(
    manifest: Mapping[str, Any], judgments: Iterable[Judgment]
) -> dict[str, set[TrajectoryKey]]:
    """Find those of a run's judgments that its manifest names as training data."""
    hashes = set(manifest.get("training_keys") or ())
    keys: dict[str, set[TrajectoryKey]] = {}
    for judgment in judgments if hashes else ():
        if key_hash(judgment.key) in hashes:
            keys.setdefault(judgment.judge, set()).add(judgment.key)
    return keys


def without_training(judgments: Sequence[Judgment], training: Training) -> list[Judgment]:
    """Leave out the judgments on training data."""
    if not training:
        return list(judgments)
    return [j for j in judgments if j.key not in training.get(j.judge, ())]


def on_training_set(judge: str, count: int) -> Iterator[str]:
    """Say that they were left out."""
    if count:
        yield (
            f"{judge}: {count_of(count, 'trajectory')} left out, because it was trained on them; "
            "trajudge run telemetry --cross-fit DIR judges each by a model that was not"
        )


def included(training: Training) -> Iterator[str]:
    """Warn that they were not."""
    for judge, keys in training.items():
        yield (
            f"warning: {judge} was trained on {len(keys)} of the trajectories that it is scored "
            "on: its metrics are not those of new trajectories"
        )
