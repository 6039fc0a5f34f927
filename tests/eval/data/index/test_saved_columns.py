"""Columns in a side file are those of the files as they are, or they are not used."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from tests.eval.data.index.test_judgments import equal, made
from trajudge.eval.store import table as reading
from trajudge.eval.store import table as saved_tables
from trajudge.eval.store.run_folder import CALLS, JUDGMENTS, judgment_line, ledger_lines
from trajudge.eval.store.table import SETTLED, RunJudgments, SavedColumns, read_run_judgments

NOW = time.time()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(saved_tables, "LARGE", 1)
    monkeypatch.setenv("TRAJUDGE_CACHE", str(tmp_path / "cache" / "replies.sqlite"))
    run = tmp_path / "run"
    run.mkdir()
    (run / JUDGMENTS).write_bytes(b"".join(map(judgment_line, made())))
    (run / CALLS).write_bytes(b"".join(line for j in made() for line in ledger_lines(j)))
    monkeypatch.setattr(time, "time_ns", lambda: time.monotonic_ns() + 2 * SETTLED + int(NOW * 1e9))
    return run


def read(folder: Path) -> RunJudgments:
    return read_run_judgments(folder / JUDGMENTS, folder / CALLS)


def saved(folder: Path) -> bool:
    return SavedColumns(folder / JUDGMENTS, folder / CALLS).load() is not None


def test_the_second_reading_decodes_no_line(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = read(run)
    monkeypatch.delattr(reading, "decode_fields")
    again = read(run)
    equal(again.columns, first.columns)
    assert list(again) == list(first) == made()
    kept = [2, 0]
    assert list(again.behind([first.at(first.columns.ok())]))[-1] == made()[-1]
    assert [*again.columns.at(first.columns.sample == 1).keys] == [made()[3].key]
    assert [again[place].calls for place in kept] == [made()[place].calls for place in kept]


def test_a_run_without_calls_is_kept(run: Path) -> None:
    free = [judgment.model_copy(update={"calls": ()}) for judgment in made()]
    (run / JUDGMENTS).write_bytes(b"".join(map(judgment_line, free)))
    (run / CALLS).write_bytes(b"")
    first = read(run)
    assert saved(run)
    equal(read(run).columns, first.columns)


def test_a_change_of_either_file_is_seen(run: Path) -> None:
    read(run)
    assert saved(run)
    for name in (JUDGMENTS, CALLS):
        content, times = (run / name).read_bytes(), (run / name).stat()
        (run / name).write_bytes(content.replace(b'"webarena.3"', b'"webarena.4"'))
        os.utime(run / name, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert not saved(run), "the same size and date, another content"
        read(run)
        assert saved(run)
    with (run / JUDGMENTS).open("ab") as file:
        file.write(judgment_line(made()[1]))
    assert not saved(run)
    assert len(read(run)) == len(made()) + 1


def test_a_copy_of_the_run_and_a_damaged_side_file_are_read_anew(run: Path) -> None:
    read(run)
    copied = Path(shutil.copytree(run, run.with_name("copy"), copy_function=shutil.copy2))
    assert not saved(copied)
    (side,) = (run.parent / "cache").iterdir()
    whole = side.read_bytes()
    side.rename(side.with_name(SavedColumns(copied / JUDGMENTS, copied / CALLS)._table.place.name))  # type: ignore[union-attr]
    assert not saved(copied), "a side file that somebody put there"
    for damaged in (b"", whole[:100], whole[:-1] + bytes([whole[-1] ^ 1]), b"TJC0" + whole[4:]):
        side.write_bytes(damaged)
        assert not saved(run)
        assert list(read(run)) == made()


def test_small_and_unsettled_files_leave_nothing(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("TRAJUDGE_CACHE", str(run.parent / "cache" / "replies.sqlite"))
    read(run)
    monkeypatch.setattr(saved_tables, "LARGE", 1)
    (run / JUDGMENTS).touch()
    read(run)
    assert not (run.parent / "cache").exists()


def test_a_cache_that_cannot_be_written_is_no_failure(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run.parent / "file").touch()
    monkeypatch.setenv("TRAJUDGE_CACHE", str(run.parent / "file" / "replies.sqlite"))
    assert list(read(run)) == made()
