"""Blind replay reaches what a run reached, as long as everything is the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import command
from tests.environments.cases import sound
from trajudge.environments.analysis.blind_replay import CONDITIONS, ReplayOutcome, replay, summary
from trajudge.environments.model.case import write_cases
from trajudge.environments.recording.recorder import Recorder
from trajudge.util.commands import OK, USAGE_ERROR

main = command("env replay")


@pytest.mark.browser
def test_a_replay_works_where_nothing_differs_and_only_there(recorder: Recorder) -> None:
    found = {outcome.condition: outcome.success for outcome in replay(recorder, sound("buy"))}
    assert set(found) == set(CONDITIONS)
    assert found["same run"] is True
    # The order is made, but its code is another one in another run.
    assert found["same"] is False
    assert found["all"] is False
    assert found["theme"] is False


def test_the_summary_takes_scenarios_as_clusters() -> None:
    cases = [f"shop.{name}.i{n}.p0.t0.u0.n0.s0" for name in "abcdef" for n in range(4)]
    alike = [ReplayOutcome(case, "same run", case < "shop.d") for case in cases]
    mixed = [ReplayOutcome(case, "all", ".i0." in case or ".i1." in case) for case in cases]
    rows = {
        row["condition"]: row
        for row in summary([*alike, *mixed, ReplayOutcome(cases[0], "same", True)])
    }
    assert all(
        (rows[name]["n"], rows[name]["successes"]) == (24, 12) for name in ("same run", "all")
    )
    # Where the runs of a scenario end alike, 24 runs tell as much as six: Wilson's of 3 of 6.
    low, high = (float(str(rows[name]["low"])) for name in ("same run", "all"))
    assert low < 0.188 < 0.25 < high
    assert (rows["same"]["n"], rows["same"]["low"]) == (1, None)


@pytest.mark.browser
def test_the_command_writes_what_it_found(
    chromium: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_cases(tmp_path / "cases.jsonl", [sound("unwish")])
    words = ["--cases", str(tmp_path / "cases.jsonl"), "--save", str(tmp_path / "replay.json")]
    assert main(words) == OK
    found = json.loads((tmp_path / "replay.json").read_text())
    assert len(found["outcomes"]) == len(CONDITIONS)
    assert "same run" in capsys.readouterr().out


def test_a_file_without_cases_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cases.jsonl").write_text("")
    assert main(["--cases", str(tmp_path / "cases.jsonl")]) == USAGE_ERROR
    assert "no case" in capsys.readouterr().err
