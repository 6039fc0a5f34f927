"""The first screen of a decision: at most 40 lines of 100 or 80 columns, the decision first."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

from tests.commands import select as main
from tests.eval.select.runs_to_select import stacked
from tests.eval.select.world import evidence, plan
from tests.samples import narrow
from tests.screens import on_one_line, one_screen
from trajudge.eval.select.decide import decide
from trajudge.eval.select.decision import Decision
from trajudge.eval.select.plan import Target
from trajudge.eval.select.text import screen, text

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
    assert lines[0].startswith("No judge is shown to meet the target: at least 80.0 %")
    assert any(line.startswith("webjudge") for line in lines)
    assert "decision.txt" in lines[-1]
    assert max(map(len, Path("out/decision.txt").read_text().splitlines())) <= 110


def figures(sentence: str) -> list[float]:
    return [
        float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", sentence)
    ]


def test_the_sentence_of_a_choice_has_the_figures_of_the_file(width: int) -> None:
    success, accepted = stacked((60, 2, 0), (190, 120, 0), (150, 10, 0))
    found = decide(plan((1.0,), (1.0,), (1.0,)), evidence(success, accepted))
    written = json.loads(found.to_json())
    leader = written["findings"][written["chosen"]]
    rate = leader["rate"]
    lines = screen(found, rest=REST, width=1000).splitlines()
    shares = [round(100 * rate[name], 1) for name in ("estimate", "low")]
    assert figures(lines[0])[1:] == [1, rate["hits"], rate["trials"], *shares, 80.0]
    recall = leader["recall"]
    kept = [recall["hits"], recall["trials"], round(100 * recall["estimate"], 1)]
    assert figures(lines[1]) == kept
    assert len(one_screen(screen(found, rest=REST, width=width), width)) <= 40


@pytest.mark.parametrize("kind", ["precision", "false-positive-rate"])
def test_without_a_choice_the_named_target_holds_and_the_next_does_not(kind: str) -> None:
    """What the screen names is tried: a decision with that target chooses, one that is a percent
    stricter does not."""
    success, accepted = stacked((78, 22, 30), (60, 40, 20))
    is_precision = kind == "precision"
    rate = 0.9 if is_precision else 0.1
    target = Target.model_validate({"kind": kind, "rate": rate})
    given = evidence(success, accepted)
    found = decide(plan((1.0,), (1.0,), target=target), given)
    assert found.chosen is None and found.holding_target is not None
    held = found.holding_target

    def chosen(at: float) -> int | None:
        again = Target.model_validate({"kind": kind, "rate": round(at, 2)})
        return decide(plan((1.0,), (1.0,), target=again), given).chosen

    assert chosen(held.rate) is not None
    assert chosen(held.rate + (0.01 if is_precision else -0.01)) is None
    most = "" if is_precision else "at most "
    shown = screen(found, rest=REST, width=1000)
    name = found.findings[held.candidate].name
    assert f"a target of {most}{100 * held.rate:.1f} % would hold, with {name}." in shown
    assert f"a target of {most}{100 * held.rate:.1f} % would hold" in on_one_line(text(found))


def test_a_choice_names_no_other_target() -> None:
    success, accepted = stacked((150, 10, 0))
    assert decide(plan((1.0,)), evidence(success, accepted)).holding_target is None


def test_benchmarks_with_limits_wider_than_sixty_points_are_counted_not_shown() -> None:
    success, accepted = stacked((150, 10, 0))
    places = ["assistantbench"] * 2 + ["webarena"] * (len(success) - 2)
    found = decide(plan((1.0,)), evidence(success, accepted, benchmark=places))
    (chosen,) = found.findings
    wide = [
        part
        for part in chosen.by_benchmark
        if part.rate.estimate is None
        or not part.rate.low
        or part.rate.estimate - part.rate.low > 0.6
    ]
    assert len(wide) == 1
    lines = screen(found, rest=REST, width=100).splitlines()
    assert "and 1 benchmark with too few labels to say: --full" in lines
    assert any(line.startswith("WebArena ") for line in lines)
    assert not any(line.startswith("AssistantBench") for line in lines)


def test_lines_of_the_decision_file_have_at_most_110_columns() -> None:
    assert max(map(len, text(of_many()).splitlines())) <= 110
