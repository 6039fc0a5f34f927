"""The side file with the needed fields: it changes what is read from disk, never what is given."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.commands import score as main
from trajudge.eval.store.published import INDEX_NAME as NAME
from trajudge.eval.store.published import (
    JudgmentIndex,
    PublishedJudgment,
    judgments_folder,
    read_published,
    read_published_folder,
)
from trajudge.judges.model import Status

ANNOTATIONS = (
    "annotator_name,benchmark,task_id,model_name,trajectory_success,trajectory_side_effect,"
    "trajectory_optimality,trajectory_looping\n"
)


def place(folder: Path, task: int, judge: str = "judge-x") -> Path:
    return folder / "judgments" / "webarena" / "agent" / judge / f"webarena.{task}.json"


def put(folder: Path, task: int, word: str, judge: str = "judge-x", **more: Any) -> None:
    path = place(folder, task, judge)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = f"<reasoning>é task {task}</reasoning><success>{word}</success><side>No</side>"
    content = {
        "judge_model_name": "model-x",
        "judge_args": {"use_axtree": True, "use_screenshot": False},
        "response": {
            "choices": [{"finish_reason": "stop", "message": {"content": text}}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 7},
        },
        "chat_messages": {"regular": ["x" * 30_000]},
        "trajectory_info": {"summary_info": {"cum_reward": 0.25}},
    }
    path.write_text(json.dumps(content | more))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two judges; answers, a refusal, a torn file, a duplicate."""
    home = tmp_path / "data"
    for judge in ("judge-x", "judge-y"):
        for task in range(4):
            put(home, task, "Successful" if task % 2 else "Unsuccessful", judge)
    place(home, 7).write_text('{"error": "content filter"}')
    place(home, 8).write_text("{")
    shutil.copy(place(home, 1), place(home, 1).with_name("webarena.1(1).json"))
    return home


def beside(folder: Path) -> Path:
    """Where the index of the judgments of a folder is: in the user's cache."""
    root = os.fsencode((folder / "judgments").resolve())
    cache = Path(os.environ["XDG_CACHE_HOME"]) / "trajudge"
    return cache / f"{hashlib.sha256(root).hexdigest()[:32]}{NAME}"


def read(folder: Path, index: JudgmentIndex | None = None) -> list[PublishedJudgment]:
    found = list(read_published(folder, index))
    if index:
        index.save()
    return found


def opened(folder: Path) -> JudgmentIndex:
    return JudgmentIndex(judgments_folder(folder), settled=0)


def with_index(folder: Path) -> list[PublishedJudgment]:
    index = opened(folder)
    found = read(folder, index)
    assert index.notes == []
    return found


def test_with_the_index_everything_is_what_it_is_without(folder: Path) -> None:
    plain = read(folder)
    assert with_index(folder) == plain
    assert beside(folder).is_file()
    made = beside(folder).read_bytes()
    assert with_index(folder) == plain
    assert beside(folder).read_bytes() == made


def test_files_that_did_not_change_are_given_from_the_index(folder: Path) -> None:
    with_index(folder)
    body = beside(folder).read_bytes()[8:].replace(b"task 1", b"task 9")
    checksum = zlib.crc32(body).to_bytes(4, "big")
    beside(folder).write_bytes(beside(folder).read_bytes()[:4] + checksum + body)
    assert {item.judgment.reasoning for item in with_index(folder)} >= {"é task 9", "é task 2"}


def test_a_changed_file_is_read_again_though_its_size_and_date_are_the_old_ones(
    folder: Path,
) -> None:
    with_index(folder)
    path = place(folder, 1)
    before = path.stat()
    while path.stat().st_ctime_ns == before.st_ctime_ns:  # clocks of file systems tick slowly
        path.write_text(path.read_text().replace("task 1", "task 9"))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert with_index(folder) == read(folder)
    assert "\u00e9 task 9" in {item.judgment.reasoning for item in with_index(folder)}


def test_files_that_came_and_went_are_followed(folder: Path) -> None:
    with_index(folder)
    place(folder, 0).unlink()
    put(folder, 5, "Successful")
    assert with_index(folder) == read(folder)
    shutil.rmtree(place(folder, 0, "judge-y").parent)
    size = beside(folder).stat().st_size
    assert with_index(folder) == read(folder)
    assert beside(folder).stat().st_size < size


