"""``trajudge rules evaluate`` on runs of original tasks, and what the commands write."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.command_words import instead
from tests.commands import rules_evaluate as main
from tests.rules.evaluated import RUNS, TASKS, task_of
from tests.tables import mistakes, table
from trajudge.eval.cli import main as trajudge
from trajudge.rules.files import write_json, write_text
from trajudge.util.commands import OK, USAGE_ERROR
from trajudge.util.errors import UserError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.json").write_text(json.dumps(TASKS))
    _write(tmp_path, RUNS)
    return tmp_path


def _write(folder: Path, runs: list[dict[str, Any]]) -> None:
    (folder / "runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))


def _evaluate(folder: Path, *more: str) -> int:
    words = ["--tasks", str(folder / "tasks.json"), "--runs", str(folder / "runs.jsonl")]
    return main(instead([*words, "--out", str(folder / "runs-original")], more))


def _outcomes(out: Path) -> dict[str, str]:
    results = [json.loads(path.read_text()) for path in sorted((out / "tasks").iterdir())]
    return {str(result["task_id"]): result["outcome"] for result in results}


def test_the_summary_counts_pass_fail_and_unknown(folder: Path) -> None:
    started = time.perf_counter()
    assert _evaluate(folder) == OK
    elapsed = time.perf_counter() - started
    out = folder / "runs-original"
    assert _outcomes(out) == {"1": "pass", "2": "fail", "3": "unknown", "4": "unknown"}
    summary = json.loads((out / "summary.json").read_text())
    overall = summary["overall"]
    assert (overall["runs"], overall["passed"], overall["unknown"]) == (4, 1, 2)
    assert (summary["mode"], summary["missing"], overall["success"]) == ("original", 1, 0.25)
    assert 0 <= summary["seconds"] <= elapsed + 0.001  # rounded
    assert summary["sites"]["shopping"]["passed"] == 1
    assert summary["failure_modes"] == {"answer.fuzzy_match": 1, "answer.must_include": 1, "url": 1}


def test_a_site_s_address_decides_what_was_unknown_without(folder: Path) -> None:
    site = ("--site", "reddit=http://forum.test")
    assert _evaluate(folder, *site, "--task", "4", "--out", str(folder / "out")) == OK
    assert _outcomes(folder / "out") == {"4": "pass"}


def test_a_site_that_only_a_task_names_is_known(folder: Path) -> None:
    tasks = json.loads((folder / "tasks.json").read_text())
    tasks[0]["start_url"] = "__FORUM__/f"
    (folder / "tasks.json").write_text(json.dumps(tasks))
    assert _evaluate(folder, "--site", "forum=http://forum.test") == OK


def test_a_task_that_cannot_be_done_counts_as_one(folder: Path) -> None:
    _write(folder, [{"task_id": 5, "answer": "N/A"}])
    assert _evaluate(folder) == OK
    result = json.loads((folder / "runs-original/tasks/5.json").read_text())
    assert (result["outcome"], result["achievable"]) == ("pass", False)


@mistakes(
    """
    --mode sound => --mode sound: webarena tasks have original
    --workers 4 => --workers: is for runs of WebArena Verified
    --require-activity => --require-activity: is for runs of WebArena Verified
    --task 5 => holds no run of task 5
    --task 9 => holds no task '9'
    """
)
def test_a_mistake_in_the_call_is_one_sentence(
    folder: Path, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _evaluate(folder, *words) == USAGE_ERROR
    assert sentence in capsys.readouterr().err
    assert not (folder / "runs-original").exists()


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        ({"task_id": 1, "answer": "4"}, "holds two runs of task 1"),
        ({"task_id": 77, "answer": "4"}, "task id 77 is in no task file"),
    ],
)
def test_a_run_that_belongs_nowhere_is_named(
    folder: Path, run: dict[str, Any], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(folder, [*RUNS, run])
    assert _evaluate(folder) == USAGE_ERROR
    assert sentence in capsys.readouterr().err


@pytest.mark.real_data
def test_the_published_tasks_are_told_by_their_file(tmp_path: Path, real_data: Path) -> None:
    tasks = real_data / "webarena/test.raw.json"
    (tmp_path / "runs.json").write_text(json.dumps({str(n): "N/A" for n in range(812)}))
    words = ["--tasks", str(tasks), "--runs", str(tmp_path / "runs.json")]
    assert main([*words, "--out", str(tmp_path / "out")]) == OK
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["overall"]["runs"] == 812
    assert summary["overall"]["passed"] == 36


def test_results_go_into_a_folder_of_their_own_and_never_among_the_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    words = ["--tasks", str(folder / "tasks.json"), "--runs", str(folder / "runs.jsonl")]
    assert main(words) == OK
    (out,) = Path("evaluated").iterdir()
    assert out.name.startswith("runs-original-")
    assert str(out) in capsys.readouterr().out
    assert main(words) == OK
    assert list(Path("evaluated").iterdir()) == [out]
    verified = ["--tasks", str(folder / "tasks.json"), "--kind", "verified", "--runs", "."]
    assert main(verified) == USAGE_ERROR


def test_a_dialect_gives_parts_and_a_bad_task_costs_its_own_run_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = [
        {**task_of(1, must_include=["tea", "milk |or| cream"]), "type_main": "Massive Memory"},
        task_of(2, must_include=["tea", "rum"]),
        task_of(3, must_include="tea"),
    ]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    _write(tmp_path, [{"task_id": number, "answer": "tea, cream"} for number in (1, 2, 3)])
    assert _evaluate(tmp_path) == 1
    shown = capsys.readouterr().out
    assert "1 of 3 runs passed" in shown
    assert "mean score, parts counted: 75.0 % of 2 runs that have one" in shown
    assert _outcomes(tmp_path / "runs-original") == {"1": "pass", "2": "fail", "3": "unknown"}
    assert "eval.reference_answers.must_include: expected `array`" in " ".join(shown.split())


@pytest.mark.real_data
def test_tasks_of_real_are_listed_and_not_evaluated(
    real_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(tmp_path, RUNS)
    words = ["--tasks", str(real_data / "real_bench" / "v1"), "--runs", str(tmp_path)]
    assert main(words) == USAGE_ERROR
    assert "REAL's checks ask the sites for their state" in capsys.readouterr().err


@table(
    "words file shown",
    """
    evaluate --runs DIR/runs.jsonl        | summary.json  | of 4 runs passed
    evaluate --runs DIR/runs.jsonl --full | summary.json  | of 4 runs passed
    lint                                  | lint.json     | 1 of 5 tasks of tasks.json
    mutate                                | mutation.json | tasks.json, original rules
    mutate --full                         | mutation.json | tasks.json, original rules
    blind                                 | naive.json    | agents that never see a page pass
    """,
)
def test_the_result_is_printed_where_the_file_cannot_be_written(
    words: str, file: str, shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tasks.json").write_text(json.dumps(TASKS))
    (tmp_path / "runs.jsonl").write_text("".join(f"{json.dumps(run)}\n" for run in RUNS))
    (tmp_path / "out" / file).mkdir(parents=True)
    named = words.replace("DIR", str(tmp_path)).split()
    places = ["--tasks", str(tmp_path / "tasks.json"), "--out", str(tmp_path / "out")]
    assert trajudge(["rules", *named, *places]) == 2
    captured = capsys.readouterr()
    assert shown in captured.out
    assert f"{tmp_path / 'out' / file}: cannot be written (Is a directory" in captured.err


def test_a_file_takes_the_place_of_an_earlier_one_and_is_never_half_written(
    tmp_path: Path,
) -> None:
    """Whoever reads the earlier file goes on reading it: its content is not overwritten."""
    path = tmp_path / "out" / "lint.json"
    write_json(path, {"earlier": 1})
    reader = tmp_path / "reader"
    reader.hardlink_to(path)
    write_json(path, {"later": 2})
    assert ("earlier" in reader.read_text(), "later" in path.read_text()) == (True, True)


def test_text_is_written_as_it_is(tmp_path: Path) -> None:
    write_text(tmp_path / "runs.jsonl", "a\r\n\ud800\n")
    assert (tmp_path / "runs.jsonl").read_bytes() == b"a\r\n\xed\xa0\x80\n"


def test_a_place_that_cannot_be_written_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "out" / "lint.json"
    with pytest.raises(UserError) as raised:
        write_text(path, "")
    assert str(raised.value) == f"{path}: cannot be written (Not a directory): name another place"
