"""The experts' labels of Online-Mind2Web."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

from trajudge.annotations import open_annotations, primary_labels
from trajudge.annotations.sources.online_mind2web import load
from trajudge.eval.judge import main
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError


@pytest.mark.real_data
@pytest.mark.parametrize("spec", ["online-mind2web:{}", "{}", "{}/human_label.json"])
def test_the_published_success_rates_come_out(real_data: Path, spec: str) -> None:
    labels = defaultdict(list)
    for label in open_annotations(spec.format(real_data / "online-mind2web")):
        assert label.success is not None
        labels[label.key.agent].append(label.success)
    assert {len(values) for values in labels.values()} == {300}
    assert {agent: round(sum(values) / 3, 1) for agent, values in labels.items()} == {
        "Operator": 61.3,
        "Claude_Computer_Use_3.7": 56.3,
        "SeeAct": 30.7,
        "Browser_Use": 30.0,
        "Claude_Computer_Use_3.5": 29.0,
        "Agent-E": 28.0,
    }


@pytest.mark.real_data
def test_a_judge_of_real_submissions_is_scored_against_them(
    real_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, task = real_data / "online-mind2web", "bf3b311cc8dce16d3de844f4b5875dfd"
    shutil.copytree(source / task, tmp_path / "SeeAct" / task)
    out = tmp_path / "run"
    arguments = ["--judge", "heuristic", "--data", f"online-mind2web:{tmp_path / 'SeeAct'}"]
    arguments += ["--annotations", f"online-mind2web:{source}", "--out", str(out)]
    assert main(arguments) == 0
    found = json.loads((out / "results.json").read_text())["scores"]
    judged = [s for s in found if s["label"] == "success" and not s["baseline"]]
    expected = json.loads((source / "human_label.json").read_text())
    label = next(row["SeeAct_human_label"] for row in expected if row["task_id"] == task)
    assert {(s["n"], s["positives"]) for s in judged} == {(1, int(label))}


def write(path: Path, rows: object) -> Path:
    path.write_text(json.dumps(rows))
    return path


def test_not_executable_counts_as_failure(tmp_path: Path) -> None:
    row = {"task_id": "t", "confirmed_task": "x", "A_human_label": "2", "B_human_label": "1"}
    found = load(write(tmp_path / "human_label.json", [row]))
    keys = [TrajectoryKey(benchmark="online-mind2web", agent=a, task_id="t") for a in "AB"]
    assert {key: label.success for key, label in primary_labels(found).items()} == {
        keys[0]: False,
        keys[1]: True,
    }


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"task_id": "t", "A_human_label": "yes"}], "A_human_label of task t is 'yes'"),
        ([{"A_human_label": "1"}], "entry 0 has no task_id"),
        ({"t": 1}, "is no human_label.json"),
    ],
)
def test_other_files_are_named(tmp_path: Path, rows: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load(write(tmp_path / "labels.json", rows))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        load(tmp_path)
    with pytest.raises(UserError, match="need a path"):
        open_annotations("online-mind2web")
