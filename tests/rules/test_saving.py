"""A result is printed before it is written: a file that cannot be written does not lose it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.rules.evaluated import RUNS, TASKS
from tests.tables import table
from trajudge.eval.cli import main


@table(
    "words file shown",
    """
    evaluate --runs DIR/runs.jsonl        | summary.json  | of 4 runs passed
    evaluate --runs DIR/runs.jsonl --full | summary.json  | original: 4 runs
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
    assert main(["rules", *named, *places]) == 2
    captured = capsys.readouterr()
    assert shown in captured.out
    assert f"{tmp_path / 'out' / file}: cannot be written (Is a directory" in captured.err
