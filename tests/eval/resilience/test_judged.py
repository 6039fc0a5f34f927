"""Judges on arms: their precision is compared over the same runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trajudge.annotations import store as annotation_store
from trajudge.annotations.model import Label
from trajudge.eval.cli import main as command
from trajudge.eval.resilience.reading import ExperimentArm, FaultExperiment
from trajudge.eval.resilience.results import judged, judged_before
from trajudge.eval.store.run_folder import read_judgments, write_judgments
from trajudge.trajectories import store
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey
from trajudge.util.errors import UserError

# The heuristic judge accepts a run that ends with a message: all of these.
RIGHT = {"careful": {"clean": True, "busy": True}, "careless": {"clean": False}}


def recording(folder: Path, arm: str) -> ExperimentArm:
    """Six tasks by each agent that has runs in the arm, all right or all wrong."""
    runs, labels = [], []
    for agent, arms in RIGHT.items():
        for number in range(6 if arm in arms else 0):
            key = TrajectoryKey(benchmark="shop", agent=agent, task_id=f"t{number}")
            said = Step(
                index=0,
                observation=Observation(url="http://x/"),
                action="send_msg_to_user('a')",
            )
            seen = Observation(url="http://x/", axtree=f"RootWebArea '/{agent}'")
            last = Step(index=1, observation=seen)
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
            labels.append(Label(key=key, raw_task_id=key.task_id, annotator="x", success=arms[arm]))
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


REPLY = (
    "<reasoning>r</reasoning>\n<success>{}</success>\n<side>No</side>\n"
    "<optimal>4. Completely Optimal</optimal>\n<loop>No</loop>"
)


def judged_by_a_model(data: Path, out: Path) -> Path:
    """Run ``trajudge judge`` with replies from a file: only the careful agent's page tells."""
    lines = [("/careful", "Successful"), ("", "Unsuccessful")]
    script = out.parent / "replies.jsonl"
    script.parent.mkdir(exist_ok=True)
    replies = [{"match": match, "text": REPLY.format(word)} for match, word in lines]
    script.write_text("".join(f"{json.dumps(one)}\n" for one in replies))
    words = ["--model", "m", "--adapter", "scripted", "--script", str(script), "--yes"]
    assert command(["judge", *words, "--data", f"trajudge:{data}", "--out", str(out)]) == 0
    return out


def test_arms_that_a_model_judged_are_read_back(tmp_path: Path) -> None:
    clean, busy = recording(tmp_path, "clean"), recording(tmp_path, "busy")
    runs = [
        judged_by_a_model(tmp_path / arm, tmp_path / "judged" / arm) for arm in ("clean", "busy")
    ]
    rows, notes = judged_before(FaultExperiment(clean, [busy]), runs)
    assert not notes
    assert [(row.judge, row.arm, row.runs, row.accepted) for row in rows] == [
        ("simplified-axtree:m", "clean", 12, 6),
        ("simplified-axtree:m", "busy", 6, 6),
    ]
    assert [row.precision.estimate for row in rows] == [1.0, 1.0]
    assert [row.recall.estimate for row in rows] == [1.0, 1.0]
    twice = [one.model_copy(update={"success": not one.success}) for one in read_judgments(runs[1])]
    write_judgments(runs[1], [*twice, *read_judgments(runs[1])])
    again, (note,) = judged_before(FaultExperiment(clean, [busy]), runs)
    assert again == rows, "the last of each counts"
    assert "holds 6 judgments more than once, 6 of them with another verdict" in note
    with pytest.raises(UserError, match="judged busy alone: name its runs on the clean arm"):
        judged_before(FaultExperiment(clean, [busy]), runs[1:])
    with pytest.raises(UserError, match="which is no arm of these recordings"):
        judged_before(FaultExperiment(clean, []), runs[1:])
    with pytest.raises(UserError, match=r"manifest.json"):
        judged_before(FaultExperiment(clean, [busy]), [tmp_path])


def test_two_runs_of_one_judge_do_not_count_a_trajectory_twice(tmp_path: Path) -> None:
    clean, busy = recording(tmp_path, "clean"), recording(tmp_path, "busy")
    runs = [
        judged_by_a_model(tmp_path / arm, tmp_path / "judged" / name)
        for arm, name in (("clean", "clean"), ("busy", "busy"), ("busy", "again"))
    ]
    experiment = FaultExperiment(clean, [busy])
    with pytest.raises(UserError, match=r"on the busy arm that .*busy holds, too, .* twice: name"):
        judged_before(experiment, runs)
    with pytest.raises(UserError, match="busy: is given twice: give each folder once"):
        judged_before(experiment, [*runs[:2], runs[1]])
    # Halves of an arm, in a run each, are one.
    whole, rest = read_judgments(runs[1]), [runs[0], runs[1], runs[2]]
    write_judgments(runs[1], whole[:2])
    write_judgments(runs[2], whole[2:])
    rows, _ = judged_before(experiment, rest)
    assert [row.runs for row in rows] == [12, 6]
