"""The shop's pages."""

from __future__ import annotations

import sqlite3

from environments.apps.shop.schema import CITIES, DELIVERIES, MONTHS
from environments.kit.listing import listing
from environments.model.binding import money
from environments.model.page import (
    Block,
    Chart,
    Facts,
    Field,
    Form,
    Items,
    Link,
    Option,
    Page,
    Row,
    Section,
    Text,
    Word,
)
from environments.model.site import missing
from environments.model.spec import View

CATEGORIES = ("Kitchen", "Living", "Office", "Garden")
_SORTS = ("name", "price", "stars DESC, name")
_FOUND = """SELECT * FROM product WHERE instr(lower(name), lower(:words))
    AND (:category = '' OR category = :category) ORDER BY """


def _stars(tenths: int) -> str:
    return f"{tenths / 10:.1f} of 5"


def _card(product: sqlite3.Row) -> Row:
    link = Link(product["name"], "product", {"id": product["id"]})
    return Row(link, (product["category"], money(product["price"]), _stars(product["stars"])))


_COLUMNS = (Word("product"), Word("category"), Word("price"), Word("rating"))


def _search(words: str, category: str) -> Form:
    options = (Option("", Word("any")), *(Option(name, name) for name in CATEGORIES))
    fields = (
        Field("words", Word("words"), "search", words),
        Field("category", Word("category"), "choice", category, options),
    )
    return Form(Word("search"), fields, page="products")


def home(view: View) -> Page:
    best = view.world.rows("SELECT * FROM product ORDER BY stars DESC, id LIMIT 4")
    return Page(
        "Alder & Finch",
        (
            Text("Useful things for the house and the garden."),
            _search("", ""),
            Section(Word("favourites"), (Items(_COLUMNS, tuple(map(_card, best))),)),
        ),
    )


def products(view: View) -> Page:
    words, category = view.args.get("words", ""), view.args.get("category", "")
    found = view.world.rows(_FOUND + _SORTS[view.ui.sort], words=words, category=category)
    rows = [_card(product) for product in found]
    listed = listing(view, "products", _COLUMNS, rows)
    return Page(Word("products"), (_search(words, category), *listed))


def product(view: View) -> Page:
    found = view.world.get("product", view.args.get("id", ""))
    if found is None:
        return missing()
    key = found["id"]
    reviews = view.world.rows("SELECT * FROM review WHERE product = :key ORDER BY id", key=key)
    history = view.world.rows("SELECT month, amount FROM price WHERE product = :key", key=key)
    amounts = dict(tuple(row) for row in history)
    quantity = Field("quantity", Word("quantity"), "number", "1", required=True)
    stars = Field("stars", Word("stars"), "choice", "", tuple(Option(n, n) for n in "12345"))
    hidden = {"product": key}
    about = (
        (Word("category"), found["category"]),
        (Word("price"), money(found["price"])),
        (Word("rating"), _stars(found["stars"])),
        (Word("stock"), str(found["stock"])),
    )
    values = tuple(amounts[month] / 100 for month in MONTHS)
    said = tuple(Row(row["author"], (f"{row['stars']} of 5", row["body"])) for row in reviews)
    columns = (Word("author"), Word("stars"), Word("review"))
    review = Form(
        Word("send_review"),
        (stars, Field("body", Word("review"), "long")),
        operation="write-review",
        hidden=hidden,
    )
    return Page(
        found["name"],
        (
            Text(found["blurb"]),
            Facts(about),
            Form(Word("add_to_cart"), (quantity,), operation="add-to-cart", hidden=hidden),
            Form(Word("wish"), operation="wish", hidden=hidden),
            Chart("Price in the last months", "bars", MONTHS, values),
            Section(Word("reviews"), (Items(columns, said), review)),
        ),
    )


def cart(view: View) -> Page:
    held = view.world.rows(
        "SELECT c.id, c.quantity, p.id AS product, p.name, p.price FROM cart c "
        "JOIN product p ON p.id = c.product ORDER BY p.name"
    )
    rows = tuple(
        Row(
            Link(row["name"], "product", {"id": row["product"]}),
            (str(row["quantity"]), money(row["price"] * row["quantity"])),
            (
                Form(
                    Word("remove", row["name"]),
                    operation="remove-from-cart",
                    hidden={"item": row["id"]},
                ),
            ),
        )
        for row in held
    )
    items = Items((Word("product"), Word("quantity"), Word("sum")), rows)
    if not held:
        return Page(Word("cart"), (items,))
    goods = sum(row["price"] * row["quantity"] for row in held)
    options = tuple(
        Option(name, f"{name.capitalize()} ({money(fee)})") for name, fee in DELIVERIES.items()
    )
    order = Form(
        Word("order_now"),
        (Field("delivery", Word("delivery"), "choice", "", options),),
        operation="place-order",
    )
    return Page(Word("cart"), (items, Facts(((Word("goods"), money(goods)),)), order))


def orders(view: View) -> Page:
    found = view.world.rows("SELECT * FROM purchase ORDER BY placed DESC, id")
    rows = [
        Row(
            Link(row["number"], "order", {"id": row["id"]}),
            (row["placed"], row["delivery"], row["status"], money(row["total"])),
        )
        for row in found
    ]
    columns = tuple(map(Word, ("order", "date", "delivery", "status", "total")))
    return Page(Word("orders"), listing(view, "orders", columns, rows))


