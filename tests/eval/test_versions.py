"""A judge whose prompts changed is not compared with its earlier self without a word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import score as main
from tests.eval.test_recorded import RECORDED, VERSIONS
from trajudge import compare, read_run, score
from trajudge.eval.scoring.comparison import mixed_versions
from trajudge.eval.store.manifest import recorded_versions
from trajudge.judges.registry import versions_of

OLD = RECORDED / VERSIONS[0] / "runs" / "webjudge-general"


def in_version(folder: Path, version: int) -> Path:
    """A copy of the recorded run as a later version would have written it."""
    folder.mkdir()
    for file in OLD.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["judge_versions"] = {"webjudge": version}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_a_run_without_a_version_is_of_the_first() -> None:
    manifest = json.loads((OLD / "manifest.json").read_bytes())
    assert "judge_versions" not in manifest
    assert recorded_versions(manifest) == {"webjudge": 1}
    assert recorded_versions({"card": {}}) == {}


def test_mixed_versions_are_told_by_the_command_and_from_python(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = in_version(tmp_path / "new", 2)
    assert main([str(OLD), str(new)]) == 0
    shown = capsys.readouterr().out
    assert "warning: judge webjudge is compared in several versions (version 1 in " in shown
    judgments = [read_run(OLD), read_run(new)]
    [warning] = compare(judgments).warnings
    assert "webjudge" in warning
    assert warning in score(judgments).remarks
    assert warning in compare(judgments)._repr_html_()


def test_one_version_is_no_mixture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = in_version(tmp_path / "again", 1)
    assert main([str(OLD), str(again)]) == 0
    assert "several versions" not in capsys.readouterr().out
    assert compare([read_run(OLD), read_run(again)]).warnings == ()


def test_the_versions_of_a_panel_are_those_of_its_members() -> None:
    members = {"members": [{"name": "webjudge"}, {"name": "heuristic"}]}
    versions = versions_of("panel", {"of": members})
    assert versions == {"panel": 1, "webjudge": 3, "heuristic": 1}
    panel = {"webjudge:m": {"webjudge": 1}, "panel-of": versions}
    [warning] = mixed_versions(panel)
    assert "version 1 in webjudge:m; version 3 in panel-of" in warning
