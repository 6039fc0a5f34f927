"""A plan's file: what is right is read, each mistake has its sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trajudge.eval.cli import main
from trajudge.proxy.plan import KINDS, FaultPlan, plan_mistakes, read_plan
from trajudge.util.errors import UserError

# One of every kind, as a user writes them.
EVERY_KIND: list[dict[str, Any]] = [
    {
        "id": "news",
        "kind": "popup",
        "variant": "banner",
        "accessibility": "none",
        "policy": "at(1)",
    },
    {"id": "busy", "kind": "status", "status": 503, "retry_after": 2, "policy": "random(2, 6)"},
    {"id": "slow", "kind": "delay", "seconds": 1.5, "policy": {"bernoulli": 0.2}},
    {"id": "cut", "kind": "reset", "stage": "after", "policy": {"at": 2}},
    {"id": "half", "kind": "truncate", "share": 0.25, "policy": {"at": 2}},
    {"id": "login", "kind": "session", "location": "/login", "policy": {"at": 4}},
    {"id": "bare", "kind": "assets", "assets": ["style", "font"], "policy": {"at": 5}},
    {"id": "off", "kind": "offline", "retry_seconds": None, "policy": {"random": 1, "horizon": 9}},
]


def with_fault(**changes: object) -> str:
    fault = {"id": "a", "kind": "status", "status": 503, "policy": "at(1)"} | changes
    return json.dumps({"faults": [{k: v for k, v in fault.items() if v != "absent"}]})


def test_every_kind_is_read_and_written_again() -> None:
    plan = FaultPlan.model_validate({"faults": EVERY_KIND})
    assert {fault.kind for fault in plan.faults} == set(KINDS)
    assert FaultPlan.model_validate_json(plan.model_dump_json()) == plan
    assert all(fault.recovery in ("dismiss", "reload", "wait", "none") for fault in plan.faults)


def test_the_digest_is_of_the_faults_not_of_the_seed() -> None:
    plans = [
        FaultPlan.model_validate({"seed": n, "faults": EVERY_KIND[:m]})
        for n, m in ((0, 3), (9, 3), (0, 4))
    ]
    assert plans[0].digest == plans[1].digest != plans[2].digest


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", 'write a JSON object such as {"faults"'),
        ("[]", "the plan: Input should be an object: write a JSON object such as"),
        ('{"version": 2}', "version is 2"),
        ('{"fault": []}', "fault is not a field"),
        (with_fault(status=418), "fault 1: status is 418"),
        (with_fault(kind="pop"), "fault 1 has no known kind: name one of popup"),
        (with_fault(kind="absent"), "fault 1 has no known kind: name one of popup"),
        (with_fault(policy="absent"), "fault 1: policy is missing"),
        (with_fault(policy="random(7, 3)"), "7 page loads of 3 cannot be drawn"),
        (with_fault(policy={"at": 1, "bernoulli": 0.1}), "name exactly one of at(k)"),
        (with_fault(policy={"at": 1, "horizon": 3}), "a horizon goes with random"),
        (with_fault(policy="sometimes"), "policy is 'sometimes': write at(k)"),
        (with_fault(id="a b"), "fault 1: id is 'a b'"),
        (with_fault(retry_after=-1), "fault 1: retry_after is -1"),
        (with_fault(stage="during"), "fault 1: stage is 'during'"),
        (with_fault(kind="delay", status="absent", seconds=0), "fault 1: seconds is 0"),
        (
            with_fault(kind="session", status="absent", location="http://x"),
            "location is 'http://x'",
        ),
        (with_fault(colour="red"), "fault 1: colour is not a field"),
    ],
)
def test_each_mistake_has_one_sentence(text: str, sentence: str) -> None:
    (mistake,) = plan_mistakes(text)
    assert sentence in mistake
    assert "\n" not in mistake


def test_two_faults_of_one_name_are_refused() -> None:
    (mistake,) = plan_mistakes(json.dumps({"faults": [EVERY_KIND[0]] * 2}))
    assert "the id 'news' stands 2 times" in mistake


def test_several_mistakes_are_named_together(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    wrong = [{**fault, "policy": "at(0)"} for fault in EVERY_KIND[:5]]
    file.write_text(json.dumps({"faults": wrong}))
    with pytest.raises(UserError, match=r"fault 1: .*; fault 2: .*; fault 3: .*; and 2 more"):
        read_plan(file)
    with pytest.raises(UserError, match="No such file"):
        read_plan(tmp_path / "none.json")


def test_a_file_without_a_plan_is_told_a_plan(tmp_path: Path) -> None:
    """Of an empty file only the end of its JSON was named; what it is told can be pasted."""
    file = tmp_path / "plan.json"
    file.write_text(" \n")
    with pytest.raises(UserError, match=r"plan\.json is empty: write a JSON object") as told:
        read_plan(file)
    file.write_text(str(told.value).partition("such as ")[2])
    assert [fault.id for fault in read_plan(file).faults] == ["busy"]


def test_the_command_shows_what_a_plan_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")  # where no cell takes a second line
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"seed": 3, "faults": EVERY_KIND}))
    assert main(["proxy", "plan", "--faults", str(file), "--task", "shop.1"]) == 0
    shown = capsys.readouterr().out
    assert "Faults of task 'shop.1' (seed 3)" in shown
    assert "status 503, retry_after 2, stage before, body page" in shown
    rows = {line.split()[0]: line for line in shown.splitlines()[2:]}
    assert rows["login"].split()[-1] == "4"
    assert rows["slow"].endswith("drawn at each")
    assert rows.keys() == {fault["id"] for fault in EVERY_KIND}
    assert main(["proxy", "plan", "--faults", str(tmp_path / "x.json")]) == 2
