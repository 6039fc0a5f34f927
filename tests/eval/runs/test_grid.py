"""What the command says before it judges."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trajudge.eval.judge import main
from trajudge.trajectories import store
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey


@pytest.mark.parametrize(("agent", "labelled"), [("Operator", True), ("runs", False)])
def test_labels_of_other_agents_are_said(
    agent: str, *, labelled: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Online-Mind2Web's labels name agents, its trajectories do not: their folder has to."""
    key = TrajectoryKey(benchmark="online-mind2web", agent=agent, task_id="t1")
    step = Step(index=0, observation=Observation(url="https://a.example/"))
    store.write(tmp_path / "runs", [Trajectory(key=key, raw_task_id="t1", goal="?", steps=(step,))])
    labels = tmp_path / "human_label.json"
    labels.write_text(json.dumps([{"task_id": "t1", "Operator_human_label": "1"}]))
    words = ["--judge", "heuristic", "--data", f"trajudge:{tmp_path / 'runs'}"]
    words += ["--annotations", f"online-mind2web:{labels}", "--out", str(tmp_path / "run")]
    assert main(words) == 0
    said = capsys.readouterr().err
    sentence = (
        "none of its 1 labels belongs to a trajectory that is judged: a label is of agent "
        "'Operator' on 'online-mind2web', task 't1'; a trajectory of agent 'runs'"
    )
    assert (sentence in said) is not labelled
