"""The experts' labels of Online-Mind2Web."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from trajudge.annotations.online_mind2web import HumanLabel, human_labels
from trajudge.trajectories.util.errors import UserError


@pytest.mark.real_data
def test_the_published_success_rates_come_out(real_data: Path) -> None:
    labels = defaultdict(list)
    for label in human_labels(real_data / "online-mind2web"):
        labels[label.agent].append(label.success)
    assert {len(values) for values in labels.values()} == {300}
    assert {agent: round(sum(values) / 3, 1) for agent, values in labels.items()} == {
        "Operator": 61.3,
        "Claude_Computer_Use_3.7": 56.3,
        "SeeAct": 30.7,
        "Browser_Use": 30.0,
        "Claude_Computer_Use_3.5": 29.0,
        "Agent-E": 28.0,
    }


def write(path: Path, rows: object) -> Path:
    path.write_text(json.dumps(rows))
    return path


def test_not_executable_counts_as_failure(tmp_path: Path) -> None:
    row = {"task_id": "t", "confirmed_task": "x", "A_human_label": "2", "B_human_label": "1"}
    assert list(human_labels(write(tmp_path / "human_label.json", [row]))) == [
        HumanLabel("t", "A", False),
        HumanLabel("t", "B", True),
    ]


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
        list(human_labels(write(tmp_path / "labels.json", rows)))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        human_labels(tmp_path)
