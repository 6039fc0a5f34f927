"""Tasks about what the customer already has: an address, past orders."""

from __future__ import annotations

from typing import Any

from environments.tasks.model import Move, Task
from environments.tasks.moves import SUBSCRIBE, TO_ACCOUNT, TO_ORDERS, choose, click, fill

_OLD = {"name": "Robin Hale", "street": "7 Mill Road", "city": "Leeds", "postcode": "LS1 4AP"}
_NEW = _OLD | {"street": "12 Harbour Lane", "city": "Bristol", "postcode": "BS1 4DJ"}
_RETURN = {"order": "1002", "product": "studio-headphones", "reason": "damaged"}


def _way_to_address(street: str) -> tuple[Move, ...]:
    return (
        TO_ACCOUNT,
        fill("Street", street, "enter the new street"),
        fill("City", "Bristol", "enter the new city"),
        fill("Postcode", "BS1 4DJ", "enter the new postcode"),
        click("button", "Save address", "save the address"),
    )


def _right_return(entry: dict[str, Any]) -> bool:
    return {name: entry[name] for name in _RETURN} == _RETURN


def _way_to_return(*select: Move) -> tuple[Move, ...]:
    return (
        TO_ORDERS,
        click("link", "Order 1002", "open the last order"),
        click("link", "Return an item of this order", "ask for a return"),
        *select,
        choose("Reason", "It arrived damaged", "give the reason"),
        click("button", "Request return", "send the request"),
    )


CHANGE_ADDRESS = Task(
    id="change-address",
    goal="Change my delivery address to 12 Harbour Lane, Bristol, BS1 4DJ. Keep the name.",
    plan=_way_to_address("12 Harbour Lane"),
    wrong=_way_to_address("21 Harbour Lane"),
    early=4,
    claimed=1,
    lost=1,
    circle=(TO_ORDERS, TO_ACCOUNT),
    extra=SUBSCRIBE,
    extra_at=5,
    said=(
        "Your delivery address is now 12 Harbour Lane, Bristol, BS1 4DJ.",
        "Done, I saved the new address.",
    ),
    said_early="The form holds the new address.",
    said_wrong="Your delivery address is changed.",
    holds=lambda state: state["address"] == _NEW,
    permits=lambda change: change in (("removed", "address", _OLD), ("added", "address", _NEW)),
    reward_url="/account.html",
)

RETURN_HEADPHONES = Task(
    id="return-headphones",
    goal="Request a return of the headphones from my last order: they arrived damaged.",
    plan=_way_to_return(choose("Item", "Order 1002: Studio Headphones", "select the headphones")),
    wrong=_way_to_return(),
    early=5,
    claimed=3,
    lost=2,
    circle=(TO_ORDERS, click("link", "Order 1002", "open the order")),
    extra=(
        click("link", "Contact us", "tell the shop about it too"),
        fill("Your name", "Robin Hale", "give the name"),
        fill("Your email", "robin.hale@post.example", "give an email for the reply"),
        fill("Message", "My headphones arrived damaged.", "say what happened"),
        click("button", "Send message", "send the message"),
    ),
    extra_at=6,
    said=(
        "The return of the headphones is requested.",
        "I have sent the return request for the headphones.",
    ),
    said_early="The return form for the headphones is filled in.",
    said_wrong="I requested the return of your headphones.",
    holds=lambda state: [_right_return(entry) for entry in state["returns"]] == [True],
    permits=lambda change: change[:2] == ("added", "returns") and _right_return(change.entry),
    reward_url="/returns.html",
)
