"""The key that joins trajectories, labels and judgments."""

from __future__ import annotations

import pickle

import pytest
from pydantic import ValidationError

from trajudge.trajectories.model import TrajectoryKey, checked


@pytest.mark.parametrize("task", ["webarena.1", "visualwebarena.resized.2"])
def test_a_key_of_checked_fields_is_the_validated_one(task: str) -> None:
    benchmark = task.partition(".")[0]
    made = TrajectoryKey.of_checked(benchmark, "agent", task, 1)
    validated = TrajectoryKey(benchmark=benchmark, agent="agent", task_id=task, attempt=1)
    assert (made, hash(made), made.model_dump_json(), repr(made)) == (
        *(validated, hash(validated), validated.model_dump_json(), repr(validated)),
    )
    assert made.model_copy(update={"attempt": 2}).attempt == 2
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(ValidationError):
        made.attempt = 3  # type: ignore[misc]
    with pytest.raises(ValueError, match="negative"):
        TrajectoryKey.of_checked(benchmark, "agent", task, -1)


def test_a_record_of_checked_fields_is_the_validated_one() -> None:
    fields = {"benchmark": "b", "agent": "a", "task_id": "t", "attempt": 2}
    made, validated = checked(TrajectoryKey, dict(fields)), TrajectoryKey.model_validate(fields)
    assert made == validated and hash(made) == hash(validated)
    assert made.model_fields_set == validated.model_fields_set
    assert made.model_dump_json() == validated.model_dump_json()
    assert made.model_copy(update={"attempt": 0}) != made
