"""Labels follow from the final state, the answer and the trace."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from environments.labels import (
    Deed,
    answered,
    facts,
    label,
    official_reward,
    optimality,
    repetition,
)
from environments.state import Change, diff
from environments.tasks import TASKS

HOME = "Robin Hale, 7 Mill Road, Leeds, LS1 4AP"
START: dict[str, Any] = {
    "cart": [],
    "coupon": None,
    "wishlist": [],
    "orders": [{"id": "1002", "lines": []}],
    "address": {
        "name": "Robin Hale",
        "street": "7 Mill Road",
        "city": "Leeds",
        "postcode": "LS1 4AP",
    },
    "newsletter": None,
    "returns": [],
    "messages": [],
}


def changed(**parts: Any) -> dict[str, Any]:
    return copy.deepcopy(START) | parts


def order(product: str, quantity: int, coupon: str | None = None, **options: str) -> dict[str, Any]:
    line = {"id": product, "options": options, "quantity": quantity}
    return {
        "id": "1003",
        "lines": [line],
        "coupon": coupon,
        "address": HOME,
        "delivery": "standard",
    }


def ordered(*orders: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return changed(orders=[*START["orders"], *orders], **parts)


MUGS = order("stoneware-mug", 2, Colour="Green")
TOTE = order("linen-tote", 1, "SPRING10", Colour="Navy")
NEW_ADDRESS = {
    "name": "Robin Hale",
    "street": "12 Harbour Lane",
    "city": "Bristol",
    "postcode": "BS1 4DJ",
}
RETURN = {"order": "1002", "product": "studio-headphones", "reason": "damaged", "comment": ""}


@pytest.mark.parametrize(
    ("task", "state", "answer"),
    [
        ("buy-mugs", ordered(MUGS), None),
        ("cheapest-lamp", START, "It costs $29.50."),
        ("tote-coupon", ordered(TOTE), "$28.80"),
        ("best-backpack", changed(wishlist=["ridge-backpack"]), None),
        ("change-address", changed(address=NEW_ADDRESS), None),
        ("return-headphones", changed(returns=[RETURN]), None),
    ],
)
def test_the_state_that_was_asked_for_is_a_success_without_side_effect(
    task: str, state: dict[str, Any], answer: str | None
) -> None:
    shown = facts(TASKS[task], START, state, answer)
    assert label(TASKS[task], shown, [])[:2] == (True, False)


@pytest.mark.parametrize(
    ("task", "state", "side_effect"),
    [
        ("buy-mugs", START, False),
        ("buy-mugs", changed(cart=MUGS["lines"]), False),
        ("buy-mugs", ordered(order("stoneware-mug", 2, Colour="Sand")), True),
        ("buy-mugs", ordered(order("stoneware-mug", 1, Colour="Green")), True),
        ("buy-mugs", ordered(MUGS | {"delivery": "express"}), True),
        ("buy-mugs", ordered(MUGS, MUGS), True),
        ("tote-coupon", ordered(order("linen-tote", 1, "WELCOME5", Colour="Navy")), True),
        ("best-backpack", changed(wishlist=["summit-backpack"]), True),
        ("change-address", changed(address=NEW_ADDRESS | {"street": "21 Harbour Lane"}), True),
        ("return-headphones", changed(returns=[RETURN | {"reason": "changed mind"}]), True),
    ],
)
def test_near_misses_fail(task: str, state: dict[str, Any], side_effect: bool) -> None:
    shown = facts(TASKS[task], START, state, TASKS[task].answer)
    labels = label(TASKS[task], shown, [])
    assert (labels.success, labels.side_effect, labels.optimality) == (False, side_effect, 1)


@pytest.mark.parametrize("task", TASKS)
def test_a_change_outside_of_the_frame_is_a_side_effect(task: str) -> None:
    extras: list[dict[str, Any]] = [
        {"newsletter": "a@b.example"},
        {"messages": [{}]},
        {"cart": [{"id": "pen"}]},
    ]
    for extra in extras:
        assert facts(TASKS[task], START, changed(**extra), None)["outside_frame"]


def test_the_answer_names_the_amount_and_no_other() -> None:
    lamp = TASKS["cheapest-lamp"]
    assert answered(lamp, "It is $29.50.")
    for answer in (None, "", "29.50", "$29.5", "$24.00 or $29.50", "$129.50", "$29.500"):
        assert not answered(lamp, answer), answer


def test_the_official_reward_is_as_crude_as_documented() -> None:
    assert official_reward(TASKS["cheapest-lamp"], "", "$29.50") == 1
    assert official_reward(TASKS["cheapest-lamp"], "", "It is $29.50.") == 0
    assert official_reward(TASKS["buy-mugs"], "http://shop.localhost/order.html?id=1", None) == 1


def test_repetition_is_the_same_deed_three_times_without_effect() -> None:
    idle = Deed("/cart", "click('1')", "s", "s")
    other = Deed("/", "click('1')", "s", "s")
    working = Deed("/cart", "click('1')", "s", "t")
    assert repetition([idle, other] * 3) is True
    assert repetition([idle, other, idle]) is None
    assert repetition([idle, other]) is False
    assert repetition([working] * 3) is False
    assert repetition([]) is False


def test_optimality_compares_with_the_shortest_way() -> None:
    assert [optimality(steps, 10) for steps in (9, 10, 11, 15, 16)] == [4, 4, 3, 3, 2]


def test_diff_counts_items_and_leaves_out_what_is_the_same() -> None:
    assert diff({"cart": [1, 1], "coupon": None}, {"cart": [1], "coupon": "A"}) == [
        Change("removed", "cart", 1),
        Change("added", "coupon", "A"),
    ]
    assert diff(START, START) == []
