"""The screens on the page "Choose, export, audit" are what the commands print, and their sentences
have the figures of the files that are written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from trajudge.eval.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "deciding.md"
SCREENS = re.findall(
    r"^```console\n\$ trajudge ([^\n]*)\n(.*?)^```$", PAGE.read_text(), re.M | re.S
)


def test_the_screens_are_true_to_the_commands_and_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    assert [command.split()[0] for command, _ in SCREENS] == ["judge", "select", "accept", "audit"]
    for command, screen in SCREENS:
        main(command.split())
        shown = capsys.readouterr().out
        assert not screen or shown == screen
    select, accept, audit = (" ".join(screen.split()) for _, screen in SCREENS[1:])
    decision = json.loads(Path("selection/decision.json").read_text())
    nearest = decision["findings"][decision["nearest"]]
    precision, (low, high) = nearest["precision"], nearest["interval"]
    assert (
        f"{precision['hits']} of the {precision['trials']} runs that it accepts are true successes "
        f"({100 * precision['estimate']:.1f} %; 95 % interval {100 * low:.1f} to {100 * high:.1f})"
        in select
    )
    assert f"too few tasks ({nearest['tasks']})" in select
    scored = json.loads(Path("heuristic/results.json").read_text())["scores"]
    [overall] = [
        score
        for score in scored
        if (score["benchmark"], score["agent"], score["label"]) == ("overall", "all", "success")
        and not score["baseline"]
    ]
    assert overall["intervals"]["precision"] == pytest.approx([low, high])  # as score shows it
    counts = json.loads(Path("training/acceptance.json").read_text())["counts"]
    total = sum(counts.values())
    assert (
        f"Accepted {counts['accepted']} of {total} trajectories "
        f"({100 * counts['accepted'] / total:.1f} %)" in accept
    )
    errors = json.loads(Path("audited/audit.json").read_text())["errors"][0]
    right, denied = errors["precision"], errors["missed"]
    assert (
        f"passes {right['trials']} of {errors['n']} runs, of which {right['hits']} are true "
        f"successes ({100 * right['rate']:.1f} %" in audit
    )
    assert (
        f"denies {denied['hits']} of the {denied['trials']} true successes "
        f"({100 * denied['rate']:.1f} %, {100 * denied['low']:.1f} to {100 * denied['high']:.1f} "
        in audit
    )
