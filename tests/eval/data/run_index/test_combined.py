"""Several runs as one index: all their judgments, each trajectory once."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.eval.cases import label, said
from tests.eval.data.run_index.runs import judgments, write
from trajudge.eval.sources import combine, read_run
from trajudge.eval.store.queries import CombinedIndex, parse_filter
from trajudge.eval.store.run_folder import JUDGMENTS, judgment_line, write_labels, write_manifest
from trajudge.eval.store.run_index import RunIndex

pytestmark = pytest.mark.usefixtures("own_folder")


def rows(index: CombinedIndex, sql: str, *values: object) -> list[sqlite3.Row]:
    with index.reading() as connection:
        return connection.execute(sql, values).fetchall()


def two(folder: Path) -> list[Path]:
    first = write(folder / "first")
    other = [said(task, task > 3, judge="a" if task % 2 else "z") for task in range(8, 16)]
    second = write(folder / "second", other)
    write_labels(second, [label(8, True), label(15, False)])
    return [first, second]


def combined(folders: list[Path]) -> CombinedIndex:
    return CombinedIndex({folder.name: RunIndex(folder) for folder in folders})


def test_it_tells_what_the_combined_sources_tell(tmp_path: Path) -> None:
    folders = two(tmp_path)
    index = combined(folders)
    source = combine([read_run(folder) for folder in folders])
    found = rows(
        index,
        "select j.*, t.task_id from judgment j join trajectory t on t.id = j.trajectory "
        "order by j.id",
    )
    names = {str(folder): folder.name for folder in folders}
    for row, judgment in zip(found, source.judgments, strict=True):
        judge = judgment.judge
        for path, name in names.items():
            judge = judge.replace(path, name)
        assert (row["judge"], row["task_id"]) == (judge, judgment.key.task_id)
        assert (row["success"], row["status"]) == (judgment.success, judgment.status)
        told = source.labels.get(judgment.key)
        assert row["expert"] == (
            None if told is None else -1 if told.success is None else told.success
        )
    assert [row["run"] for row in found] == [0] * len(judgments()) + [1] * 8
    tasks = rows(index, "select task_id, judges from trajectory")
    assert len(tasks) == len({row["task_id"] for row in tasks}) == 16
    assert dict(map(tuple, tasks))["webarena.9"] == 4


def test_filters_ask_over_all_judges(tmp_path: Path) -> None:
    """Of task 8 a and z say yes, b no (two samples that differ), and c yes."""
    clause = parse_filter("disagree>=1 expert:yes").trajectories()
    found = rows(
        combined(two(tmp_path)),
        f"select task_id from trajectory t where {clause.sql}",
        *clause.parameters,
    )
    assert [row["task_id"] for row in found] == [f"webarena.{task}" for task in (0, 2, 4, 8)]


def test_what_is_appended_is_copied(tmp_path: Path) -> None:
    folders = two(tmp_path)
    index = combined(folders)
    count = "select count(*) from judgment"
    before = rows(index, count)[0][0]
    version = index.version
    index._took = 0.0
    with (folders[1] / JUDGMENTS).open("ab") as file:
        file.write(judgment_line(said(30, True)))
    assert rows(index, count)[0][0] == before + 1
    assert index.version != version


def test_more_runs_than_a_database_attaches(tmp_path: Path) -> None:
    folders = [write(tmp_path / f"run{n}", [said(1, True), said(n, False)]) for n in range(13)]
    assert rows(combined(folders), "select count(*), count(distinct judge) from judgment")[0][
        :
    ] == (26, 13)


def test_parts_of_one_judge_are_one_judge_and_other_settings_are_another(tmp_path: Path) -> None:
    """Two runs judge the two halves of the tasks; a third has the settings of neither."""
    halves = [[said(task, True, judge="a") for task in tasks] for tasks in (range(6), range(6, 9))]
    folders = [write(tmp_path / f"half{n}", lines) for n, lines in enumerate(halves)]
    judges = "select judge, count(*) from judgment group by judge order by judge"
    assert list(map(tuple, rows(combined(folders), judges))) == [("a", 9)]
    other = write(tmp_path / "other", [said(9, True, judge="a")])
    write_manifest(other, {"judge": "a", "data": "trajudge:absent", "prompt_hash": "other"})
    assert list(map(tuple, rows(combined([*folders, other]), judges))) == [
        ("a (half0)", 6),
        ("a (half1)", 3),
        ("a (other)", 1),
    ]
