"""What an agent is asked to find out in the shop."""

from __future__ import annotations

from trajudge.environments.apps.lists import list_all, open_listed, search_and_open, switch
from trajudge.environments.apps.shop.schema import DELIVERIES, MONTHS
from trajudge.environments.apps.tasks import TaskFile, row_of, with_distractor
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import PlanStep, follow, scan
from trajudge.environments.model.spec import Bound, ChoiceSlot, Number

ANY = row_of("product")
_ORDER = row_of("purchase")
CATEGORY = ChoiceSlot(("Kitchen", "Living", "Office", "Garden"))


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


TASKS = TaskFile(__file__)
QUESTIONS = with_distractor(
    subscribe,
    TASKS.scenario("price", {"product": ANY}, lambda b: find(b["product"])),
    TASKS.scenario("cheapest", {"category": CATEGORY}, lambda b: browse(b["category"])),
    TASKS.scenario(
        "spent",
        {
            "delivery": ChoiceSlot(tuple(DELIVERIES)),
            "status": ChoiceSlot(("delivered", "processing", "shipped")),
        },
        see_orders,
    ),
    TASKS.scenario("cheapest-month", {"product": ANY}, lambda b: find(b["product"])),
    TASKS.scenario(
        "count-orders", {"status": ChoiceSlot(("delivered", "processing", "shipped"))}, see_orders
    ),
    TASKS.scenario("last-order", {"delivery": ChoiceSlot(tuple(DELIVERIES))}, see_orders),
    TASKS.scenario(
        "affordable",
        {"category": CATEGORY, "limit": Number(20, 60)},
        lambda b: browse(b["category"]),
    ),
    TASKS.scenario(
        "units-bought",
        {
            "order": _ORDER,
            "other": row_of("purchase", "id <> :order"),
        },
        lambda b: [
            *open_listed(
                "orders", b["order"]["number"], "open the list of orders", "open the first order"
            ),
            *open_listed(
                "orders", b["other"]["number"], "go back to the list", "open the second order"
            ),
        ],
    ),
    TASKS.scenario(
        "compare-charts",
        {
            "product": ANY,
            "other": row_of(
                "product", "id <> :product AND abs(price - :product_price) < :product_price / 4"
            ),
            "month": ChoiceSlot(MONTHS),
        },
        lambda b: [*find(b["product"]), *find(b["other"])],
    ),
)
