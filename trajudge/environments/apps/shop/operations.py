"""What a customer can do."""

from __future__ import annotations

from trajudge.environments.apps.shop.schema import CITIES, DELIVERIES
from trajudge.environments.apps.submissions import (
    confirmed,
    number_for,
    preference,
    removal,
    transition,
    whole,
)
from trajudge.environments.model.spec import TODAY, FormSubmission, Operation, Rejected, Success


def _add_to_cart(submission: FormSubmission) -> Success | Rejected:
    product = submission.row("product")
    wanted = whole(submission.form.get("quantity", ""), 1, 9)
    if product is None or wanted is None:
        return Rejected("Please give a quantity from 1 to 9.")
    if wanted > product["stock"]:
        return Rejected(f"Only {product['stock']} of {product['name']} are left.")
    held = submission.state.one("SELECT * FROM cart WHERE product = :id", id=product["id"])
    if held is None:
        key = submission.state.token("cart")
        submission.state.add("cart", id=key, product=product["id"], quantity=wanted)
    else:
        submission.state.change("cart", held["id"], quantity=held["quantity"] + wanted)
    return Success("cart")


def _place_order(submission: FormSubmission) -> Success | Rejected:
    state, delivery = submission.state, submission.form.get("delivery", "")
    held = state.rows("SELECT c.*, p.price FROM cart c JOIN product p ON p.id = c.product")
    if not held or delivery not in DELIVERIES:
        return Rejected("Choose a delivery; the cart must not be empty.")
    account = state.row("account", "me")
    key = state.token("purchase")
    total = DELIVERIES[delivery] + sum(row["price"] * row["quantity"] for row in held)
    number = number_for("AF", key)
    address = f"{account['street']}, {account['city']}"
    state.add(
        "purchase", id=key, number=number, placed=TODAY, delivery=delivery, address=address,
        total=total, status="processing",
    )  # fmt: skip
    for row in held:
        state.add(
            "line", id=state.token("line"), purchase=key, product=row["product"],
            quantity=row["quantity"], price=row["price"],
        )  # fmt: skip
        state.remove("cart", row["id"])
    return Success("order", {"id": key})


def _about_order(submission: FormSubmission) -> str:
    account = submission.state.row("account", "me")
    return f"The order goes to {account['street']}, {account['city']} and is binding. Order now?"


_cancel_order = transition(
    "purchase",
    "processing",
    "cancelled",
    "This order can no longer be cancelled.",
    field="order",
    page="order",
)


def _wish(submission: FormSubmission) -> Success | Rejected:
    product = submission.row("product")
    if product is None:
        return Rejected("There is no such product.")
    if not submission.state.value(
        "SELECT count(*) FROM wish WHERE product = :id", id=product["id"]
    ):
        submission.state.add("wish", id=submission.state.token("wish"), product=product["id"])
    return Success("wishes")


def _write_review(submission: FormSubmission) -> Success | Rejected:
    product, stars = submission.row("product"), submission.form.get("stars")
    if product is None or stars not in tuple("12345"):
        return Rejected("Please choose from one to five stars.")
    account = submission.state.row("account", "me")
    submission.state.add(
        "review", id=submission.state.token("review"), product=product["id"],
        author=account["name"], stars=int(stars), body=submission.form.get("body", "")[:500],
    )  # fmt: skip
    return Success("product", {"id": product["id"]})


def _save_address(submission: FormSubmission) -> Success | Rejected:
    street, city = submission.form.get("street", "").strip(), submission.form.get("city", "")
    if not 3 <= len(street) <= 80 or city not in CITIES:
        return Rejected("Please give a street and one of the cities that we deliver to.")
    submission.state.change("account", "me", street=street, city=city)
    return Success("account")


OPERATIONS = {
    "add-to-cart": Operation(_add_to_cart),
    "remove-from-cart": removal("cart", "cart", "item"),
    "place-order": Operation(_place_order, irreversible=True, confirm=_about_order),
    "cancel-order": confirmed(
        _cancel_order,
        "purchase",
        "number",
        "Order {} will be cancelled for good. Cancel it?",
        field="order",
    ),
    "wish": Operation(_wish),
    "unwish": removal("wish", "wishes", "item"),
    "write-review": Operation(_write_review, irreversible=True),
    "save-address": Operation(_save_address),
    "newsletter": preference("newsletter", "account"),
}
