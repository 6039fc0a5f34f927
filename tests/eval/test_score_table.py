"""``trajudge score`` and ``tj.score`` of a table of judgments: what ``Run.to_frame()`` makes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import trajudge
from tests.commands import score as main
from tests.eval.runs_to_score import make_run

NEEDED = ("benchmark", "agent", "task_id", "judge", "success")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run")


def table_of(run: Path, suffix: str) -> Path:
    frame, file = trajudge.read_run(run).to_frame(), run.parent / f"table{suffix}"
    if suffix == ".csv":
        frame.to_csv(file, index=False)
    elif suffix == ".parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(file)
    else:
        frame.to_json(file, orient="records", lines=True)
    return file


def scored(capsys: pytest.CaptureFixture[str], *words: object) -> list[dict[str, object]]:
    assert main([*map(str, words), "--json", "--baselines", "off"]) == 0
    report = json.loads(capsys.readouterr().out)
    return [one for one in report["scores"] if not one["baseline"]]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_table_scores_as_the_run_that_it_was_made_of(
    run: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = ("--annotations", f"trajudge:{run / 'labels.jsonl'}")
    expected = scored(capsys, run, *labels)
    assert expected and scored(capsys, table_of(run, suffix), *labels) == expected
    assert scored(capsys, run / "judgments.jsonl", *labels) == expected


def test_a_frame_scores_as_its_run(run: Path) -> None:
    judgments = trajudge.read_run(run)
    found = trajudge.score(judgments.to_frame(), judgments.labels)
    mine = [one for one in found.scores if not one.baseline]
    assert mine == [one for one in judgments.scores().scores if not one.baseline]


def rows_of(run: Path) -> list[dict[str, str]]:
    with table_of(run, ".csv").open(newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize("name", ["task", "taskID", "question_id", "Prompt"])
def test_the_task_is_found_by_the_names_that_check_knows(
    run: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = ("--annotations", f"trajudge:{run / 'labels.jsonl'}")
    rows = [{name if k == "task_id" else k: v for k, v in row.items()} for row in rows_of(run)]
    table = write(run.parent / "renamed.csv", rows)
    assert scored(capsys, table, *labels) == scored(capsys, run, *labels)


@pytest.mark.parametrize("name", NEEDED)
def test_a_column_that_is_missing_is_named(
    run: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{key: value for key, value in row.items() if key != name} for row in rows_of(run)]
    assert main([str(write(run.parent / "cut.csv", rows))]) == 2
    error = capsys.readouterr().err
    assert f"cut.csv: has no column {name}, only " in error
    assert "trajudge check TABLE" in error


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("success", "perhaps", "success"),
        ("status", "fine", "status"),
        ("score", "1.5", "score"),
        ("calls", "[{", "calls, cost or seconds are no numbers"),
        ("judge", "", "judge"),
    ],
)
def test_a_cell_that_cannot_be_read_is_named_with_its_line(
    run: Path, column: str, value: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = rows_of(run)
    rows[1][column] = value
    assert main([str(write(run.parent / "bad.csv", rows))]) == 2
    error = capsys.readouterr().err
    assert "bad.csv, line 3: " in error and why in error


def test_an_empty_verdict_is_unknown_and_no_no(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = rows_of(run)
    for row in rows[:5]:
        row["success"] = ""
    labels = ("--annotations", f"trajudge:{run / 'labels.jsonl'}")
    whole, *_ = [s for s in scored(capsys, run, *labels) if s["benchmark"] == "overall"]
    file = write(run.parent / "open.csv", rows)
    found, *_ = [s for s in scored(capsys, file, *labels) if s["benchmark"] == "overall"]
    assert isinstance(found["missing"], int) and isinstance(whole["missing"], int)
    assert 0 < found["missing"] - whole["missing"] <= 5


def test_the_cost_of_a_row_is_that_of_its_calls(run: Path) -> None:
    frame = trajudge.read_run(run).to_frame().assign(calls=3, cost=0.25)
    spent = trajudge.score(frame, trajudge.read_run(run).labels).spending
    assert sum(one.calls for one in spent) == 3 * len(frame)
    assert sum(one.cost or 0 for one in spent) == pytest.approx(0.25 * len(frame))
    assert all(one.cost is None for one in trajudge.score(frame.assign(cost=None)).spending)
