"""``--goals``: three shapes of one file, and runs that nobody told the goal of."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.commands import accept
from trajudge.eval.judge import main
from trajudge.face.data import load
from trajudge.trajectories import store
from trajudge.trajectories.goals import (
    GoalsFile,
    join_goals,
    read_goals,
    split_goals,
    with_goals,
)
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import ImageRef, Step, Trajectory, TrajectoryKey, Unreadable
from trajudge.util.errors import UserError

GOALS = {"7": "Find a lamp, a cheap one.", "shop.8": 'Say "hello"\nand leave.'}


def run(task: str, goal: str = "", **more: object) -> Trajectory:
    key = TrajectoryKey(benchmark="shop", agent="a", task_id=task)
    values = {"key": key, "raw_task_id": task, "goal": goal, "steps": (Step(index=0),), **more}
    return Trajectory.model_validate(values)


def written(file: Path, content: str) -> Path:
    file.write_text(content, encoding="utf-8")
    return file


LINES = "\n".join(json.dumps({"task_id": task, "goal": goal}) for task, goal in GOALS.items())
QUOTED = 'task_id,site,goal\n7,x,"Find a lamp, a cheap one."\nshop.8,y,"Say ""hello""\nand leave."'
SHAPES = {
    "object.json": json.dumps(GOALS),
    "list.json": "[" + ",".join(LINES.splitlines()) + "]",
    "lines.jsonl": LINES + "\n\n",
    "lines.txt": LINES,
    "numbers.jsonl": LINES.replace('"7"', "7"),
    "table.csv": "\ufeff" + QUOTED,
    "semicolons.csv": QUOTED.replace("7,x,", "7;x;")
    .replace("8,y,", "8;y;")
    .replace("task_id,site,goal", "Task ID;Site;Instruction"),
    "wrapped.json": '{"goals": [' + ",".join(LINES.splitlines()) + "]}",
    "crlf.csv": QUOTED.replace("\n7,", "\r\n7,").replace("\nshop", "\r\nshop"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_gives_the_same_goals(name: str, tmp_path: Path) -> None:
    assert read_goals(written(tmp_path / name, SHAPES[name])).by_task == GOALS


WRONG = {
    "empty.json": ("", "holds no table"),
    "nothing.json": ("{}", "holds no goal"),
    "number.json": ("3", "has no column task_id or no goal"),
    "texts.json": ('["a"]', "holds no list of JSON objects"),
    "goal.json": ('{"7": {"text": "x"}}', "task '7' has no task_id or no goal"),
    "twice.jsonl": ('{"task_id": 1, "goal": "a"}\n{"task_id": "1", "goal": "b"}', "a second goal"),
    "cut.jsonl": ('{"task_id": 1, "goal": "a"}\n{"task_id": 2, "go', "line 2: is no JSON object"),
    "deep.json": ("[" * 100_000, "is no JSON object"),
    "head.csv": ("what,goal\n7,x\n", "has no column task_id or no goal, but 'what', 'goal'"),
    "short.csv": ("task_id,goal\n7\n", "line 2 has no task_id or no goal"),
}


@pytest.mark.parametrize("name", WRONG)
def test_another_file_is_one_sentence(name: str, tmp_path: Path) -> None:
    content, sentence = WRONG[name]
    with pytest.raises(UserError, match=sentence) as caught:
        read_goals(written(tmp_path / name, content))
    assert "\n" not in str(caught.value)
    assert f"--goals {tmp_path / name}" in str(caught.value)


def test_a_pipe_or_no_file_is_one_sentence(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "absent.json", "."):
        with pytest.raises(UserError, match="--goals"):
            read_goals(tmp_path / name)


def test_the_file_goes_before_the_run_and_a_run_without_a_goal_is_named(tmp_path: Path) -> None:
    goals = GoalsFile(tmp_path / "goals.csv", "0", {"1": "From the file."})
    picture = run("4", goal_images=(ImageRef(data=b"x"),))
    items = [run("1"), run("2"), run("1", "Own."), run("3", "Own."), picture]
    filled = list(with_goals(iter(items), goals))
    texts = [one.goal if isinstance(one, Trajectory) else one.reason for one in filled]
    missing = "no goal for task '2' in the run's files; and goals.csv has none either"
    assert texts == ["From the file.", missing, "From the file.", "Own.", ""]
    (untold,) = with_goals(iter([run("2")]), None)
    assert isinstance(untold, Unreadable)
    assert untold.key == run("2").key
    assert untold.reason.endswith("give --goals FILE")


def test_a_canonical_id_finds_its_goal() -> None:
    key = TrajectoryKey(benchmark="visualwebarena", agent="a", task_id="visualwebarena.resized.3")
    one = run("visualwebarena.resized.3", key=key)
    goals = GoalsFile(Path("g"), "0", {"visualwebarena.3": "Buy it."})
    (filled,) = with_goals(iter([one]), goals)
    assert isinstance(filled, Trajectory)
    assert filled.goal == "Buy it."


ENDED: dict[str, Any] = {
    "answer": "Done.",
    "terminated": True,
    "steps": (Step(index=0, action="stop [Done.]"),),
}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    store.write(tmp_path / "logs", [run("1", **ENDED), run("2", **ENDED)])
    return tmp_path / "logs"


def test_judge_counts_a_run_without_a_goal_as_skipped(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    goals = written(tmp_path / "goals.json", '{"1": "Find a lamp."}')
    call = ["--judge", "heuristic", "--data", str(logs), "--out", str(tmp_path / "run")]
    assert main([*call, "--goals", str(goals)]) == 1
    lines = (tmp_path / "run" / "judgments.jsonl").read_text().splitlines()
    statuses = {record["key"]["task_id"]: record["status"] for record in map(json.loads, lines)}
    assert statuses == {"1": "ok", "2": "skipped"}
    assert "no goal for task '2'" in "".join(capsys.readouterr())
    assert main(call) == 2
    assert "holds a run with data" in capsys.readouterr().err
    written(goals, '{"1": "Find a lamp.", "2": "Buy it."}')
    assert main([*call, "--goals", str(goals)]) == 2
    assert "the file of --goals is not the one" in capsys.readouterr().err


def test_what_reads_a_runs_data_again_reads_its_goals(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    goals = written(tmp_path / "goals.json", '{"1": "Find a lamp.", "2": "Buy it."}')
    run_folder, out = tmp_path / "run", tmp_path / "accepted"
    asked = ["--judge", "heuristic", "--data", str(logs), "--goals", str(goals)]
    assert main([*asked, "--out", str(run_folder)]) == 0
    taken = ["--judge", "heuristic", "--threshold", "1", "--page", "none", "--run", str(run_folder)]
    assert accept([*taken, "--without-observations", "--out", str(out)]) == 0
    assert "Accepted 2 of 2" in capsys.readouterr().out
    assert "Buy it." in (out / "accepted.jsonl").read_text()


def test_goals_named_with_the_data(logs: Path, tmp_path: Path) -> None:
    goals = written(tmp_path / "goals.json", '{"1": "Find a lamp."}')
    spec = f"trajudge:{logs}::goals={goals}"
    assert split_goals(spec) == (f"trajudge:{logs}", goals)
    assert join_goals(*split_goals(spec)) == spec
    kinds = [type(item) for item in open_source(spec)]
    assert kinds == [Trajectory, Unreadable]
    for odd in ("x::goals=", "::goals=x", "x:goals=y"):
        assert split_goals(odd) == (odd, None)


def test_load_takes_goals(logs: Path, tmp_path: Path) -> None:
    goals = written(tmp_path / "goals.json", '{"1": "Find a lamp.", "2": "Buy it."}')
    assert [one.goal for one in load(str(logs), goals=goals)] == ["Find a lamp.", "Buy it."]
    with pytest.warns(UserWarning, match="give --goals"):
        assert load(str(logs)) == []
