"""Published judgments as a source: the reward of a trajectory is told by any of its judges."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.eval.cases import key
from trajudge.eval.data.sources import read_published_folder
from trajudge.eval.score import main
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


@pytest.mark.parametrize("with_index", [False, True])
def test_a_broken_file_is_named_however_often_the_folder_is_read(
    tmp_path: Path, with_index: bool
) -> None:
    for task in (1, 2, 3):
        put(tmp_path, "a", f"webarena.{task}", True, 1.0)
    broken = tmp_path / "judgments" / "webarena" / "agent" / "a" / "webarena.2.json"
    broken.write_bytes(broken.read_bytes()[:40])
    for _ in range(2):
        source = read_published_folder(tmp_path, with_labels=False, with_index=with_index)
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
    words = ["--judgments", str(tmp_path), "--no-index", "--resamples", "50", "--json"]
    found = []
    for more in ([], ["--compare", "benchmark"]):
        assert main([*words, *more]) == 0
        comparison = json.loads(capsys.readouterr().out)["comparison"]
        found.append({d["benchmark"] for d in comparison["differences"]})
    assert found == [{"overall"}, {"overall", "webarena", "visualwebarena"}]
