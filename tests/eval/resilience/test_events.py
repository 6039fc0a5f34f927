"""The proxy's events as figures: what is not known stays unknown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trajudge.eval.resilience.reading import ended_tasks, read_events
from trajudge.judges.models import KnownPrice, Price, listed_price
from trajudge.util.errors import UserError

USAGE = {"input": 1000, "cache_read": 200, "cache_write": None, "output": 50, "reasoning": None}


def call(usage: dict[str, int | None] | None, model: str = "m") -> dict[str, Any]:
    return {"type": "model", "task": "t", "model": model, "usage": usage}


def task(*events: dict[str, Any]) -> list[dict[str, Any]]:
    exposure = {"fault": "busy", "planned": [2, 3], "fired": [2]}
    end = {"type": "task_end", "task": "t", "seed": 4, "seconds": 2.5, "page_loads": 3}
    latency = {"model": 1.0, "site": 0.5, "injected": 0.0, "proxy": 0.1, "agent": 0.9}
    return [
        {"type": "task", "task": "t"},
        *events,
        {**end, "latency": latency, "exposure": [exposure]},
    ]


def dear(_: str) -> KnownPrice:
    return KnownPrice(price=Price(input=10, output=20, cache_read=1))


def test_tokens_and_dollars_of_a_task() -> None:
    (figures,) = ended_tasks(task(call(USAGE), call(USAGE)), dear)
    assert (figures.model_calls, figures.tokens, figures.page_loads) == (2, 2500, 3)
    assert figures.dollars == pytest.approx(2 * (1000 * 10 + 200 * 1 + 50 * 20) / 1e6)
    assert figures.latency["model"] == 1.0
    assert figures.seconds == pytest.approx(sum(figures.latency.values()))


@pytest.mark.parametrize("usage", [None, {**USAGE, "input": None}])
def test_unknown_usage_is_unknown(usage: dict[str, int | None] | None) -> None:
    (figures,) = ended_tasks(task(call(USAGE), call(usage)), dear)
    assert (figures.model_calls, figures.tokens, figures.dollars) == (2, None, None)


def test_an_unknown_model_has_tokens_and_no_price() -> None:
    (figures,) = ended_tasks(task(call(USAGE, "no-such-model")), listed_price)
    assert (figures.tokens, figures.dollars) == (1250, None)


def test_a_task_without_calls_costs_nothing() -> None:
    (figures,) = ended_tasks(task(), dear)
    assert (figures.model_calls, figures.tokens, figures.dollars) == (0, 0, 0)


def test_recoveries_belong_to_their_fault() -> None:
    recovery = {"type": "recovery", "task": "t", "fault": "busy", "means": "reloaded"}
    (figures,) = ended_tasks(task({**recovery, "recovered": True}), dear)
    (met,) = figures.faults
    assert (met.planned, met.fired, met.recovered, met.means) == (2, 1, 1, ("reloaded",))


def test_a_task_that_did_not_end_is_none() -> None:
    assert not list(ended_tasks(task()[:-1], dear))
    assert not list(ended_tasks(task()[1:], dear))


def test_a_damaged_log_is_named(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"type": "proxy"}\nnonsense\n{"type": "end"}\n')
    with pytest.raises(UserError, match="line 2"):
        read_events(path)
    path.write_text('{"type": "proxy"}\n{"type": "cut o')
    assert [event["type"] for event in read_events(path)] == ["proxy"]


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("seed", None, "seed is None"),
        ("seconds", "x", "seconds is 'x'"),
        ("seconds", -1, "seconds is -1"),
        ("page_loads", [], "page_loads is []"),
        ("latency", {"model": "fast"}, "latency.model is 'fast'"),
        ("exposure", [{"fault": "busy", "planned": 1, "fired": []}], "exposure.0.planned is 1"),
    ],
)
def test_a_damaged_event_is_named_with_its_line(
    name: str, value: object, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "events.jsonl"
    begin, end = task()
    path.write_text(f"{json.dumps(begin)}\n{json.dumps({**end, name: value})}\n")
    with pytest.raises(UserError) as raised:
        read_events(path)
    assert str(raised.value).startswith(
        f"{path}, line 2: the task_end event is damaged: {sentence}"
    )


def test_calls_and_recoveries_are_looked_at_as_well(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    for event in ({**call(None), "usage": [1]}, {"type": "recovery", "task": "t"}):
        path.write_text(f"{json.dumps(event)}\n")
        with pytest.raises(UserError, match=f"line 1: the {event['type']} event is damaged"):
            read_events(path)
