"""Files that name a panel as an earlier release did are those of the same panel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.eval.acceptance.test_binding import SETTINGS, accept
from tests.eval.cases import key, label, said
from tests.eval.select.test_threat import measured
from tests.eval.test_accept import make_run, trajectory
from trajudge.eval.acceptance.binding import JudgeConfiguration
from trajudge.eval.acceptance.names import names_of
from trajudge.eval.labelling.commands.build import main as build_main
from trajudge.eval.select.__main__ import main as select_main
from trajudge.eval.select.measures.under_attack import read_threat
from trajudge.eval.select.plan import FILE
from trajudge.eval.store.run_folder import write_labels, write_manifest, write_rewards

NAMES = ("panel-of-simplified+heuristic:gpt-4o", "panel-of-simplified:gpt-4o+heuristic")


def panel(*members: tuple[str, str | None], model: str = "gpt-4o") -> dict[str, Any]:
    named = [{"name": name, "model": own} for name, own in members]
    return {"model": model, "options": {"of": {"members": named}, "rule": "majority"}}


FACTS = panel(("simplified", None), ("heuristic", None))


@pytest.mark.parametrize(
    ("facts", "earlier", "now"),
    [
        (FACTS, *NAMES),
        (FACTS, "panel-of-simplified+heuristic-mean:gpt-4o", f"{NAMES[1]}-mean"),
        (
            panel(("simplified", "m-a"), ("aer-c", "m-b"), model="m-a"),
            "panel-of-simplified:m-a+aer-c:m-b:m-a",
            "panel-of-simplified:m-a+aer-c:m-b",
        ),
        (
            panel(("simplified", "m-a"), ("aer-c", "m-a"), model="m-a"),
            "panel-of-simplified:m-a+aer-c:m-a:m-a",
            "panel-of-simplified:m-a+aer-c:m-a",
        ),
        (
            panel(("heuristic", None), ("simplified", None)),
            "cascade-of-heuristic+simplified:gpt-4o",
            "cascade-of-heuristic+simplified:gpt-4o",
        ),
    ],
)
def test_either_name_tells_the_other(facts: dict[str, Any], earlier: str, now: str) -> None:
    for name in (earlier, now):
        assert names_of(JudgeConfiguration(judge=name, facts=facts)) == {earlier, now}


def test_a_judge_of_its_own_has_one_name() -> None:
    for name in ("simplified-axtree:gpt-4o", "panel-of-mine+yours:gpt-4o"):
        assert names_of(JudgeConfiguration(judge=name, facts={"model": "gpt-4o"})) == {name}


@pytest.mark.parametrize(("decided", "judged"), [NAMES, NAMES[::-1]])
def test_a_decision_holds_for_the_panel_by_either_name(
    decided: str, judged: str, tmp_path: Path
) -> None:
    settings = SETTINGS | FACTS
    made = [said(n, n % 2 == 0, judge=decided) for n in range(80)]
    run = make_run(tmp_path / "labelled", [], made)
    write_manifest(run, settings | {"judge": decided, "data": "sample"})
    write_labels(run, [label(n, n % 2 == 0) for n in range(80)])
    decision = tmp_path / "selection"
    assert select_main([str(run), "--target-precision", "0.9", "--out", str(decision)]) == 0

    new = make_run(tmp_path / "new", [trajectory(1)], [said(1, True, judge=judged)])
    data = {"judge": judged, "data": f"trajudge:{new / 'data'}"}
    for facts, code in ((settings, 0), (settings | {"samples": 3}, 2)):
        write_manifest(new, facts | data)
        assert accept(decision, new) == code


@pytest.mark.parametrize(("planned", "judged"), [NAMES, NAMES[::-1]])
def test_a_frozen_plan_is_decided_by_runs_of_the_panel_by_either_name(
    planned: str, judged: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = {}
    for name in (planned, judged):
        made = [said(n, n % 2 == 0, judge=name) for n in range(80)]
        runs[name] = make_run(tmp_path / name, [], made)
        write_manifest(runs[name], SETTINGS | FACTS | {"judge": name, "data": "sample"})
        write_rewards(runs[name], {key(n): 1.0 for n in range(80)})
        write_labels(runs[name], [label(n, n % 2 == 0) for n in range(80)])
    target = ["--target-precision", "0.9", "--freeze", "--out", str(tmp_path / "plan")]
    assert select_main([str(runs[planned]), *target]) == 0
    file = tmp_path / "plan" / FILE
    frozen, decided = file.read_bytes(), tmp_path / "decided"
    capsys.readouterr()
    assert select_main([str(runs[judged]), "--candidates", str(file), "--out", str(decided)]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith(f"Decision: filter with {planned} at threshold")
    assert "the plan was made from" not in shown.err
    assert (decided / FILE).read_bytes() == frozen
    words = ["--strategy", "cascade", "--candidates", str(file), "--budget", "10", "--dry-run"]
    assert build_main([str(runs[judged]), *words]) == 0
    new = make_run(tmp_path / "new", [trajectory(1)], [said(1, True, judge=judged)])
    write_manifest(new, SETTINGS | FACTS | {"judge": judged, "data": f"trajudge:{new / 'data'}"})
    assert accept(decided, new) == 0
    other = make_run(tmp_path / "other", [], [said(1, True, judge="heuristic")])
    assert select_main([str(other), "--candidates", str(file), "--out", str(decided)]) == 2
    assert f"candidates are of {planned}, while the runs are of heuri" in capsys.readouterr().err


def test_what_attacks_leave_of_the_panel_is_found_by_either_name(tmp_path: Path) -> None:
    file = measured(tmp_path / "robustness.json", **{NAMES[0]: 0.84})
    known = {NAMES[1]: JudgeConfiguration(judge=NAMES[1], facts={"model": "m", **FACTS})}
    file.write_text(file.read_text().replace('"model": "m"', '"model": "gpt-4o"'))
    assert read_threat([file], "agent", [NAMES[1]], known)[NAMES[1]].low == 0.84
