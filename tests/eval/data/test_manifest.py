from __future__ import annotations

from pathlib import Path

import pytest

from trajudge.eval.store.manifest import RunManifest, default_folder, open_folder
from trajudge.eval.store.run_folder import JUDGMENTS, read_manifest
from trajudge.util.errors import UserError

MANIFEST = RunManifest(
    judge="simplified-axtree:a/b", model="a/b", data="sample", seed=1, version="1"
)


def test_the_same_settings_give_the_same_folder() -> None:
    assert default_folder(MANIFEST) == default_folder(MANIFEST.model_copy())
    assert default_folder(MANIFEST) != default_folder(MANIFEST.model_copy(update={"seed": 2}))


def test_scoring_otherwise_or_by_a_newer_release_is_the_same_run() -> None:
    again = MANIFEST.model_copy(update={"protocol": "agentrewardbench", "version": "2"})
    assert default_folder(MANIFEST) == default_folder(again)


def test_the_folder_stays_below_runs_whatever_the_model_is_called() -> None:
    folder = default_folder(MANIFEST.model_copy(update={"model": "../../x", "judge": "j:../../x"}))
    assert folder.parts[0] == "runs"
    assert len(folder.parts) == 2
    assert ".." not in folder.parts


def test_a_folder_of_another_run_is_not_touched(tmp_path: Path) -> None:
    open_folder(tmp_path, MANIFEST)
    before = read_manifest(tmp_path)
    other = MANIFEST.model_copy(update={"model": "c"})
    with pytest.raises(UserError, match=r'holds a run with model "a/b", this one has "c"'):
        open_folder(tmp_path, other)
    assert read_manifest(tmp_path) == before


def test_judgments_without_a_manifest_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / JUDGMENTS).touch()
    with pytest.raises(UserError, match=r"no manifest\.json"):
        open_folder(tmp_path, MANIFEST)


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    with pytest.raises(UserError, match="run is a file: name a folder"):
        open_folder(tmp_path / "run", MANIFEST)