def order(view: View) -> Page:
    found = view.world.get("purchase", view.args.get("id", ""))
    if found is None:
        return missing()
    lines = view.world.rows(
        "SELECT l.*, p.name, p.category FROM line l JOIN product p ON p.id = l.product "
        "WHERE l.purchase = :key ORDER BY p.name",
        key=found["id"],
    )
    rows = tuple(
        Row(
            Link(row["name"], "product", {"id": row["product"]}),
            (row["category"], str(row["quantity"]), money(row["price"])),
        )
        for row in lines
    )
    about = (
        (Word("date"), found["placed"]),
        (Word("status"), found["status"]),
        (Word("delivery"), found["delivery"]),
        (Word("address"), found["address"]),
        (Word("total"), money(found["total"])),
        (Word("code"), view.code("purchase", found["id"])),
    )
    columns = (Word("product"), Word("category"), Word("quantity"), Word("price"))
    blocks: tuple[Block, ...] = (Facts(about), Items(columns, rows))
    if found["status"] == "processing":
        cancel = Form(Word("cancel_order"), operation="cancel-order", hidden={"order": found["id"]})
        blocks = (*blocks, cancel)
    return Page(found["number"], blocks)


def wishes(view: View) -> Page:
    found = view.world.rows(
        "SELECT w.id AS item, p.* FROM wish w JOIN product p ON p.id = w.product ORDER BY p.name"
    )
    rows = tuple(
        _card(row)._replace(
            forms=(
                Form(Word("remove", row["name"]), operation="unwish", hidden={"item": row["item"]}),
            )
        )
        for row in found
    )
    return Page(Word("wishes"), (Items(_COLUMNS, rows),))


def account(view: View) -> Page:
    mine = view.world.row("account", "me")
    cities = tuple(Option(city, city) for city in CITIES)
    address = (
        Field("street", Word("street"), "text", mine["street"], required=True),
        Field("city", Word("city"), "choice", mine["city"], cities),
    )
    news = Field("newsletter", Word("newsletter"), "tick", "on" if mine["newsletter"] else "")
    return Page(
        Word("account"),
        (
            Facts(((Word("name"), mine["name"]),)),
            Section(
                Word("address"), (Form(Word("save_address"), address, operation="save-address"),)
            ),
            Section(Word("letters"), (Form(Word("save"), (news,), operation="newsletter"),)),
        ),
    )


PAGES = {
    "home": home,
    "products": products,
    "product": product,
    "cart": cart,
    "orders": orders,
    "order": order,
    "wishes": wishes,
    "account": account,
}
NAVIGATION = tuple(
    Link(Word(name), name) for name in ("home", "products", "cart", "orders", "wishes", "account")
)
WORDS = {
    "products": ("Products", "Catalogue", "All articles"),
    "product": ("Product", "Article", "Item"),
    "category": ("Category", "Department", "Range"),
    "price": ("Price", "Unit price", "Cost"),
    "rating": ("Rating", "Customer rating", "Average score"),
    "stock": ("In stock", "Available", "Units left"),
    "words": ("Search words", "What are you looking for", "Keywords"),
    "any": ("Any", "All", "No preference"),
    "favourites": ("Customers' favourites", "Best rated", "Most loved"),
    "cart": ("Cart", "Basket", "Shopping bag"),
    "orders": ("Orders", "Purchases", "Order history"),
    "order": ("Order", "Order number", "Purchase"),
    "wishes": ("Wish list", "Saved for later", "Favourites"),
    "account": ("Account", "My details", "Profile"),
    "quantity": ("Quantity", "How many", "Number of units"),
    "add_to_cart": ("Add to cart", "Put into basket", "Buy this"),
    "wish": ("Save for later", "Remember this", "Add to my list"),
    "reviews": ("Reviews", "What customers say", "Opinions"),
    "review": ("Your words", "Comment", "Text"),
    "author": ("Customer", "Written by", "Reviewer"),
    "stars": ("Stars", "Your rating", "Score"),
    "send_review": ("Send review", "Publish review", "Post opinion"),
    "remove": ("Remove", "Delete", "Take out"),
    "sum": ("Sum", "Amount", "Subtotal"),
    "goods": ("Goods", "Value of goods", "Articles together"),
    "delivery": ("Delivery", "Shipping", "Way of delivery"),
    "order_now": ("Order now", "Buy now", "Place order"),
    "date": ("Date", "Placed on", "Day"),
    "status": ("Status", "State", "Progress"),
    "total": ("Total", "Grand total", "Paid in all"),
    "address": ("Address", "Delivery address", "Where we deliver"),
    "cancel_order": ("Cancel this order", "Call off the order", "Revoke order"),
    "name": ("Name", "Full name", "Account holder"),
    "street": ("Street", "Street and number", "Address line"),
    "city": ("City", "Town", "Place"),
    "save_address": ("Save address", "Update address", "Keep this address"),
    "letters": ("Letters from us", "News", "Mailing"),
    "newsletter": ("Send me the newsletter", "I would like news by mail", "Monthly letter"),
    "save": ("Save", "Apply", "Store choice"),
}
