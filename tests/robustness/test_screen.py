"""What ``trajudge robust`` prints: its sentences count the attacks that its table shows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.commands import perturb
from tests.commands import robust as main
from tests.robustness.attacked_runs import judged
from tests.screens import one_screen
from trajudge.trajectories.model import Trajectory

CHANGES = ("identity", "claim-confident", "claim-specific", "inject-tree.failure.plain")


def test_the_finding_counts_the_attacks_of_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It counted one that is tried on successes alone; an attack of which every failure had been
    accepted before was in no row."""
    attacked, out = tmp_path / "attacked", tmp_path / "out"
    words = [word for name in CHANGES for word in ("--perturbation", name)]
    assert perturb(["--data", "sample", *words, "--limit", "60", "--out", str(attacked)]) == 0
    lines = (attacked / "variants.jsonl").read_text().splitlines()
    variants = [json.loads(line) for line in lines]
    fooled = {str(one["of"]) for one in variants if one["perturbation"] == "claim-specific"}

    def verdict(run: Trajectory) -> bool:
        agent = run.key.agent.partition("~")[0]
        source = run.key.model_copy(update={"agent": agent}).model_dump()
        return agent in ("scripted-a", "scripted-e") or str(source) in fooled

    run = judged(attacked, tmp_path / "run", verdict)
    capsys.readouterr()
    assert main([str(run), "--attacked", str(attacked), "--out", str(out)]) == 0
    printed = one_screen(capsys.readouterr().out, 100)
    assert any("attacks by the agent: none of the 2 tried" in line for line in printed)
    assert any("attacks by the page: no attack was tried on a failure" in line for line in printed)
    begin = next(at for at, line in enumerate(printed) if line.startswith("perturbation"))
    rows = [re.split(r"  +", line) for line in printed[begin + 1 : begin + 3]]
    assert [row[:2] for row in rows] == [["claim-confident", "agent"], ["claim-specific", "agent"]]
    assert rows[0][3] != "0" and rows[1][2:4] == ["–", "0"]
    worst = json.loads((out / "robustness.json").read_text())["judges"][0]["worst"]
    assert worst["page"]["attacks"] == []


def test_figures_of_other_settings_are_not_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    attacked, out = tmp_path / "attacked", tmp_path / "out"
    words = ["--perturbation", "identity", "--perturbation", "claim-confident", "--limit", "20"]
    assert perturb(["--data", "sample", *words, "--out", str(attacked)]) == 0
    runs = [judged(attacked, tmp_path / name, lambda _: True) for name in ("one", "two")]
    same = [str(runs[0]), "--attacked", str(attacked), "--out", str(out)]
    assert main(same) == 0
    before = (out / "robustness.json").read_bytes()
    assert main([*same, "--full"]) == 0, "the same measurement, shown otherwise"
    assert (out / "robustness.json").read_bytes() == before
    capsys.readouterr()
    assert main([str(runs[1]), *same[1:]]) == 2
    error = capsys.readouterr().err
    assert f"{out / 'robustness.json'} holds the figures of other settings (runs " in error
    assert "name another folder with --out" in error
    assert (out / "robustness.json").read_bytes() == before
