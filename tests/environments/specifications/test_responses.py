"""Prose as a response of the protocol; the sentences are written by hand, as people answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trajudge.environments.specifications.responses import response_text
from trajudge.rules.verified.tasks import AnswerCheck, ExpectedAnswer, Task

MONEY = {"type": "number", "format": "currency"}
NAMES = {"type": "string", "enum": ["Linen Mug", "Linen Mug Stand", "Oak Trivet"]}
CODE = {"type": "string", "pattern": "^[A-Z2-7]{10}$"}


def _task(items: dict[str, Any]) -> Task:
    expected = ExpectedAnswer(task_type="retrieve", status="SUCCESS", retrieved_data=["x"])
    check = AnswerCheck(expected=expected, results_schema={"type": "array", "items": items})
    return Task(task_id=1, sites=("homepage",), intent="?", eval=(check,))


@pytest.mark.parametrize(
    ("items", "message", "data"),
    [
        (MONEY, "It costs $1,190.25.", [1190.25]),
        (MONEY, "The total was 12.50", [12.5]),
        (MONEY, "Order AF-1004: $3.00, then $4.50", [3.0, 4.5]),
        ({"type": "number"}, "There are 14 of them in AF-3312.", [14.0]),
        ({"type": "string", "format": "date"}, "On 2026-03-09, I think", ["2026-03-09"]),
        ({"type": "string", "format": "duration"}, "about 2 h 40 min", ["2 h 40 min"]),
        (NAMES, "It is the linen mug stand.", ["linen mug stand"]),
        (NAMES, "The Oak Trivet, not the Linen Mug", ["Oak Trivet", "Linen Mug"]),
        (CODE, "Done: ABCDEFGH27.", ["ABCDEFGH27"]),
        (CODE, "It was ordered.", None),
    ],
)
def test_values_of_the_kind_are_retrieved(
    items: dict[str, Any], message: str, data: list[Any] | None
) -> None:
    assert json.loads(response_text(_task(items), message) or "")["retrieved_data"] == data


def test_two_kinds_make_one_object() -> None:
    task = _task({"type": "object", "properties": {"code": CODE, "money": MONEY}})
    said = response_text(task, "The code is ABCDEFGH27 and the total $41.00.")
    assert json.loads(said or "")["retrieved_data"] == [{"code": "ABCDEFGH27", "money": 41.0}]


def test_a_declared_answer_is_its_values() -> None:
    both = {"type": "object", "properties": {"code": CODE, "money": MONEY}}
    said = response_text(_task(both), '{"answer": ["ABCDEFGH27", 41.5]}')
    assert json.loads(said or "")["retrieved_data"] == [{"code": "ABCDEFGH27", "money": 41.5}]
    assert json.loads(response_text(_task(MONEY), '{"answer": "$12.00"}') or "")[
        "retrieved_data"
    ] == [12.0]


def test_a_response_of_the_protocol_is_taken_as_it_is() -> None:
    own = '{"task_type": "RETRIEVE", "status": "NOT_FOUND_ERROR", "retrieved_data": null}'
    assert response_text(_task(MONEY), own) == own


@pytest.mark.parametrize("message", [None, "", "  "])
def test_silence_is_no_response(message: str | None) -> None:
    assert response_text(_task(MONEY), message) is None
