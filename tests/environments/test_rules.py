"""``trajudge env rules``: what it says to a user whose folders do not fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands import command
from tests.environments.cases import agent, job, sound
from tests.environments.specifications.plain import recorded
from tests.screens import one_screen
from trajudge.environments.agents.script import Behaviour
from trajudge.environments.model.case import read_cases, write_cases
from trajudge.environments.specifications.comparing import (
    KINDS,
    by_configuration,
    labelled_again,
    recorded_runs,
)
from trajudge.environments.specifications.report import screen
from trajudge.util.errors import UserError

main = command("env rules")

_KINDS_OF_A_CHANGE = ["network", "last request", "state", "answer+network", "all three"]


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


def test_a_recording_without_keys_cannot_be_labelled_again(folder: Path) -> None:
    (run,) = recorded_runs([folder], by_configuration(read_cases(folder / "cases.jsonl")))
    without = {name: fact for name, fact in run.facts.items() if name != "code_key"}
    with pytest.raises(UserError, match="record it again"):
        labelled_again(run._replace(facts=without))


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


def test_one_screen_shows_every_kind_of_check(
    folder: Path, screen_lines: Callable[[], list[str]]
) -> None:
    save = folder / "rules.json"
    assert main([str(folder), "--cases", str(folder / "cases.jsonl"), "--save", str(save)]) == 0
    save.unlink()
    lines = screen_lines()
    kinds = list(_KINDS_OF_A_CHANGE)
    for line in lines[lines.index("Rules against the state") + 2 :]:
        if kinds and line.startswith(f"{kinds[0]}  "):
            kinds.pop(0)
    assert not kinds, lines


@pytest.mark.parametrize("columns", ["80", "100"])
def test_the_widest_figures_fit(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    rate = {"hits": 1999, "trials": 2000, "low": 0.9888, "high": 1.0}
    rates = dict.fromkeys(("false_accepts", "false_rejects"), rate)
    rows = [{"kind": kind, "mode": "release-1.2.3", **rates} for kind in KINDS]
    found = {"runs": 2100, "cases": 1200, "applications": 7, "agreement": rows, "causes": []}
    found["unreported"] = {"runs": 2000, "rejected": 2000}
    one_screen(screen(found, rest="rules.json"), int(columns))
