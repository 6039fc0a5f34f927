"""Which labels belong to the data, where the user names none."""

from __future__ import annotations

import os
import re
import shutil
from importlib import metadata
from pathlib import Path

import pytest

from tests.hub_server import Hub, serve
from trajudge.annotations.sources import agentrewardbench
from trajudge.eval.judge import main
from trajudge.eval.store.inputs import find_source
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.sample import sample_path
from trajudge.util.errors import UserError

AGENT = "GenericAgent-gpt-4o-2024-11-20"
HEADER = (
    "annotator_name,benchmark,task_id,model_name,exp_name,trajectory_success,"
    "trajectory_side_effect,trajectory_optimality,trajectory_looping\n"
)


def table(*tasks: str) -> str:
    rows = (f"A,webarena,{task},{AGENT},exp,Successful,No,2. Suboptimal,No\n" for task in tasks)
    return HEADER + "".join(rows)


def has_package() -> bool:
    try:
        return bool(metadata.version(agentrewardbench.PACKAGE))
    except metadata.PackageNotFoundError:
        return False


@pytest.mark.skipif(
    has_package(), reason="agent-reward-bench is installed, and goes before the Hub"
)
def test_the_labels_of_the_published_benchmark_come_from_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = Hub()
    hub.files["annotations.csv"] = table("webarena.15", "webarena.2").encode()
    with serve(hub):
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        monkeypatch.setenv("TRAJUDGE_DATA", str(tmp_path))
        source = find_source("agentrewardbench", None)
    assert [item.raw_task_id for item in source.annotations] == ["webarena.15", "webarena.2"]
    assert source.labels == f"agentrewardbench:{tmp_path / 'annotations.csv'}"


def test_a_copy_of_the_hub_tells_its_revision(tmp_path: Path) -> None:
    """In the copy itself and in a folder of it; other files have none."""
    (tmp_path / "annotations.csv").write_text(table("webarena.15"))
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "annotations.csv").write_text(table("webarena.15"))
    folders = [f"agentrewardbench-text:{place}" for place in (tmp_path, tmp_path / "part")]
    assert [find_source(folder, None).revision for folder in folders] == [None, None]
    (tmp_path / ".trajudge").mkdir()
    record = tmp_path / ".trajudge" / "copy.json"
    record.write_text('{"repo": "x/y", "revision": "c0ffee"}')
    assert [find_source(folder, None).revision for folder in folders] == ["c0ffee", "c0ffee"]
    record.write_text("{")
    assert find_source(folders[0], None).revision is None
    assert find_source("sample", None).revision is None


def test_splits_come_from_beside_the_labels_or_the_package_or_their_absence_is_said(
    tmp_path: Path,
) -> None:
    (tmp_path / "annotations.csv").write_text(table("webarena.15", "not-a-published-task"))
    source = find_source(f"agentrewardbench-text:{tmp_path}", None)
    named = [item.split for item in source.annotations]
    if has_package():
        assert named == ["dev", None]
        assert not source.note
    else:
        assert named == [None, None]
        assert "no splits" in source.note
    (tmp_path / "splits.csv").write_text("task_id,benchmark,split\nwebarena.15,webarena,dev\n")
    source = find_source(f"agentrewardbench-text:{tmp_path}", None)
    assert [item.split for item in source.annotations] == ["dev", None]
    assert not source.note


def test_a_split_that_nobody_knows_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "annotations.csv").write_text(table("not-a-published-task"))
    words = ["--data", f"agentrewardbench-text:{tmp_path}", "--split", "test"]
    assert main(["--judge", "heuristic", *words]) == 2
    assert "error: " in capsys.readouterr().err


def test_labels_that_the_user_named_for_the_sample_are_recorded_as_such(tmp_path: Path) -> None:
    (tmp_path / "annotations.csv").write_text(table("webarena.15"))
    named = f"agentrewardbench:{tmp_path}"
    assert find_source("sample", named).labels == named
    assert find_source("sample", None).labels == find_source("sample", "sample").labels == "sample"


@pytest.mark.parametrize("place", [".", "runs", "runs/july"])
def test_labels_above_the_data_are_named(tmp_path: Path, place: str) -> None:
    """They were taken without a word."""
    data = tmp_path / "runs" / "july"
    store.write(data, [one for one in store.read(sample_path()) if isinstance(one, Trajectory)][:1])
    file = tmp_path / place / "labels.jsonl"
    shutil.copy(sample_path() / "labels.jsonl", file)
    note = find_source(f"trajudge:{data}", None).note
    assert (str(file) in note) is (place != "runs/july")
    assert "expert labels" not in find_source(f"trajudge:{data}", f"trajudge:{file}").note
    assert "expert labels" not in find_source("sample", None).note


@pytest.mark.parametrize("place", ["data", "."])
def test_a_pipe_in_place_of_the_labels_is_named(tmp_path: Path, place: str) -> None:
    """It was said that the data has no labels."""
    data = tmp_path / "data"
    store.write(data, [one for one in store.read(sample_path()) if isinstance(one, Trajectory)][:1])
    pipe = tmp_path / place / "labels.jsonl"
    os.mkfifo(pipe)
    with pytest.raises(UserError, match=re.escape(str(pipe)) + r".* \(a pipe\)"):
        find_source(f"trajudge:{data}", None)
