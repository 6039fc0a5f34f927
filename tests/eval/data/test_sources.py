"""Published judgments as a source: the reward of a trajectory is told by any of its judges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands import score as main
from tests.eval.cases import failed, key, label, said
from tests.eval.leaderboard.folders import write_run
from tests.screens import one_screen
from trajudge.eval.sources import combine, judge_names, read_run
from trajudge.eval.store.published import read_published_folder
from trajudge.eval.store.run_folder import JUDGMENTS
from trajudge.judges.model import Status


def put(folder: Path, judge: str, task_id: str, success: bool, reward: float | None) -> None:
    benchmark = task_id.partition(".")[0]
    path = folder / "judgments" / benchmark / "agent" / judge / f"{task_id}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    words = f"Status: {'success' if success else 'failure'}"
    content = {
        "response": {"choices": [{"message": {"content": words}, "finish_reason": "stop"}]},
        "trajectory_info": {"summary_info": {"cum_reward": reward}},
    }
    path.write_text(json.dumps(content))


def test_the_first_reward_that_is_known_counts_whichever_judge_tells_it(tmp_path: Path) -> None:
    put(tmp_path, "a", "visualwebarena.resized.1", True, None)
    put(tmp_path, "b", "visualwebarena.1", True, 1.0)
    put(tmp_path, "c", "visualwebarena.resized.1", True, 0.5)
    put(tmp_path, "c", "visualwebarena.2", True, None)
    source = read_published_folder(tmp_path, with_labels=False)
    one, two = (key(task, "visualwebarena") for task in (1, 2))
    assert source.rewards == {one: 1.0, two: None}
    assert {j.key for j in source.judgments} == {one, two}


def test_the_last_of_repeated_judgments_counts_and_contradictions_are_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the command that made the run goes on with it: they are no samples of one trajectory."""
    labels = [label(task, True) for task in range(4)]
    first = [said(0, True), said(1, True), said(2, True), failed(3, Status.PROVIDER_ERROR)]
    more = [said(0, False), said(2, True), said(3, True), said(3, False, sample=1)]
    run = write_run(tmp_path / "run", [*first, *more], labels)
    source = read_run(run)
    assert [(j.key, j.success) for j in source.judgments if not j.sample] == [
        (key(1), True),
        (key(0), False),
        (key(2), True),
        (key(3), True),
    ]
    assert main([str(run)]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert (
        f"{run / JUDGMENTS}: holds 3 judgments more than once, 1 of them with another verdict: "
        "the last of each counts"
    ) in told


def test_a_broken_file_is_named_however_often_the_folder_is_read(
    tmp_path: Path,
) -> None:
    for task in (1, 2, 3):
        put(tmp_path, "a", f"webarena.{task}", True, 1.0)
    broken = tmp_path / "judgments" / "webarena" / "agent" / "a" / "webarena.2.json"
    broken.write_bytes(broken.read_bytes()[:40])
    for _ in range(2):
        source = read_published_folder(tmp_path, with_labels=False)
        (note,) = source.notes
        assert "1 file of a cannot be read" in note
        assert f"{broken}: cannot be read: " in note
        assert [j.status for j in source.judgments].count(Status.SKIPPED) == 1


def test_judges_are_compared_benchmark_by_benchmark_where_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        "annotator_name,benchmark,task_id,model_name,trajectory_success,trajectory_side_effect,"
    ]
    rows[0] += "trajectory_optimality,trajectory_looping"
    for benchmark in ("webarena", "visualwebarena"):
        for task in range(12):
            right = task % 2 == 0
            put(tmp_path, "good", f"{benchmark}.{task}", right, None)
            put(tmp_path, "odd", f"{benchmark}.{task}", right != (task < 6), None)
            label = "Successful" if right else "Unsuccessful"
            rows.append(f"A,{benchmark},{benchmark}.{task},agent,{label},No,Unsure,No")
    (tmp_path / "annotations.csv").write_text("\n".join(rows) + "\n")
    words = ["--judgments", str(tmp_path), "--json"]
    found = []
    for more in ([], ["--compare", "benchmark"]):
        assert main([*words, *more]) == 0
        comparison = json.loads(capsys.readouterr().out)["comparison"]
        found.append({d["benchmark"] for d in comparison["differences"]})
    assert found == [{"overall"}, {"overall", "webarena", "visualwebarena"}]
    assert main([*words[:-1], "--compare", "benchmark", "--by", "agent"]) == 0
    lines = one_screen(capsys.readouterr().out, 100)
    assert "All tables: --full; agent by agent and benchmark by benchmark:" in lines
    assert [line.split()[:4] for line in lines[-2:]] == [
        ["VisualWebArena", "good", ">", "odd"],
        ["WebArena", "good", ">", "odd"],
    ]


def part(folder: Path, tasks: range, **manifest: Any) -> Path:
    judged = [said(task, task % 3 > 0) for task in tasks]
    return write_run(folder, judged, [label(task, task % 2 > 0) for task in tasks], **manifest)


def test_what_runs_of_one_judge_hold_on_different_trajectories_is_one_judges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its halves stood as two judges, of which one was the more precise."""
    whole = part(tmp_path / "whole", range(20), selection={"split": "all"})
    halves = [
        part(tmp_path / "first", range(9), selection={"benchmarks": ["a"]}, data="trajudge:a"),
        part(tmp_path / "second", range(9, 20), training_keys=[], data="trajudge:b"),
    ]
    assert [*combine([read_run(half) for half in halves]).judgments] == [*read_run(whole).judgments]
    screens = []
    for runs in ([whole], halves):
        assert main([*map(str, runs), "--full", "--baselines", "off"]) == 0
        screens.append(capsys.readouterr().out)
    assert screens[0] == screens[1]


@pytest.mark.parametrize(
    ("tasks", "manifest"), [(range(8, 20), {}), (range(9, 20), {"model": "gpt-4.1"})]
)
def test_runs_that_share_a_trajectory_or_differ_in_a_setting_are_told_apart(
    tmp_path: Path, tasks: range, manifest: dict[str, Any]
) -> None:
    runs = [part(tmp_path / "first", range(9)), part(tmp_path / "second", tasks, **manifest)]
    assert judge_names([read_run(run) for run in runs]) == [
        {"judge": f"judge ({run})"} for run in runs
    ]
