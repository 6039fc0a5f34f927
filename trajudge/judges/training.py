"""What a judge was trained on, by hashes, so that it is not scored on its own training set."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import orjson

from trajudge.trajectories.model import TrajectoryKey

_LENGTH = 32


def key_hash(key: TrajectoryKey) -> str:
    """Hash a trajectory's key, so that a model file names no benchmark's tasks."""
    return sha256(orjson.dumps(key.order)).hexdigest()[:_LENGTH]


def training_hashes(judge: object) -> frozenset[str] | None:
    """Return the hashes of the judge's training set (of all members of a composed judge); None: it
    was trained on trajectories that it does not name."""
    hashes: frozenset[str] | None = getattr(judge, "training_keys", frozenset())
    return hashes


def combined_hashes(judges: Iterable[object]) -> frozenset[str] | None:
    """Combine the training sets of several judges; None where one of them is not known."""
    each = [training_hashes(judge) for judge in judges]
    known = [hashes for hashes in each if hashes is not None]
    return frozenset().union(*known) if len(known) == len(each) else None
