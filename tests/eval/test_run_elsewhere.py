"""A run is opened in another folder than the one that it was started in."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from trajudge.app import inspect as inspecting
from trajudge.eval.cli import main
from trajudge.eval.store.inputs import missing_data, recorded_data
from trajudge.trajectories import store
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.sample import sample_path


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of three trajectories in ``project``, whose data are named relatively."""
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "elsewhere").mkdir()
    runs = [run for run in store.read(sample_path()) if isinstance(run, Trajectory)]
    store.write(project / "logs", runs[:3])
    monkeypatch.chdir(project)
    assert main(["judge", "--judge", "heuristic", "--data", "logs", "--out", "runs/one"]) == 0
    monkeypatch.chdir(tmp_path / "elsewhere")
    return project / "runs" / "one"


def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Path) -> str:
    """What ``trajudge inspect`` says before it serves."""
    monkeypatch.setattr(inspecting, "serve", lambda *given: None)
    capsys.readouterr()
    assert main(["inspect", str(run)]) == 0
    return capsys.readouterr().err


def opened(run: Path) -> int:
    return sum(1 for _ in open_source(recorded_data(run)))


def test_its_data_are_those_of_its_own_folder(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # What has the same name here is other data.
    store.write(Path("logs"), [])
    assert opened(run) == 3
    assert shown(monkeypatch, capsys, run) == ""
    assert str(run.resolve()) not in (run / "manifest.json").read_text()


def test_a_project_that_was_moved_and_a_run_that_was_parsed_again_keep_theirs(
    run: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "moved"
    shutil.move(run.parents[1], moved)
    assert opened(moved / "runs" / "one") == 3
    words = ["run", "reparse", str(moved / "runs" / "one"), "--out", "deep/again"]
    assert main(words) == 0
    assert opened(Path("deep/again")) == 3


def test_data_that_are_gone_are_named_with_the_folders_and_the_option(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.move(tmp_path / "project" / "logs", tmp_path / "other")
    warned = shown(monkeypatch, capsys, run)
    assert warned == (
        f"warning: {run.resolve()}: its data logs is neither in {tmp_path / 'project'} nor in "
        f"{tmp_path / 'elsewhere'}: name it with --data KIND:PATH\n"
    )
    shutil.move(tmp_path / "other", tmp_path / "elsewhere" / "logs")
    assert missing_data(run) == ""
    assert opened(run) == 3


def test_the_same_command_in_the_moved_project_goes_on(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = shutil.move(run.parents[1], tmp_path / "moved")
    monkeypatch.chdir(moved)
    assert main(["judge", "--judge", "heuristic", "--data", "logs", "--out", "runs/one"]) == 0
    assert json.loads(Path("runs/one/manifest.json").read_text())["started_in"] == "../.."
