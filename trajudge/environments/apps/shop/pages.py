"""The shop's pages."""

from __future__ import annotations

import sqlite3

from trajudge.environments.apps import details as ui
from trajudge.environments.apps import lists
from trajudge.environments.apps.shop.schema import CITIES, DELIVERIES, MONTHS
from trajudge.environments.model import page as parts
from trajudge.environments.model.binding import money
from trajudge.environments.model.page import Page, Word
from trajudge.environments.model.spec import PageContext

CATEGORIES = ("Kitchen", "Living", "Office", "Garden")
_SORTS = ("name", "price", "stars DESC, name")
_FOUND = """SELECT * FROM product WHERE instr(lower(name), lower(:words))
    AND (:category = '' OR category = :category) ORDER BY """


def _stars(tenths: int) -> str:
    return f"{tenths / 10:.1f} of 5"


def _card(product: sqlite3.Row) -> parts.ListRow:
    link = ui.link_to(product, "product")
    return parts.ListRow(
        link, (product["category"], money(product["price"]), _stars(product["stars"]))
    )


_COLUMNS = "product category price rating"


def _search(words: str, category: str) -> parts.Form:
    return lists.search_form("products", words, lists.narrowed("category", category, CATEGORIES))


def home(view: PageContext) -> Page:
    best = view.state.rows("SELECT * FROM product ORDER BY stars DESC, id LIMIT 4")
    return Page(
        "Alder & Finch",
        (
            parts.Paragraph("Useful things for the house and the garden."),
            _search("", ""),
            ui.section_of(
                "favourites", parts.ItemList(lists.headings(_COLUMNS), tuple(map(_card, best)))
            ),
        ),
    )


def products(view: PageContext) -> Page:
    words, category = view.args.get("words", ""), view.args.get("category", "")
    records = view.state.rows(_FOUND + _SORTS[view.ui.sort], words=words, category=category)
    rows = [_card(product) for product in records]
    return lists.list_page(view, "products", _COLUMNS, rows, _search(words, category))


@ui.detail("product", under="products", also="carousel")
def product(view: PageContext, record: sqlite3.Row) -> Page:
    key = record["id"]
    reviews = view.state.rows("SELECT * FROM review WHERE product = :key ORDER BY id", key=key)
    history = view.state.rows("SELECT month, amount FROM price WHERE product = :key", key=key)
    amounts = dict(tuple(row) for row in history)
    quantity = ui.control("quantity", "number", "1", required=True, hint="From 1 to 9.")
    stars = ui.pick("stars", "12345", drawn="rating")
    hidden = {"product": key}
    about = ui.facts(
        category=record["category"],
        price=money(record["price"]),
        rating=_stars(record["stars"]),
        stock=str(record["stock"]),
    )
    values = tuple(amounts[month] / 100 for month in MONTHS)
    opinions = tuple(
        parts.ListRow(row["author"], (f"{row['stars']} of 5", row["body"])) for row in reviews
    )
    columns = lists.headings("author stars review")
    review = ui.action_form(
        "send_review", "write-review", stars, parts.Field("body", Word("review"), "long"), **hidden
    )
    return Page(
        record["name"],
        (
            parts.Paragraph(record["blurb"]),
            about,
            ui.action_form("add_to_cart", "add-to-cart", quantity, **hidden),
            ui.action_form("wish", "wish", **hidden),
            parts.Chart("Price in the last months", "bars", MONTHS, values),
            parts.Tabs(
                Word("reviews"),
                (
                    ui.section_of("opinions", parts.ItemList(columns, opinions, complete=True)),
                    ui.section_of("write_review", review),
                ),
            ),
        ),
    )


def cart(view: PageContext) -> Page:
    held = view.state.rows(
        "SELECT c.id, c.quantity, p.id AS product, p.name, p.price FROM cart c "
        "JOIN product p ON p.id = c.product ORDER BY p.name"
    )
    rows = tuple(
        parts.ListRow(
            parts.Link(row["name"], "product", {"id": row["product"]}),
            (str(row["quantity"]), money(row["price"] * row["quantity"])),
            (ui.action_form(Word("remove", row["name"]), "remove-from-cart", item=row["id"]),),
        )
        for row in held
    )
    items = parts.ItemList(lists.headings("product quantity sum"), rows)
    if not held:
        return Page(Word("cart"), (items,))
    goods = sum(row["price"] * row["quantity"] for row in held)
    options = tuple(
        parts.Option(name, f"{name.capitalize()} ({money(fee)})")
        for name, fee in DELIVERIES.items()
    )
    order = ui.action_form(
        "order_now", "place-order", ui.control("delivery", "choice", "", options)
    )
    return Page(Word("cart"), (items, ui.facts(goods=money(goods)), order))


def orders(view: PageContext) -> Page:
    records = view.state.rows("SELECT * FROM purchase ORDER BY placed DESC, id")
    rows = lists.opens_rows(records, "order", "number", "placed delivery status total", total=money)
    return lists.list_page(view, "orders", "order date delivery status total", rows)


@ui.detail("purchase", under="orders")
def order(view: PageContext, record: sqlite3.Row) -> Page:
    lines = view.state.rows(
        "SELECT l.*, p.name, p.category FROM line l JOIN product p ON p.id = l.product "
        "WHERE l.purchase = :key ORDER BY p.name",
        key=record["id"],
    )
    rows = tuple(
        lists.opens(
            row["name"],
            "product",
            row["product"],
            row["category"],
            str(row["quantity"]),
            money(row["price"]),
        )
        for row in lines
    )
    about = ui.facts(
        date=record["placed"],
        status=record["status"],
        delivery=record["delivery"],
        address=record["address"],
        total=money(record["total"]),
        code=view.code("purchase", record["id"]),
    )
    columns = lists.headings("product category quantity price")
    blocks: tuple[parts.Block, ...] = (about, parts.ItemList(columns, rows))
    if record["status"] == "processing":
        cancel = ui.action_form("cancel_order", "cancel-order", order=record["id"])
        blocks = (*blocks, cancel)
    return Page(record["number"], blocks)


def wishes(view: PageContext) -> Page:
    records = view.state.rows(
        "SELECT w.id AS item, p.* FROM wish w JOIN product p ON p.id = w.product ORDER BY p.name"
    )
    rows = tuple(
        _card(row)._replace(
            forms=(ui.action_form(Word("remove", row["name"]), "unwish", item=row["item"]),)
        )
        for row in records
    )
    return lists.table_page("wishes", _COLUMNS, rows)


def account(view: PageContext) -> Page:
    mine = view.state.row("account", "me")
    cities = tuple(parts.Option(city, city) for city in CITIES)
    address = (
        ui.control("street", "text", mine["street"], required=True),
        ui.control("city", "choice", mine["city"], cities, drawn="listbox"),
    )
    news = ui.control("newsletter", "tick", "on" if mine["newsletter"] else "", drawn="switch")
    return Page(
        Word("account"),
        (
            ui.facts(name=mine["name"]),
            ui.section_of("address", ui.action_form("save_address", "save-address", *address)),
            ui.section_of("letters", ui.action_form("save", "newsletter", news)),
        ),
    )


PAGES = ui.named_pages(home, products, product, cart, orders, order, wishes, account)
_ENTRIES = "home products cart orders wishes account"
NAVIGATION = ui.menu(_ENTRIES)
