"""Judges on arms: their precision is compared over the same runs."""

from __future__ import annotations

from pathlib import Path

from trajudge.annotations import store as annotation_store
from trajudge.annotations.model import Annotation
from trajudge.eval.resilience.judged import judged
from trajudge.eval.resilience.records import ExperimentArm, FaultExperiment
from trajudge.trajectories import store
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey

# The heuristic judge accepts a run that ends with a message: all of these.
RIGHT = {"careful": {"clean": True, "busy": True}, "careless": {"clean": False}}


def recording(folder: Path, arm: str) -> ExperimentArm:
    """Six tasks by each agent that has runs in the arm, all right or all wrong."""
    runs, labels = [], []
    for agent, arms in RIGHT.items():
        for number in range(6 if arm in arms else 0):
            key = TrajectoryKey(benchmark="shop", agent=agent, task_id=f"t{number}")
            said = Step(
                index=0, observation=Observation(url="http://x/"), action="send_msg_to_user('a')"
            )
            last = Step(index=1, observation=Observation(url="http://x/"))
            runs.append(
                Trajectory(
                    key=key,
                    raw_task_id=key.task_id,
                    goal="g",
                    steps=(said, last),
                    answer="a",
                    terminated=True,
                )
            )
            labels.append(
                Annotation(key=key, raw_task_id=key.task_id, annotator="x", success=arms[arm])
            )
    store.write(folder / arm, runs)
    annotation_store.write(folder / arm / "labels.jsonl", labels)
    return ExperimentArm(arm, [], folders=(str(folder / arm),))


def test_an_arm_without_an_agent_is_compared_without_it(tmp_path: Path) -> None:
    clean, busy = recording(tmp_path, "clean"), recording(tmp_path, "busy")
    rows = judged(FaultExperiment(clean, [busy]), ["heuristic"], {})
    assert [(row.arm, row.runs, row.accepted) for row in rows] == [
        ("clean", 12, 12),
        ("busy", 6, 6),
    ]
    assert [row.precision.estimate for row in rows] == [0.5, 1.0]
    assert rows[1].difference is not None
    assert rows[1].difference.estimate == 0
