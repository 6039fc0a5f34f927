"""Small queues for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trajudge.annotations.queue import (
    FormAnswers,
    LabelQueue,
    QueueItem,
    QueueSettings,
    create_queue,
)
from trajudge.trajectories.model import TrajectoryKey


class Clock:
    """Seconds since 1970 that only a test moves."""

    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


def item(number: int, **fields: Any) -> QueueItem:
    """The ``number``-th trajectory of a benchmark."""
    key = TrajectoryKey(benchmark="webarena", agent="agent-a", task_id=f"webarena.{number}")
    fields = {"position": number, "inclusion_probability": 0.5, **fields}
    return QueueItem(key=key, raw_task_id=key.task_id, **fields)


def queue(
    folder: Path, items: list[QueueItem], clock: Clock | None = None, **settings: Any
) -> LabelQueue:
    """Make a queue and open it."""
    create_queue(folder, QueueSettings(**settings), items)
    return LabelQueue(folder, clock or Clock())


def answers(success: str = "yes", **fields: Any) -> FormAnswers:
    """A form with every question answered."""
    whole = {"side_effect": "no", "repetition": "no", "optimality": 3, **fields}
    return FormAnswers.model_validate({"success": success, **whole})
