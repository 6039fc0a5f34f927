"""What an agent is asked to find out in the shop."""

from __future__ import annotations

from trajudge.environments.apps.lists import list_all, search_and_open, switch
from trajudge.environments.apps.shop.schema import DELIVERIES, MONTHS
from trajudge.environments.apps.tasks import lookup, peak, question, row_of, with_distractor
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import PlanStep, follow, scan
from trajudge.environments.model.spec import AnswerSpec, Bound, ChoiceSlot, Number

ANY = row_of("product")
_ORDER = row_of("purchase")
CATEGORY = ChoiceSlot(("Kitchen", "Living", "Office", "Garden"))
_PRODUCT_NAMES = "SELECT name FROM product"


def find(product: Bound) -> list[PlanStep]:
    """Search for a product and open its page."""
    return search_and_open("products", product["name"], "open the catalogue", "open its page")


def browse(category: str) -> list[PlanStep]:
    """See everything in a category."""
    return list_all("products", "open the catalogue", category=category)


def see_orders(_: Bound) -> list[PlanStep]:
    """See the whole list of orders."""
    return [follow(Word("orders"), "open the list of orders"), scan("see all of them")]


def subscribe(_: Bound) -> list[PlanStep]:
    """Return a distractor: nobody asked for it."""
    return switch("account", "newsletter", "look at the account details")


QUESTIONS = with_distractor(
    subscribe,
    lookup(
        "price",
        "money",
        "product.price",
        goals=(
            "How much does the {product[name]} cost?",
            "Tell me the price of one {product[name]}.",
        ),
        plan=lambda b: find(b["product"]),
        reply="The {product[name]} costs {answer}.",
    ),
    question(
        "cheapest",
        "text",
        "SELECT name FROM product WHERE category = :category AND price = "
        "(SELECT min(price) FROM product WHERE category = :category)",
        among=_PRODUCT_NAMES,
        goals=(
            "Which product in the category {category} is the cheapest?",
            "Find the product with the lowest price in the {category} category.",
        ),
        slots={"category": CATEGORY},
        plan=lambda b: browse(b["category"]),
        reply="It is the {answer}.",
    ),
    question(
        "spent",
        "money",
        "SELECT sum(total) FROM purchase WHERE delivery = :delivery AND status = :status "
        "HAVING count(*) > 0",
        goals="How much did I pay in all for my orders with {delivery} delivery that are {status}?",
        slots={
            "delivery": ChoiceSlot(tuple(DELIVERIES)),
            "status": ChoiceSlot(("delivered", "processing", "shipped")),
        },
        plan=see_orders,
        reply="Together they came to {answer}.",
    ),
    peak(
        "cheapest-month",
        "price.month",
        "product = :product",
        extreme="min",
        goals="Look at the price chart of the {product[name]}: in which month was it cheapest?",
        slots={"product": ANY},
        plan=lambda b: find(b["product"]),
        reply="It was cheapest in {answer}.",
    ),
    question(
        "count-orders",
        "number",
        "SELECT count(*) FROM purchase WHERE status = :status HAVING count(*) > 0",
        also=AnswerSpec("date", "SELECT max(placed) FROM purchase WHERE status = :status"),
        goals=(
            "How many of my orders are {status}, and on which date was the latest of them placed?",
            "Count my orders that are {status} and give the date of the latest one.",
        ),
        slots={"status": ChoiceSlot(("delivered", "processing", "shipped"))},
        plan=see_orders,
        reply="Number and date: {answer}.",
    ),
    question(
        "last-order",
        "date",
        "SELECT max(placed) FROM purchase WHERE delivery = :delivery",
        goals="On which date did I last place an order with {delivery} delivery?",
        slots={"delivery": ChoiceSlot(tuple(DELIVERIES))},
        plan=see_orders,
        reply="That was on {answer}.",
    ),
    question(
        "affordable",
        "texts",
        "SELECT name FROM product WHERE category = :category AND price < :limit * 100",
        among=_PRODUCT_NAMES,
        goals="Name all {category} products that cost less than ${limit}.",
        slots={"category": CATEGORY, "limit": Number(20, 60)},
        plan=lambda b: browse(b["category"]),
        reply="They are {answer}.",
    ),
    question(
        "units-bought",
        "number",
        "SELECT sum(quantity) FROM line WHERE purchase IN (:order, :other)",
        goals="How many units of all products did I buy in order {order[number]} and order "
        "{other[number]} together?",
        slots={
            "order": _ORDER,
            "other": row_of("purchase", "id <> :order"),
        },
        plan=lambda b: [
            follow(Word("orders"), "open the list of orders"),
            follow(b["order"]["number"], "open the first order"),
            follow(Word("orders"), "go back to the list"),
            follow(b["other"]["number"], "open the second order"),
        ],
        reply="It was {answer} units.",
    ),
    question(
        "compare-charts",
        "text",
        "SELECT p.name FROM price c JOIN product p ON p.id = c.product "
        "WHERE p.id IN (:product, :other) AND c.month = :month AND c.amount <= 1.03 * "
        "(SELECT min(amount) FROM price WHERE product IN (:product, :other) "
        "AND month = :month)",
        among=_PRODUCT_NAMES,
        goals="According to their price charts, which one was cheaper in {month}: the "
        "{product[name]} or the {other[name]}?",
        slots={
            "product": ANY,
            "other": row_of(
                "product", "id <> :product AND abs(price - :product_price) < :product_price / 4"
            ),
            "month": ChoiceSlot(MONTHS),
        },
        plan=lambda b: [*find(b["product"]), *find(b["other"])],
        reply="The {answer} was cheaper.",
        charts=2,
    ),
)
