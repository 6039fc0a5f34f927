"""Runs of one goal under several task ids: said, and counted as one task where asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import trajudge as tj
from trajudge.annotations import store as annotation_store
from trajudge.annotations.model import Label
from trajudge.eval.cli import main
from trajudge.eval.store.task_goals import goal_digest, read_goals
from trajudge.trajectories import store
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey


def made(number: int, goal: str, url: str | None = "https://shop.example/") -> Trajectory:
    key = TrajectoryKey(benchmark="own", agent="a", task_id=f"run-{number:02}")
    steps = (Step(index=0, observation=Observation(url=url), action="click('1')"),)
    return Trajectory(key=key, raw_task_id=key.task_id, goal=goal, steps=steps, answer="done")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Forty accepted runs of ten goals, each with a task id of its own; five goals succeed."""
    runs = [made(number, f"Buy item {number // 4}") for number in range(40)]
    store.write(tmp_path / "trajectories.jsonl", runs)
    labels = [
        Label(key=one.key, raw_task_id="", annotator="x", success=number // 4 % 2 == 0)
        for number, one in enumerate(runs)
    ]
    annotation_store.write(tmp_path / "labels.jsonl", labels)
    data = f"trajudge:{tmp_path / 'trajectories.jsonl'}"
    assert (
        main(["judge", "--judge", "heuristic", "--data", data, "--out", str(tmp_path / "r")]) == 0
    )
    return tmp_path / "r"


def test_the_two_widths_are_said_and_the_goals_counted(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(set(read_goals(run).values())) == 10
    assert main(["score", str(run), "--baselines", "off"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "40 task ids share 10 goals and their start pages" in shown
    assert "50.0 [33.8, 66.2] counts 40 tasks, 50.0 [20.0, 80.0] 10 goals" in shown
    assert "share 10 goals" in (run / "results.json").read_text()
    goals = ["--task-id", "goal"]
    assert main(["score", str(run), "--baselines", "off", *goals]) == 0
    shown = capsys.readouterr().out
    assert "50.0 [20.0, 80.0]" in shown and "share" not in shown
    assert {s.tasks for s in tj.score(run, task_id="goal").scores if s.n} == {10}
    words = ["audit", str(run), "--evaluator", "heuristic", "--out", str(tmp_path / "audit")]
    assert main([*words, *goals]) == main(words) == 0
    by_goal, by_id = (tj.audit(run, evaluator="heuristic", task_id=t) for t in ("goal", "recorded"))
    assert by_goal.errors[0].precision.low == pytest.approx(0.19984, abs=0.0001)
    assert "counts 40 tasks" in by_id.shared_goals and not by_goal.shared_goals
    (run / "goals.jsonl").unlink()
    capsys.readouterr()
    assert main(["score", str(run), *goals]) == 2
    assert "name no goals" in capsys.readouterr().err


def test_ranks_say_both_widths_and_count_goals(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["score", str(run), "--ranks", "--baselines", "off"]
    assert main(words) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "50.0 [33.8, 66.2] counts 40 tasks, 50.0 [20.0, 80.0] 10 goals" in shown
    assert main([*words, "--task-id", "goal"]) == 0
    shown = capsys.readouterr().out
    assert "50.0 [20.0, 80.0]" in shown and "task ids" not in shown


def test_agreement_counts_goals_in_a_queue_and_in_its_export(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queue, out = str(tmp_path / "queue"), tmp_path / "labels"
    build = ["label", "build", str(run), "--budget", "40", "--double", "1", "--out", queue]
    assert main(build) == 0
    labels = [
        Label(key=one.key, raw_task_id="", annotator=name, success=success)
        for number in range(40)
        for one in (made(number, ""),)
        for name, success in (("x", number // 4 % 2 == 0), ("y", number // 4 < 7))
    ]
    file = tmp_path / "opinions.jsonl"
    annotation_store.write(file, labels)
    assert main(["label", "import", queue, "--annotations", f"trajudge:{file}"]) == 0
    assert main(["label", "export", queue, "--out", str(out)]) == 0
    exported = ["label", "estimate", "--annotations", f"trajudge:{out / 'labels.jsonl'}"]
    for words in (["label", "estimate", queue], exported):
        capsys.readouterr()
        assert main(words) == 0
        captured = capsys.readouterr()
        assert "counts 40 tasks" in captured.err and " 10 goals" in captured.err
        assert main([*words, "--task-id", "goal", "--json"]) == 0
        by_goal = capsys.readouterr()
        assert "goals" not in by_goal.err
        success = json.loads(by_goal.out)["agreement"][0]
        assert (success["label"], success["n"], success["tasks"]) == ("success", 40, 10)
    (out / "goals.jsonl").unlink()
    assert main([*exported, "--task-id", "goal"]) == 2


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (made(1, "  buy  ITEM 1"), True),
        (made(1, "Buy item 1", "https://shop.example"), True),
        (made(1, "Buy item 1", "https://other.example/"), False),
        (made(1, "Buy item 1", None), False),
        (made(1, "Buy item 11"), False),
    ],
)
def test_a_goal_is_its_words_and_its_start_page(other: Trajectory, same: bool) -> None:
    assert (goal_digest(made(0, "Buy item 1")) == goal_digest(other)) is same
    assert goal_digest(made(0, " ")) == 0


def test_a_file_of_goals_that_cannot_be_read_is_named(run: Path) -> None:
    lines = (run / "goals.jsonl").read_text().splitlines()
    assert json.loads(lines[0]).keys() == {"benchmark", "task_id", "goal"}
    (run / "goals.jsonl").write_text("[]\n")
    with pytest.raises(tj.UserError, match=r"goals\.jsonl: cannot be read as goals"):
        read_goals(run)
