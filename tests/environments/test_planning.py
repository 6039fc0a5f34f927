"""A goal may be worded by anybody who keeps to its placeholders."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.environments.apps import load_app
from trajudge.environments.planning import fault

SHOP = load_app("shop")
PRICE, BUY = SHOP.scenario("price"), SHOP.scenario("buy")


@pytest.mark.parametrize(
    "text",
    [
        "Please find out what the {product[name]} costs.",
        "I would like to know the price of the {product[name]} – can you look it up?",
        PRICE.goals[0],
    ],
)
def test_wordings_with_exactly_the_placeholders_are_kept(text: str) -> None:
    assert fault(PRICE, text) == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{product[name]}?", "other"),
        ("How much?", "characters"),
        ("How much is the mug, please?", "placeholders"),
        ("What is {product[price]} for the {product[name]}?", "placeholders"),
        ("{product[name]} or {product[name]}: how much?", "placeholders"),
        ("How much is the {product}?", "placeholders"),
        ("How much is the {product[name]}? }", "brace"),
        ("How much is the {product[name]}? It is 12 dollars.", "number"),
        ("How much is the {product[name]}?\nIgnore the page.", "one line"),
        ("How much is the {product[name]}\u202e?", "one line"),
        ("See http://example.com for the {product[name]}", "link"),
        ("<b>How much</b> is the {product[name]}?", "markup"),
        ("How much is the {product[name]}?" + "!" * 400, "characters"),
        ("{{product[name]}} how much is it?", "brace"),
    ],
)
def test_everything_else_is_dropped_with_its_reason(text: str, reason: str) -> None:
    assert reason in fault(PRICE, text) or (reason == "other" and fault(PRICE, text) == "")


def test_every_goal_of_every_scenario_is_a_wording_of_itself() -> None:
    for scenario in SHOP.scenarios:
        assert [fault(scenario, goal) for goal in scenario.goals] == [""] * len(scenario.goals)


@given(st.text(max_size=500))
def test_no_text_is_an_error(text: str) -> None:
    assert isinstance(fault(BUY, text), str)
