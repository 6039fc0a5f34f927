"""The index tells what the run's readers tell, while the run grows and when it is replaced."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from tests.eval.cases import call, key, label, said
from tests.eval.data.run_index.runs import judgments, write
from trajudge.eval.rescoring import observed_verdicts
from trajudge.eval.sources import read_run
from trajudge.eval.store import run_index as database
from trajudge.eval.store.run_folder import (
    CALLS,
    JUDGMENTS,
    judgment_line,
    ledger_lines,
    write_labels,
    write_rewards,
)
from trajudge.eval.store.run_index import ELIDED, REPAIRED, RunIndex
from trajudge.judges.model import Judgment
from trajudge.util.errors import UserError

pytestmark = pytest.mark.usefixtures("own_folder")


def rows(index: RunIndex, sql: str = "select * from judgment order by id") -> list[sqlite3.Row]:
    with index.reading() as connection:
        return connection.execute(sql).fetchall()


def append(folder: Path, judgment: Judgment) -> None:
    with (folder / CALLS).open("ab") as ledger:
        ledger.write(b"".join(ledger_lines(judgment)))
    with (folder / JUDGMENTS).open("ab") as file:
        file.write(judgment_line(judgment))


def check_against_readers(folder: Path, index: RunIndex) -> None:
    source = read_run(folder)
    columns = source.judgments.columns  # type: ignore[attr-defined]
    found = rows(
        index,
        "select j.*, t.benchmark, t.agent, t.task_id, t.attempt from judgment j "
        "join trajectory t on t.id = j.trajectory order by j.id",
    )
    assert len(found) == len(source.judgments)
    ends = np.searchsorted(columns.calls.judgment, np.arange(len(found) + 1))
    for place, (row, judgment) in enumerate(zip(found, source.judgments, strict=True)):
        of_key = (row["benchmark"], row["agent"], row["task_id"], row["attempt"])
        k = judgment.key
        assert of_key == (k.benchmark, k.agent, k.task_id, k.attempt)
        for name in ("judge", "sample", "status", "success", "side_effect", "score"):
            assert row[name] == getattr(judgment, name), name
        calls = slice(ends[place], ends[place + 1])
        assert (row["seconds"] or 0) == pytest.approx(columns.calls.seconds[calls].sum())
        cost = columns.calls.cost[calls].sum()
        assert row["cost"] == (None if np.isnan(cost) else pytest.approx(cost))
        assert row["tokens"] == sum(130 for _ in judgment.calls)
        assert bool(row["flags"] & ELIDED) == (columns.rung[place] > 0)
        assert bool(row["flags"] & REPAIRED) == bool(judgment.fallback)
        told = source.labels.get(k)
        expert = None if told is None else -1 if told.success is None else told.success
        assert row["expert"] == expert
        reward = source.rewards.get(k)
        assert row["rule"] == (None if reward is None else reward > 0.5)
        assert index.judgment(place) == judgment.model_copy(
            update={"calls": tuple(c.model_copy(update={"seconds": 0.0}) for c in judgment.calls)}
        )


def test_it_tells_what_the_readers_tell(tmp_path: Path) -> None:
    folder = write(tmp_path / "run")
    check_against_readers(folder, RunIndex(folder))


def test_a_trajectory_counts_each_judge_once_as_scoring_does(tmp_path: Path) -> None:
    folder = write(tmp_path / "run")
    index = RunIndex(folder)
    votes: dict[str, list[int]] = {}
    for observed in observed_verdicts(read_run(folder), "exclude").values():
        for place, answered, said_yes in zip(
            observed.index, observed.answered, observed.predictions, strict=True
        ):
            told = votes.setdefault(observed.reference.keys.key(place).task_id, [0, 0])
            if answered:
                told[0 if said_yes == 1 else 1] += 1
    found = rows(index, "select * from trajectory where expert >= 0")
    assert len(found) == 10
    for row in found:
        assert [row["yes"], row["no"]] == votes[row["task_id"]]
        assert row["yes"] + row["no"] + row["failed"] == row["judges"] == 3


def test_appended_lines_are_read_alone(tmp_path: Path) -> None:
    every = judgments()
    folder = write(tmp_path / "run", every[:10])
    index = RunIndex(folder)
    assert len(rows(index)) == 10
    with sqlite3.connect(index.place) as connection:
        connection.execute("update judgment set head = 'as it was' where id = 3")
    for judgment in every[10:]:
        append(folder, judgment)
    assert rows(index)[3]["head"] == "as it was"
    assert len(rows(index)) == len(every)
    with sqlite3.connect(index.place) as connection:
        connection.execute("update judgment set head = '' where id = 3")
    check_against_readers(folder, RunIndex(folder))


def test_a_line_that_is_being_written_waits(tmp_path: Path) -> None:
    every = judgments()
    folder = write(tmp_path / "run", every[:3])
    index = RunIndex(folder)
    line = judgment_line(every[3])
    with (folder / JUDGMENTS).open("ab") as file:
        file.write(line[:50])
        file.flush()
        assert len(rows(index)) == 3
        file.write(line[50:])
    assert len(rows(index)) == 4


def test_seconds_wait_for_their_judgment(tmp_path: Path) -> None:
    """The ledger is written before the judgment, by another write."""
    folder = write(tmp_path / "run", judgments()[:4])
    index = RunIndex(folder)
    late = said(50, True, calls=(call(request="f" * 64, seconds=3.5),))
    with (folder / CALLS).open("ab") as ledger:
        ledger.write(b"".join(ledger_lines(late)))
    assert len(rows(index)) == 4
    with (folder / JUDGMENTS).open("ab") as file:
        file.write(judgment_line(late))
    assert rows(index)[4]["seconds"] == 3.5


@pytest.mark.parametrize("how", ["replaced", "truncated", "changed"])
def test_another_file_is_read_anew(tmp_path: Path, how: str) -> None:
    every = judgments()
    folder = write(tmp_path / "run", every)
    index = RunIndex(folder)
    assert len(rows(index)) == len(every)
    file = folder / JUDGMENTS
    if how == "replaced":
        other = tmp_path / "other"
        other.write_bytes(b"".join(map(judgment_line, reversed(every))))
        other.replace(file)
        every.reverse()
    elif how == "truncated":
        every = every[:7]
        os.truncate(file, len(b"".join(map(judgment_line, every))))
    else:
        every[20] = every[20].model_copy(update={"judge": "d"})
        file.write_bytes(b"".join(map(judgment_line, every)))
    assert [row["judge"] for row in rows(index)] == [judgment.judge for judgment in every]
    check_against_readers(folder, index)


def test_labels_that_change_are_seen(tmp_path: Path) -> None:
    folder = write(tmp_path / "run")
    index = RunIndex(folder)
    rows(index)
    write_labels(folder, [label(11, True), label(0, False)])
    write_rewards(folder, {key(11): 1.0})
    check_against_readers(folder, index)


def test_other_labels_have_an_index_of_their_own(tmp_path: Path) -> None:
    folder = write(tmp_path / "run")
    own, other = tmp_path / "own", write(tmp_path / "labels")
    write_labels(other, [label(11, True)])
    index = RunIndex(folder, f"trajudge:{other / 'labels.jsonl'}")
    assert [r["task_id"] for r in rows(index, "select * from trajectory where expert = 1")] == [
        "webarena.11"
    ]
    assert index.place != RunIndex(folder).place
    write_labels(other, [label(3, True)])
    again = RunIndex(folder, f"trajudge:{other / 'labels.jsonl'}")
    assert [r["task_id"] for r in rows(again, "select * from trajectory where expert = 1")] == [
        "webarena.3"
    ]
    assert rows(again, "select count(*) from judgment where expert = 1")[0][0] == 4
    assert not own.exists()


def test_nothing_is_written_into_the_runs_folder(tmp_path: Path) -> None:
    folder = write(tmp_path / "run")
    before = sorted(path.name for path in folder.iterdir())
    rows(RunIndex(folder))
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("content", [b"no database at all" * 100, b""])
def test_a_broken_index_is_made_anew(tmp_path: Path, content: bytes) -> None:
    folder = write(tmp_path / "run")
    place = RunIndex(folder).place
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    check_against_readers(folder, RunIndex(folder))


def test_an_index_of_another_version_is_made_anew(tmp_path: Path) -> None:
    folder = write(tmp_path / "run")
    place = RunIndex(folder).place
    place.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(place) as connection:
        connection.executescript("create table judgment (id); pragma user_version = 99;")
    check_against_readers(folder, RunIndex(folder))


def test_an_index_that_another_process_writes_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_WAIT", 0.05)
    folder = write(tmp_path / "run", judgments()[:3])
    index = RunIndex(folder)
    rows(index)
    other = sqlite3.connect(index.place, isolation_level=None)
    other.execute("begin immediate")
    with pytest.raises(UserError, match="cannot be written"):
        rows(RunIndex(folder))
    other.execute("commit")
    other.close()
    assert len(rows(RunIndex(folder))) == 3


def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRAJUDGE_CACHE", str(tmp_path / "file" / "below" / "replies.sqlite"))
    with pytest.raises(UserError, match="name another folder with TRAJUDGE_CACHE"):
        rows(RunIndex(write(tmp_path / "run")))


def test_a_bad_line_is_named_and_nothing_is_kept_of_it(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", judgments()[:3])
    index = RunIndex(folder)
    rows(index)
    with (folder / JUDGMENTS).open("ab") as file:
        file.write(judgment_line(judgments()[4]) + b'{"key": 1}\n')
    with pytest.raises(UserError, match=r"judgments\.jsonl, line 5"):
        rows(index)


def test_hostile_text_is_kept_as_text(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", [said(1, True, reasoning="a\x00b'); drop table judgment; --")])
    (row,) = rows(RunIndex(folder))
    assert row["head"].startswith("a\x00b');")


def test_a_query_that_takes_too_long_ends(tmp_path: Path) -> None:
    index = RunIndex(write(tmp_path / "run"))
    endless = "with recursive n(x) as (select 1 union all select x + 1 from n) select max(x) from n"
    with pytest.raises(UserError, match="narrow the filter"), index.reading(0.05) as connection:
        connection.execute(endless).fetchall()


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="give the folder of a run"):
        rows(RunIndex(tmp_path))
