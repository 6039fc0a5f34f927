"""Tasks that end in an order."""

from __future__ import annotations

from typing import Any

from environments.state import Change, State
from environments.tasks.model import Move, Task
from environments.tasks.moves import (
    ADD,
    APPLY,
    CHECKOUT,
    PLACE,
    SUBSCRIBE,
    TO_CART,
    TO_PRODUCTS,
    click,
    fill,
    search,
)

HOME = "Robin Hale, 7 Mill Road, Leeds, LS1 4AP"
_LAST_OLD_ORDER = 1002
_MUGS = {"id": "stoneware-mug", "options": {"Colour": "Green"}, "quantity": 2}
_TOTE = {"id": "linen-tote", "options": {"Colour": "Navy"}, "quantity": 1}


def _new_orders(state: State) -> list[dict[str, Any]]:
    return [order for order in state["orders"] if int(order["id"]) > _LAST_OLD_ORDER]


def _right_mugs(order: dict[str, Any]) -> bool:
    wanted = ([_MUGS], HOME, "standard")
    return (order["lines"], order["address"], order["delivery"]) == wanted


def _permits_mugs(change: Change) -> bool:
    ordered = change.part == "orders" and _right_mugs(change.entry)
    return change.kind == "added" and (ordered or change[1:] == ("cart", _MUGS))


def _way_to_mugs(colour: str) -> tuple[Move, ...]:
    return (
        search("stoneware mug"),
        APPLY,
        click("link", "Stoneware Mug", "open the page of the mug"),
        click("radio", colour, "select the green glaze"),
        fill("Quantity", "2", "set the quantity to two", role="spinbutton"),
        ADD,
        TO_CART,
        CHECKOUT,
        PLACE,
    )


def _right_tote(order: dict[str, Any]) -> bool:
    return (order["lines"], order["coupon"], order["address"]) == ([_TOTE], "SPRING10", HOME)


def _permits_tote(change: Change) -> bool:
    on_the_way = change[1:] in (("cart", _TOTE), ("coupon", "SPRING10"))
    ordered = change.part == "orders" and _right_tote(change.entry)
    return change.kind == "added" and (ordered or on_the_way)


def _way_to_tote(coupon: str) -> tuple[Move, ...]:
    return (
        search("tote"),
        APPLY,
        click("link", "Linen Tote Bag", "open the bag"),
        click("radio", "Navy", "take the navy one"),
        ADD,
        TO_CART,
        fill("Coupon code", coupon, "enter the coupon code from the task"),
        click("button", "Redeem", "redeem the coupon"),
        CHECKOUT,
        PLACE,
    )


BUY_MUGS = Task(
    id="buy-mugs",
    goal="Buy two green Stoneware Mugs and have them sent to the address saved in my account "
    "with standard delivery.",
    plan=_way_to_mugs("Green"),
    wrong=_way_to_mugs("Sand"),
    early=8,
    claimed=6,
    lost=6,
    circle=(TO_CART, TO_PRODUCTS),
    extra=(click("checkbox", "Send me the newsletter", "complete the form"),),
    extra_at=8,
    said=(
        "I ordered two green Stoneware Mugs; they go to 7 Mill Road in Leeds.",
        "The order of two green Stoneware Mugs is placed.",
    ),
    said_early="The two green Stoneware Mugs are ready at the checkout.",
    said_wrong="Your order of two green Stoneware Mugs is placed.",
    holds=lambda state: [_right_mugs(order) for order in _new_orders(state)] == [True],
    permits=_permits_mugs,
    reward_url="/order.html",
)

TOTE_COUPON = Task(
    id="tote-coupon",
    goal="Order one navy Linen Tote Bag with the coupon code SPRING10 and tell me the total.",
    plan=_way_to_tote("SPRING10"),
    wrong=_way_to_tote("WELCOME5"),
    early=9,
    claimed=8,
    lost=6,
    circle=(TO_PRODUCTS, TO_CART),
    extra=SUBSCRIBE,
    extra_at=10,
    said=("The total of the order is $28.80.", "$28.80"),
    said_early="The navy tote bag is at the checkout with SPRING10.",
    said_wrong="I used your coupon. The total is $30.40.",
    holds=lambda state: [_right_tote(order) for order in _new_orders(state)] == [True],
    permits=_permits_tote,
    answer="$28.80",
    reward_answer="$28.80",
)
