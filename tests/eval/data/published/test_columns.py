"""Columns of published judgments in a side file are those of the files as they are, or they are not
used."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.eval.data.index.test_judgments import equal
from tests.eval.data.published.test_index import place, put
from trajudge.eval import sources
from trajudge.eval.sources import Source
from trajudge.eval.store import published
from trajudge.eval.store.published import NAME, read_published_folder
from trajudge.eval.store.table import SETTLED, columns_of, keys_of_judgments
from trajudge.util.errors import UserError

NOW = time.time()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two judges; answers, a refusal, a duplicate, a judgment that only one of them has."""
    home = tmp_path / "data"
    for judge in ("judge-y", "judge-x"):
        for task in range(4):
            put(home, task, "Successful" if task % 2 else "Unsuccessful", judge)
    put(home, 5, "Successful", trajectory_info={"summary_info": {"cum_reward": None}})
    place(home, 7).write_text('{"error": "content filter"}')
    shutil.copy(place(home, 1), place(home, 1).with_name("webarena.1(1).json"))
    shutil.copy(place(home, 3), place(home, 3).with_name("webarena.3_error.json"))
    monkeypatch.setenv("TRAJUDGE_CACHE", str(tmp_path / "cache" / "replies.sqlite"))
    monkeypatch.setattr(time, "time_ns", lambda: time.monotonic_ns() + 2 * SETTLED + int(NOW * 1e9))
    return home


def read(folder: Path) -> Source:
    return read_published_folder(folder, with_labels=False, with_index=True)


def kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Source | None:
    """Return what is read without a look into a file; None where that is not enough."""
    with monkeypatch.context() as patch:
        patch.delattr(published, "read_listed")
        try:
            return read(folder)
        except NameError:
            return None


def same(one: Source, other: Source) -> None:
    equal(columns_of(one.judgments), columns_of(other.judgments))
    assert [*one.rewards.items()] == [*other.rewards.items()]
    assert (one.representations, one.models, one.notes) == (
        other.representations,
        other.models,
        other.notes,
    )
    assert [*one.judgments] == [*other.judgments]


def is_read_anew_and_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kept(folder, monkeypatch) is None
    same(read(folder), read_published_folder(folder, with_labels=False))
    assert kept(folder, monkeypatch) is not None


def side_file(folder: Path) -> Path:
    (path,) = (folder.parent / "cache").glob(f"*{NAME}")
    return path


def test_the_second_reading_opens_no_judgment_until_a_record_is_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = read_published_folder(folder, with_labels=False)
    assert plain.rewards == {
        key: None if key.task_id in ("webarena.5", "webarena.7") else 0.25 for key in plain.rewards
    }
    assert kept(folder, monkeypatch) is None
    same(read(folder), plain)
    again = kept(folder, monkeypatch)
    assert again is not None
    assert [*keys_of_judgments(again.judgments)] == [j.key for j in plain.judgments]
    same(again, plain)
    with pytest.raises(UserError, match=r"--split dev: no label is in it \(there are none\)"):
        again.restrict("dev")


def test_some_of_the_judgments_are_those_records(folder: Path) -> None:
    plain = read_published_folder(folder, with_labels=False).judgments
    for source in (read(folder), read(folder)):
        one, *_ = plain
        chosen = sources.judgments_of(source.judgments, {one.key})
        assert [*chosen] == [j for j in plain if j.key == one.key]
        assert chosen[0] == one
        assert chosen[:1] == [one]


@pytest.mark.parametrize("task", [0, 7])
def test_a_changed_file_is_seen_though_size_and_date_are_the_old_ones(
    folder: Path, monkeypatch: pytest.MonkeyPatch, task: int
) -> None:
    read(folder)
    path = place(folder, task)
    before = path.stat()
    while path.stat().st_ctime_ns == before.st_ctime_ns:  # clocks of file systems tick slowly
        path.write_text(path.read_text().replace("Unsuccessful", "Successful  "))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    is_read_anew_and_kept(folder, monkeypatch)


def test_files_that_came_and_went_are_followed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(folder)
    for change in (
        lambda: put(folder, 6, "Successful"),
        lambda: place(folder, 6).rename(place(folder, 9)),
        lambda: shutil.move(place(folder, 9), place(folder, 9, "judge-y")),
        lambda: place(folder, 1).unlink(),  # the duplicate counts then
        lambda: shutil.rmtree(place(folder, 0, "judge-y").parent),
    ):
        change()
        is_read_anew_and_kept(folder, monkeypatch)


def test_the_folder_is_known_under_another_name_of_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(folder)
    monkeypatch.chdir(folder / "judgments")
    again = kept(Path(), monkeypatch)
    assert again is not None
    assert [*again.judgments] == [*read(folder).judgments]


def test_a_record_of_a_folder_that_has_changed_since_is_not_given(folder: Path) -> None:
    read(folder)
    again = read(folder)
    put(folder, 0, "Successful")
    with pytest.raises(UserError, match="was changed while it was read"):
        again.judgments[0]


def test_damaged_foreign_and_copied_side_files_are_ignored_and_made_anew(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = read(folder)
    side = side_file(folder)
    whole = side.read_bytes()
    spoiled = [b"", whole[:-1], whole + b"\0", b"TJC0" + whole[4:], b"\x80\x04pickle"]
    for content in [*spoiled, whole[:99] + bytes([whole[99] ^ 1]) + whole[100:]]:
        side.write_bytes(content)
        assert kept(folder, monkeypatch) is None
        same(read(folder), plain)
        assert side.read_bytes() == whole
    copied = Path(shutil.copytree(folder, folder.with_name("copy"), copy_function=shutil.copy2))
    read(copied)
    (other,) = {*(folder.parent / "cache").glob(f"*{NAME}")} - {side}
    other.write_bytes(whole)
    assert kept(copied, monkeypatch) is None
    same(read(copied), plain)


@pytest.mark.parametrize("content", ["{", '{"response": 5}'])
def test_beside_a_file_that_cannot_be_read_nothing_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch, content: Any
) -> None:
    place(folder, 2).write_text(content)
    read(folder)
    assert kept(folder, monkeypatch) is None
    assert not [*(folder.parent / "cache").glob(f"*{NAME}")]


def test_what_changed_a_moment_ago_is_not_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: place(folder, 0).stat().st_ctime_ns)
    read(folder)
    assert kept(folder, monkeypatch) is None


def test_a_cache_that_cannot_be_written_is_no_failure(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder.parent / "file").touch()
    monkeypatch.setenv("TRAJUDGE_CACHE", str(folder.parent / "file" / "replies.sqlite"))
    assert [*read(folder).judgments] == [
        *read_published_folder(folder, with_labels=False).judgments
    ]
