"""The first screen of a decision: at most 40 lines of 100 or 80 columns, the decision first."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.commands import select as main
from tests.eval.select.test_decide import stacked
from tests.eval.select.world import evidence, plan
from tests.samples import narrow
from tests.screens import one_screen
from trajudge.eval.select.decide import decide
from trajudge.eval.select.decision import Decision
from trajudge.eval.select.text import screen

REST = "everything: --full"


def test_the_chosen_judge_leads_the_table(width: int) -> None:
    success, accepted = stacked((60, 2, 0), (190, 120, 0), (150, 10, 0))
    found = decide(plan((1.0,), (1.0,), (1.0,)), evidence(success, accepted))
    lines = one_screen(screen(found, rest=REST, width=width), width)
    assert lines[0].startswith("Filter with judge 3 at threshold 1: 150 of the 160 runs")
    head = next(n for n, line in enumerate(lines) if line.startswith("candidate "))
    assert [line.split()[1] for line in lines[head + 1 : head + 4]] == ["3", "1", "2"]
    assert "93.8 [" in lines[head + 1]
    assert lines[-1] == REST


@cache
def of_many() -> Decision:
    success, accepted = stacked(*[(150 - n, 10 + n, 0) for n in range(40)])
    places = [f"benchmark-{n % 20:02}" for n in range(400)]
    return decide(plan(*[(1.0,)] * 40), evidence(success, accepted, benchmark=places))


@pytest.mark.slow
def test_many_candidates_and_benchmarks_take_one_screen(width: int) -> None:
    lines = one_screen(screen(of_many(), rest=REST, width=width), width)
    assert "and 35 more candidates: --full" in lines
    assert any(line.startswith("and ") and "benchmarks" in line for line in lines)


@narrow
@pytest.mark.slow
@pytest.mark.real_data
def test_the_published_judgments_take_one_screen(
    arb: Path,
    tmp_path: Path,
    width: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    labels = f"agentrewardbench:{arb / 'annotations.csv'}"
    words = ["--judgments", str(arb / "judgments"), "--annotations", labels]
    main([*words, "--target-precision", "0.8", "--out", "out"])
    shown = capsys.readouterr().out
    lines = one_screen(shown, width)
    assert " … " not in shown, "a sentence is cut"
    assert not re.search(r"(?<![.\d])\d{4,}", shown.rpartition("All candidates")[0]), shown
    assert lines[0].startswith("No judge is shown to meet the target, at least 80.0 %")
    assert any(line.startswith("webjudge") for line in lines)
    assert "decision.txt" in lines[-1]
    assert max(map(len, Path("out/decision.txt").read_text().splitlines())) <= 110
