"""The state that a run leaves behind: recorded beside it or asked later, it decides the checks."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.commands import rules_evaluate as evaluate
from tests.commands import rules_probe as record
from tests.rules.verified.tasks import answer, page
from trajudge.rules.verdict import Outcome
from trajudge.util.commands import FAILURES, OK, USAGE_ERROR

TASK = {
    "task_id": "cancel-1",
    "sites": ["shopping"],
    "intent": "Cancel the order.",
    "eval": [
        {
            "evaluator": "AgentResponseEvaluator",
            "results_schema": {"type": "null"},
            "expected": {"task_type": "mutate", "status": "SUCCESS", "retrieved_data": None},
        },
        {
            "evaluator": "BackendStateEvaluator",
            "probe": "orders",
            "expected": {"$[0].status": "canceled"},
            "changed": True,
        },
    ],
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with an open order, probes for it, the task, and a run that claims success."""
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.execute("create table orders (id integer, status text)")
        connection.execute("insert into orders values (299, 'open')")
    connection.close()
    probe = {
        "kind": "sql",
        "url": f"sqlite:///{tmp_path}/shop.db",
        "query": "select status from orders",
    }
    (tmp_path / "probes.json").write_text(json.dumps({"orders": probe}))
    (tmp_path / "tasks.json").write_text(json.dumps([TASK]))
    own = tmp_path / "runs/cancel-1"
    own.mkdir(parents=True)
    (own / "agent_response.json").write_text(json.dumps(answer(None, "mutate")))
    (own / "network.har").write_text(json.dumps({"log": {"entries": [page("/")]}}))
    return tmp_path


def _cancel(shop: Path) -> None:
    with sqlite3.connect(shop / "shop.db") as connection:
        connection.execute("update orders set status = 'canceled'")
    connection.close()


def _record(shop: Path, when: str, probes: str = "probes.json") -> int:
    words = ["--probes", str(shop / probes), "--run-folder", str(shop / "runs/cancel-1")]
    return record([*words, "--when", when])


def _judged(shop: Path, *more: str, code: int = OK) -> dict[str, Any]:
    words = ["--tasks", str(shop / "tasks.json"), "--runs", str(shop / "runs")]
    assert evaluate([*words, "--out", str(shop / "out"), *more]) == code
    result: dict[str, Any] = json.loads((shop / "out/tasks/cancel-1.json").read_text())
    return result


def test_a_recorded_state_decides(shop: Path) -> None:
    assert _record(shop, "before") == OK
    _cancel(shop)
    assert _record(shop, "after") == OK
    assert _judged(shop)["outcome"] == Outcome.PASS


def test_an_agent_that_did_nothing_fails(shop: Path) -> None:
    assert (_record(shop, "before"), _record(shop, "after")) == (OK, OK)
    result = _judged(shop)
    assert result["outcome"] == Outcome.FAIL
    assert "backend.1.changed: the state did not change" in result["reasons"]


def test_the_state_may_be_asked_for_when_the_run_is_judged(shop: Path) -> None:
    _record(shop, "before")
    _cancel(shop)
    assert _judged(shop, "--probes", str(shop / "probes.json"))["outcome"] == Outcome.PASS


def test_a_recorded_state_goes_before_one_that_is_asked_for_later(shop: Path) -> None:
    _record(shop, "before")
    _record(shop, "after")
    _cancel(shop)
    assert _judged(shop, "--probes", str(shop / "probes.json"))["outcome"] == Outcome.FAIL


@pytest.mark.parametrize("when", [None, "before"])
def test_a_state_that_nobody_asked_for_is_unknown(shop: Path, when: str | None) -> None:
    if when:
        _record(shop, when)
    result = _judged(shop)
    assert result["outcome"] == Outcome.UNKNOWN
    assert "not asked" in result["reasons"][0]


def test_a_probe_without_a_reply_is_recorded_as_such(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (shop / "shop.db").unlink()
    assert _record(shop, "after") == FAILURES
    assert "probe orders:" in capsys.readouterr().err
    assert _judged(shop)["outcome"] == Outcome.UNKNOWN


@pytest.mark.parametrize("probes", ["{", "{}", '{"x": {"kind": "telnet"}}', '{"x": []}'])
def test_a_mistake_in_the_probes_is_one_sentence(
    shop: Path, probes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (shop / "mine.json").write_text(probes)
    assert _record(shop, "after", "mine.json") == USAGE_ERROR
    assert "mine.json" in capsys.readouterr().err


def test_a_state_file_that_cannot_be_read_makes_its_run_unknown(shop: Path) -> None:
    (shop / "runs/cancel-1/state.json").write_text('{"orders": {"afterwards": 1}}')
    result = _judged(shop, code=FAILURES)
    assert result["outcome"] == Outcome.UNKNOWN
    assert "state.json" in result["reasons"][0]
