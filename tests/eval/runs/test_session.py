"""A session of a run as a whole."""

from __future__ import annotations

import pytest

from tests.eval.judge_command import run
from trajudge.trajectories.model import TrajectoryKey

pytestmark = pytest.mark.usefixtures("own_folder")


def test_what_a_run_has_come_to_is_not_printed_behind_the_scenes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    printed: list[str] = []

    def told(key: TrajectoryKey) -> str:
        printed.append(key.task_id)
        return key.task_id

    monkeypatch.setattr(TrajectoryKey, "__repr__", told)
    assert run("--judge", "rule-based") == 0
    assert not printed, "asyncio prints a task's result when it compares signal handlers"
