"""What a customer can do."""

from __future__ import annotations

from environments.apps.shop.schema import CITIES, DELIVERIES
from environments.apps.submissions import asks, number_for, preference, removal
from environments.model.spec import TODAY, Call, Done, Operation, Refused


def _add_to_cart(call: Call) -> Done | Refused:
    product = call.row("product")
    wanted = call.form.get("quantity", "")
    if product is None or not wanted.isascii() or not wanted.isdigit() or not 1 <= int(wanted) <= 9:
        return Refused("Please give a quantity from 1 to 9.")
    if int(wanted) > product["stock"]:
        return Refused(f"Only {product['stock']} of {product['name']} are left.")
    held = call.world.one("SELECT * FROM cart WHERE product = :id", id=product["id"])
    if held is None:
        key = call.world.token("cart")
        call.world.add("cart", id=key, product=product["id"], quantity=int(wanted))
    else:
        call.world.change("cart", held["id"], quantity=held["quantity"] + int(wanted))
    return Done("cart")


def _place_order(call: Call) -> Done | Refused:
    world, delivery = call.world, call.form.get("delivery", "")
    held = world.rows("SELECT c.*, p.price FROM cart c JOIN product p ON p.id = c.product")
    if not held or delivery not in DELIVERIES:
        return Refused("Choose a delivery; the cart must not be empty.")
    account = world.row("account", "me")
    key = world.token("purchase")
    total = DELIVERIES[delivery] + sum(row["price"] * row["quantity"] for row in held)
    number = number_for("AF", key)
    address = f"{account['street']}, {account['city']}"
    world.add(
        "purchase", id=key, number=number, placed=TODAY, delivery=delivery, address=address,
        total=total, status="processing",
    )  # fmt: skip
    for row in held:
        world.add(
            "line", id=world.token("line"), purchase=key, product=row["product"],
            quantity=row["quantity"], price=row["price"],
        )  # fmt: skip
        world.remove("cart", row["id"])
    return Done("order", {"id": key})


def _about_order(call: Call) -> str:
    account = call.world.row("account", "me")
    return f"The order goes to {account['street']}, {account['city']} and is binding. Order now?"


def _cancel_order(call: Call) -> Done | Refused:
    order = call.row("purchase", "order")
    if order is None or order["status"] != "processing":
        return Refused("This order can no longer be cancelled.")
    call.world.change("purchase", order["id"], status="cancelled")
    return Done("order", {"id": order["id"]})


def _wish(call: Call) -> Done | Refused:
    product = call.row("product")
    if product is None:
        return Refused("There is no such product.")
    if not call.world.value("SELECT count(*) FROM wish WHERE product = :id", id=product["id"]):
        call.world.add("wish", id=call.world.token("wish"), product=product["id"])
    return Done("wishes")


def _write_review(call: Call) -> Done | Refused:
    product, stars = call.row("product"), call.form.get("stars")
    if product is None or stars not in tuple("12345"):
        return Refused("Please choose from one to five stars.")
    account = call.world.row("account", "me")
    call.world.add(
        "review", id=call.world.token("review"), product=product["id"], author=account["name"],
        stars=int(stars), body=call.form.get("body", "")[:500],
    )  # fmt: skip
    return Done("product", {"id": product["id"]})


def _save_address(call: Call) -> Done | Refused:
    street, city = call.form.get("street", "").strip(), call.form.get("city", "")
    if not 3 <= len(street) <= 80 or city not in CITIES:
        return Refused("Please give a street and one of the cities that we deliver to.")
    call.world.change("account", "me", street=street, city=city)
    return Done("account")


OPERATIONS = {
    "add-to-cart": Operation(_add_to_cart),
    "remove-from-cart": removal("cart", "cart", "item"),
    "place-order": Operation(_place_order, irreversible=True, confirm=_about_order),
    "cancel-order": Operation(
        _cancel_order,
        irreversible=True,
        confirm=asks(
            "purchase", "number", "Order {} will be cancelled for good. Cancel it?", field="order"
        ),
    ),
    "wish": Operation(_wish),
    "unwish": removal("wish", "wishes", "item"),
    "write-review": Operation(_write_review, irreversible=True),
    "save-address": Operation(_save_address),
    "newsletter": preference("newsletter", "account"),
}
