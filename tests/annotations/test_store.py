"""Our own annotation format: nothing lost, nothing guessed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.annotations.files import refuses_pipes_and_endless_files
from tests.tables import mistakes
from trajudge.annotations import Label, Role, open_annotations, parse_labels
from trajudge.annotations.store import annotation_line, detect, load, write
from trajudge.trajectories.model import TrajectoryKey
from trajudge.trajectories.sample import sample_path
from trajudge.util.errors import UserError

FLAG = st.sampled_from([True, False, None])
ANNOTATIONS = st.builds(
    Label,
    key=st.builds(
        TrajectoryKey,
        benchmark=st.sampled_from(["webarena", "visualwebarena"]),
        agent=st.text(max_size=8),
        task_id=st.text(max_size=8),
        attempt=st.integers(0, 3),
    ),
    raw_task_id=st.text(max_size=8),
    annotator=st.text(max_size=8),
    role=st.sampled_from(Role),
    success=FLAG,
    side_effect=FLAG,
    repetition=FLAG,
    optimality=st.sampled_from([1, 2, 3, 4, None]),
    split=st.sampled_from(["dev", "test", None]),
    process=FLAG,
    process_score=st.sampled_from([0.0, 0.5, 1.0, None]),
    failure_step=st.sampled_from([0, 3, None]),
    failure_type=st.sampled_from(["stale", None]),
)


@given(annotations=st.lists(ANNOTATIONS, max_size=5))
def test_what_is_written_is_read_back(
    annotations: list[Label], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("labels") / "labels.jsonl"
    write(path, annotations)
    assert load(path) == annotations
    assert open_annotations(str(path)) == annotations
    assert [p.name for p in path.parent.iterdir()] == ["labels.jsonl"]


def test_a_newer_version_a_foreign_file_and_a_bad_line_are_named(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text('{"format": "trajudge-annotations", "version": 2}\n')
    with pytest.raises(UserError, match=r"version 2.*upgrade"):
        load(path)
    path.write_text("[]\n")
    with pytest.raises(UserError, match="line 1"):
        load(path)
    path.write_text('{"format": "trajudge-annotations", "version": 1}\n{"optimality": 7}\n')
    with pytest.raises(UserError, match=r"labels.jsonl, line 2: key"):
        load(path)


def test_blank_lines_are_passed_over_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    write(path, [])
    path.write_bytes(path.read_bytes() + b"\r\n \n")
    assert load(path) == []
    path.write_bytes(path.read_bytes() + b"{}\n")
    with pytest.raises(UserError, match=r"labels.jsonl, line 4: "):
        load(path)


def test_a_spec_is_a_kind_a_path_or_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the checkout holds a folder that is named as the kind is
    path = tmp_path / "labels.jsonl"
    write(path, [])
    assert open_annotations(f"trajudge:{path}") == []
    with pytest.raises(UserError, match="need a path"):
        open_annotations("trajudge")
    with pytest.raises(UserError, match="no such file"):
        open_annotations(str(tmp_path / "absent"))
    with pytest.raises(UserError, match="no annotations of a known kind"):
        open_annotations(str(tmp_path))
    source = tmp_path / "mine.py"
    source.touch()
    with pytest.raises(UserError, match=r"mine\.py: a source needs its labels: write .*\.py:PATH"):
        open_annotations(str(source))
    assert parse_labels("mine.py:labels.jsonl") == ("mine.py", None, Path("labels.jsonl"), "")
    assert parse_labels("mine.py/any:labels.jsonl") == ("mine.py", "any", Path("labels.jsonl"), "")
    assert parse_labels("table/any:x.csv") == ("table", "any", Path("x.csv"), "")


@mistakes(
    """
    absent.csv => absent.csv: no such file: give the path of the table with the labels
    absent/labels => absent/labels: no such file: give the path of the table with the labels
    trajudge/absent => trajudge/absent: no such file: give the path
    absent => absent: no such file, and none of the kinds of annotations (agentrewardbench,
    trajudge => trajudge: holds no annotations of a known kind
    mine.py:absent => --annotations mine.py:absent: there is no file or folder 'absent'
    mine.py: => --annotations mine.py:: there is no file or folder ''
    """
)
def test_a_wrong_spec_is_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").touch()
    (tmp_path / "trajudge").mkdir()
    with pytest.raises(UserError) as refused:
        parse_labels(*words)
    assert str(refused.value).startswith(sentence)


def test_pipes_and_endless_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    os.mkfifo(path)
    assert not detect(path)
    path.unlink()
    refuses_pipes_and_endless_files(path, load, "1024 MiB")


def test_a_byte_order_mark_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    write(path, [])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load(path) == []


def test_the_samples_labels_have_its_name() -> None:
    assert open_annotations("sample") == open_annotations(f"trajudge:{sample_path()}/labels.jsonl")


def test_a_label_without_a_process_has_the_line_of_before() -> None:
    annotation = Label(
        key=TrajectoryKey(benchmark="b", agent="a", task_id="t"), raw_task_id="t", annotator="A"
    )
    assert annotation_line(annotation) == (
        b'{"key":{"benchmark":"b","agent":"a","task_id":"t","attempt":0},"raw_task_id":"t",'
        b'"annotator":"A","role":"primary","success":null,"side_effect":null,"repetition":null,'
        b'"optimality":null,"split":null}\n'
    )
    told = annotation.model_copy(update={"process": False, "failure_step": 0})
    assert annotation_line(told).endswith(b'"split":null,"process":false,"failure_step":0}\n')
