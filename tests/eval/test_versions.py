"""A judge whose prompts changed is not compared with its earlier self without a warning."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.commands import score as main
from trajudge import compare, judge, read_run, score
from trajudge.eval.scoring.notes import mixed_versions
from trajudge.judges.registry import versions_of


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("versions") / "run"
    judge("sample", judge="heuristic", limit=8, out=folder, yes=True)
    return folder


def in_version(run: Path, folder: Path, version: int) -> Path:
    """A copy of the run as another version of the judge would have written it."""
    shutil.copytree(run, folder)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["judge_versions"] = {"heuristic": version}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_mixed_versions_are_told_by_the_command_and_from_python(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = in_version(run, tmp_path / "new", 2)
    assert main([str(run), str(new)]) == 0
    shown = capsys.readouterr().out
    assert "warning: judge heuristic is compared in several versions (version 1 in " in shown
    judgments = [read_run(run), read_run(new)]
    [warning] = compare(judgments).warnings
    assert "heuristic" in warning
    assert warning in score(judgments).remarks
    assert warning in compare(judgments)._repr_html_()


def test_one_version_is_no_mixture(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = in_version(run, tmp_path / "again", 1)
    assert main([str(run), str(again)]) == 0
    assert "several versions" not in capsys.readouterr().out
    assert compare([read_run(run), read_run(again)]).warnings == ()


def test_the_versions_of_a_panel_are_those_of_its_members() -> None:
    members = {"members": [{"name": "webjudge"}, {"name": "heuristic"}]}
    versions = versions_of("panel", {"of": members})
    assert versions == {"panel": 1, "webjudge": 4, "heuristic": 1}
    panel = {"webjudge:m": {"webjudge": 1}, "panel-of": versions}
    [warning] = mixed_versions(panel)
    assert "version 1 in webjudge:m; version 4 in panel-of" in warning
