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


def label(store: LabelQueue, person: int, success: str = "yes") -> int:
    """Label the person's next item; its number."""
    offer = store.claim_next(person)
    assert offer is not None
    version = store.own_reading(person, offer.item).version
    who = (person, offer.item)
    store.submit(*who, answers(success), version, f"r{offer.item}.{version}")
    return offer.item


def names(store: LabelQueue, *people: str) -> list[int]:
    return [store.add_person(name)[0].id for name in people]


def disputed(tmp_path: Path) -> tuple[LabelQueue, int, int, int]:
    store = queue(tmp_path, [item(0, wanted=2), item(1)])
    a, b = names(store, "a", "b")
    judge = store.add_person("j", "adjudicator")[0].id
    label(store, a, "yes")
    label(store, a, "yes")
    label(store, b, "no")
    return store, a, b, judge