def test_an_index_that_came_with_a_copy_of_the_data_is_not_believed(
    folder: Path, tmp_path: Path
) -> None:
    with_index(folder)
    for task in range(4):
        put(folder, task, "Successful")
    lying = tmp_path / "copy"
    shutil.copytree(folder, lying)
    with_index(folder)
    shutil.copy(beside(folder), beside(lying))
    for task in range(4):
        status = place(folder, task).stat()
        text = place(lying, task).read_text().replace("task", "tale")
        place(lying, task).write_text(text)
        os.utime(place(lying, task), ns=(status.st_atime_ns, status.st_mtime_ns))
    assert with_index(lying) == read(lying)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: b"",
        lambda content: content[:-1],
        lambda content: content + b"\0",
        lambda content: content[:40] + bytes([content[40] ^ 1]) + content[41:],
        lambda content: b"\x80\x04pickle",
        lambda content: b"TJX1" + b"\0\0\0\0",
    ],
    ids=["empty", "cut", "longer", "a flipped bit", "foreign", "no body"],
)
def test_a_spoiled_index_is_ignored_with_a_note_and_made_anew(folder: Path, spoil: Any) -> None:
    plain = with_index(folder)
    good = beside(folder).read_bytes()
    beside(folder).write_bytes(spoil(good))
    index = opened(folder)
    assert read(folder, index) == plain
    (note,) = index.notes
    assert str(beside(folder)) in note
    assert "made anew" in note
    assert beside(folder).read_bytes() == good


def test_nothing_is_written_beside_the_judgments(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    with_index(folder)
    assert sorted(folder.rglob("*")) == before


def test_it_lies_where_the_cached_replies_are(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAJUDGE_CACHE", str(tmp_path / "mine" / "replies.sqlite"))
    with_index(folder)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == [beside(folder).name]


def test_where_it_cannot_be_written_the_judgments_are_read_and_a_note_says_so(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file, where a folder is needed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(taken))
    index = opened(folder)
    assert read(folder, index) == read(folder)
    assert any("was not written" in note for note in index.notes)


def test_a_file_that_changed_a_moment_ago_is_not_kept(folder: Path) -> None:
    index = JudgmentIndex(judgments_folder(folder), settled=3_600_000_000_000)
    assert read(folder, index) == read(folder)
    assert not beside(folder).exists()


def test_a_file_that_cannot_be_read_is_tried_again_every_time(folder: Path) -> None:
    (before,) = [i for i in with_index(folder) if i.judgment.status is Status.SKIPPED]
    put(folder, 8, "Successful")
    assert before.raw_task_id == "webarena.8"
    assert {i.judgment.status for i in with_index(folder)} == {Status.OK, Status.PROVIDER_ERROR}


def test_a_link_out_of_the_folder_is_not_followed(folder: Path) -> None:
    inside, outside = place(folder, 1), folder.parent / "outside.json"
    inside.rename(outside)
    inside.symlink_to(outside)
    for found in (read(folder), with_index(folder), with_index(folder)):
        (bad, _) = [item.judgment for item in found if item.raw_task_id == "webarena.1"]
        assert bad.status is Status.SKIPPED
        assert "leads out of the data folder" in bad.detail


def test_a_pipe_where_a_file_is_expected_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(place(folder, 9))
    beside(folder).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(beside(folder))
    index = opened(folder)
    found = {item.raw_task_id: item.judgment.status for item in read(folder, index)}
    assert found["webarena.9"] is Status.SKIPPED
    assert "made anew" in index.notes[0]
    assert with_index(folder) == read(folder)


def test_a_number_too_large_for_the_index_is_read_without_it(folder: Path) -> None:
    huge = {"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": 10**30}}
    put(folder, 1, "Successful", response=huge)
    index = opened(folder)
    assert read(folder, index) == read(folder)
    assert not beside(folder).exists()
    assert any("was not written" in note for note in index.notes)


def test_the_command_gives_the_same_bytes_with_and_without_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"A,webarena,webarena.{i},agent,Successful,No,Unsure,No\n" for i in range(4))
    (folder / "annotations.csv").write_text(ANNOTATIONS + rows)
    arguments = ["--judgments", str(folder), "--json"]
    outputs = []
    for options in (["--no-index"], [], []):
        assert main([*arguments, *options]) == 0
        outputs.append(capsys.readouterr())
        if options:
            assert not beside(folder).exists()
            with_index(folder)
    assert outputs[0] == outputs[1] == outputs[2]
    source = read_published_folder(folder, with_index=True)
    assert list(source.judgments) == read_published_folder(folder).judgments
