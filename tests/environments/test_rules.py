"""``trajudge env rules``: what it says to a user whose folders do not fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.environments.cases import agent, job, sound
from tests.environments.specifications.plain import recorded
from trajudge.environments.agents.script import Behaviour
from trajudge.environments.model.case import read_cases, write_cases
from trajudge.environments.rules import main
from trajudge.environments.specifications.comparing import (
    by_configuration,
    labelled_again,
    recorded_runs,
)

_KINDS_OF_A_CHANGE = [
    *("network", "network, last only", "state", "answer + network", "answer + network + state")
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    case = sound("wish")
    made = tmp_path_factory.mktemp("recorded")
    return recorded(made, [case], [job(case, agent(Behaviour.NEAR_MISS))])


def test_a_recorded_run_is_labelled_again_from_its_facts(folder: Path) -> None:
    cases = by_configuration(read_cases(folder / "cases.jsonl"))
    (run,) = recorded_runs([folder], cases)
    again = labelled_again(run)
    assert (again.success, again.side_effect) == (run.success, run.side_effect)
    assert again.facts["changes"] == run.facts["changes"] != []
    assert again.facts["predicates"] == run.facts["predicates"]


def _said(folder: Path, cases: Path, capsys: pytest.CaptureFixture[str]) -> str:
    save = folder / "rules.json"
    assert main([str(folder), "--cases", str(cases), "--save", str(save)]) == 2
    assert not save.exists()
    return capsys.readouterr().err


def test_runs_of_another_case_are_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_cases(tmp_path / "other.jsonl", [sound("unwish")])
    said = _said(folder, tmp_path / "other.jsonl", capsys)
    assert "no case is called shop.wish." in said
    assert "--cases" in said


def test_a_folder_that_is_no_recording_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert str(tmp_path) in _said(tmp_path, folder / "cases.jsonl", capsys)


def test_a_run_without_its_trace_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (trace,) = (folder / "traces").iterdir()
    content = trace.read_bytes()
    trace.unlink()
    try:
        said = _said(folder, folder / "cases.jsonl", capsys)
    finally:
        trace.write_bytes(content)
    assert trace.name in said


def _is_row(line: str, kind: str, *, whole: bool) -> bool:
    """Whether a line is the row of a kind of check, whose name a narrow terminal shortens."""
    name = line.split("  ", 1)[0]
    head, _, tail = name.partition("…")
    return name == kind if whole or not tail else kind.startswith(head) and kind.endswith(tail)


def test_one_screen_shows_every_kind_of_check(
    folder: Path, width: int, screen_lines: Callable[[], list[str]]
) -> None:
    save = folder / "rules.json"
    assert main([str(folder), "--cases", str(folder / "cases.jsonl"), "--save", str(save)]) == 0
    save.unlink()
    lines = screen_lines()
    kinds = list(_KINDS_OF_A_CHANGE)
    for line in lines[lines.index("Rules against the state") + 2 :]:
        if kinds and _is_row(line, kinds[0], whole=width == 100):
            kinds.pop(0)
    assert not kinds, lines
