"""Runs of tool calls, their labels and published verdicts, against the files read a second time."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.trajectories.loaders.released.toolcall_runs import RUN, written
from trajudge.annotations import open_annotations
from trajudge.annotations.published import open_verdicts
from trajudge.eval.store.inputs import find_source
from trajudge.trajectories.loaders import detect_kind, open_source
from trajudge.trajectories.model import Trajectory, Unreadable
from trajudge.util.errors import UserError

VERDICT = {
    "trajectory_id": "I-1-wrong_tool",
    "judge_id": "step:m",
    "faulty": True,
    "failure_step": 0,
    "failure_type": "premature_stop",
    "confidence": 0.9,
    "rationale": "because",
    "error": None,
}


def test_a_call_is_an_action_and_its_observation_is_seen_next(tmp_path: Path) -> None:
    folder = written(tmp_path, [RUN, {**RUN, "trajectory_id": "I-1-clean"}])
    assert detect_kind(folder) == "toolcalls"
    first, second = open_source(str(folder))
    assert isinstance(first, Trajectory)
    assert isinstance(second, Trajectory)
    assert (first.key.task_id, first.key.attempt, second.key.attempt) == ("I-1", 0, 1)
    assert [step.action for step in first.steps] == ['find(id="O\'1", n=2)', None, None]
    assert [step.observation.axtree for step in first.steps] == [
        None,
        '{"ok":true,"data":{"total":3}}',
        None,
    ]
    assert (first.steps[0].reasoning, first.answer) == ("Look.", "Done.")
    assert "wrong_tool" not in first.model_dump_json()


def test_labels_and_verdicts_are_of_the_process(tmp_path: Path) -> None:
    folder = written(tmp_path, [RUN], [VERDICT, {**VERDICT, "faulty": None, "error": "timeout"}])
    [label] = open_annotations(f"toolcalls:{folder}")
    assert (label.success, label.process) == (True, False)
    assert (label.failure_step, label.failure_type) == (1, "wrong_tool")
    said, failed = open_verdicts(str(folder))
    assert (said.judge_id, said.success, said.process) == ("step:m@published", None, False)
    assert (said.failure_step, said.failure_type) == (0, "premature_stop")
    assert (said.scores, said.reasoning) == ({"confidence": 0.9}, "because")
    assert (failed.status, failed.detail, failed.process) == ("unparsable", "timeout", None)


@pytest.mark.parametrize("line", ["{", "[]", '{"goal": 3}', '{"trajectory_id": 1}', "\x00\xff"])
def test_a_damaged_line_costs_no_other_run(tmp_path: Path, line: str) -> None:
    folder = written(tmp_path, [RUN, line + "\n", {**RUN, "instance_id": "I-2"}])
    first, bad, last = open_source(f"toolcalls:{folder}")
    assert isinstance(bad, Unreadable)
    assert "line 2" in bad.source
    assert isinstance(first, Trajectory)
    assert isinstance(last, Trajectory)
    with pytest.raises(UserError, match="line 2"):
        open_annotations(f"toolcalls:{folder}")


@pytest.mark.parametrize(
    ("verdict", "message"),
    [
        ({**VERDICT, "trajectory_id": "no"}, "line 1: 'no' is no run"),
        ({**VERDICT, "judge_id": "../../etc"}, "names a path, not a judge"),
        ("nothing\n", "line 1: is no verdict"),
    ],
)
def test_a_verdict_that_belongs_nowhere_is_refused(
    tmp_path: Path, verdict: Any, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        open_verdicts(str(written(tmp_path, [RUN], [verdict])))


@pytest.mark.real_data
def test_every_run_label_and_verdict_is_as_in_the_files(real_data: Path) -> None:
    folder = real_data / "trajectory_judge"
    rows = [json.loads(line) for line in (folder / "trajectories.jsonl").open()]
    source = find_source(str(folder), None)
    runs, labels = list(source.read()), source.annotations
    assert len(runs) == len(labels) == len(rows) == 400
    for row, run, label in zip(rows, runs, labels, strict=True):
        assert isinstance(run, Trajectory)
        assert run.key == label.key
        assert (run.goal, run.answer) == (row["goal"], row["final_answer"])
        assert [step.reasoning for step in run.steps[:-1]] == [s["thought"] for s in row["steps"]]
        for number, step in enumerate(row["steps"]):
            shown = run.steps[number + 1].observation.axtree
            assert json.loads(shown or "") == step["observation"]
            action = run.steps[number].action or ""
            assert action.startswith(step["call"]["tool"] + "(")
            assert eval(f"dict{action[action.index('(') :]}") == step["call"]["args"]
        truth = row["label"]
        assert (label.success, label.process) == (truth["outcome_correct"], not truth["faulty"])
        assert (label.failure_step, label.failure_type) == (
            truth["failure_step"],
            truth["failure_type"],
        )
        assert row["trajectory_id"] not in run.model_dump_json()
    verdicts = open_verdicts(str(folder))
    assert Counter(v.judge for v in verdicts) == dict.fromkeys(
        (
            "programmatic",
            "outcome:qwen2.5:14b",
            "step:qwen2.5:14b",
            "step:llama3.1:8b",
            "selfcons3:qwen2.5:14b",
        ),
        400,
    )


@pytest.mark.real_data
def test_episodes_of_a_real_agent_are_read_from_their_own_file(real_data: Path) -> None:
    runs = list(open_source(str(real_data / "trajectory_judge" / "agent_trajectories.jsonl")))
    assert len(runs) == 60
    assert {run.key.agent for run in runs if run.key} == {"agent_trajectories"}
