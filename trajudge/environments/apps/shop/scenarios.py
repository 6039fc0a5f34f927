"""What an agent is asked to do in the shop, beside the questions."""

from __future__ import annotations

from collections.abc import Sequence

from trajudge.environments.apps.lists import open_listed
from trajudge.environments.apps.shop.questions import (
    ANY,
    CATEGORY,
    QUESTIONS,
    TASKS,
    browse,
    find,
    subscribe,
)
from trajudge.environments.apps.shop.schema import DELIVERIES
from trajudge.environments.apps.tasks import added, changed, removed, row_of, with_distractor
from trajudge.environments.model.binding import money
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import PlanStep, choose, enter, follow, press
from trajudge.environments.model.spec import (
    AllowedChange,
    Bound,
    ChoiceSlot,
    Derive,
    Number,
    Pick,
)

_IN_STOCK = row_of("product", "stock >= 3")
_UNWISHED = row_of("product", "id NOT IN (SELECT product FROM wish)")
_WISHED = row_of("product", "id IN (SELECT product FROM wish)")
_OPEN_ORDER = row_of("purchase", "status = 'processing'")


def _order(delivery: str) -> list[PlanStep]:
    shown = f"{delivery.capitalize()} ({money(DELIVERIES[delivery])})"
    return [
        choose(Word("delivery"), shown, f"choose {delivery} delivery"),
        press(Word("order_now"), "place the order"),
        press(Word("confirm"), "confirm it"),
    ]


def _buy(b: Bound) -> Sequence[PlanStep]:
    return [
        *find(b["product"]),
        enter(Word("quantity"), b["quantity"], f"set the quantity to {b['quantity']}"),
        press(Word("add_to_cart"), "put it into the cart"),
        *_order(b["delivery"]),
    ]


_CANCELLED = {"status": "cancelled"}
_IN_THE_ORDER = {"purchase": "{new_purchase}"}


def _in_the_cart(product: str) -> AllowedChange:
    """Allow what is to be bought in the cart, as long as it is not bought."""
    return AllowedChange("added", "cart", values={"product": product}, on_the_way=True)


SCENARIOS = with_distractor(
    subscribe,
    *QUESTIONS,
    TASKS.scenario(
        "buy",
        {
            "product": _IN_STOCK,
            "quantity": Number(1, 3),
            "delivery": ChoiceSlot(tuple(DELIVERIES)),
        },
        _buy,
        expect=(
            added("purchase", {}, _CANCELLED, delivery="{delivery}"),
            added("line", _IN_THE_ORDER, product="{product[id]}", quantity="{quantity}"),
        ),
        may=(_in_the_cart("{product[id]}"),),
    ),
    TASKS.scenario(
        "wish",
        {"product": _UNWISHED},
        lambda b: [*find(b["product"]), press(Word("wish"), "save it for later")],
        expect=(added("wish", product="{product[id]}"),),
    ),
    TASKS.scenario(
        "cancel",
        {"order": _OPEN_ORDER},
        lambda b: [
            *open_listed(
                "orders", b["order"]["number"], "open the list of orders", "open the order"
            ),
            press(Word("cancel_order"), "cancel it"),
            press(Word("confirm"), "confirm it"),
        ],
        expect=(changed("purchase", "{order[id]}", status="cancelled"),),
    ),
    TASKS.scenario(
        "buy-best",
        {
            "category": CATEGORY,
            "limit": Number(20, 90),
            "delivery": ChoiceSlot(tuple(DELIVERIES)),
            "best": Derive(
                "SELECT * FROM product WHERE stock > 0 AND category = :category "
                "AND price < :limit * 100 AND stars = (SELECT max(stars) FROM product "
                "WHERE stock > 0 AND category = :category AND price < :limit * 100)"
            ),
        },
        lambda b: [
            *browse(b["category"]),
            *find(b["best"]),
            press(Word("add_to_cart"), "put it into the cart"),
            *_order(b["delivery"]),
        ],
        expect=(
            added("purchase", {}, _CANCELLED, delivery="{delivery}"),
            added("line", _IN_THE_ORDER, product="{best[id]}", quantity=1),
        ),
        may=(_in_the_cart("{best[id]}"),),
    ),
    TASKS.scenario(
        "unwish",
        {"product": _WISHED},
        lambda b: [
            follow(Word("wishes"), "open the list"),
            press(Word("remove", b["product"]["name"]), "take it off"),
        ],
        expect=(removed("wish", product="{product[id]}"),),
    ),
    TASKS.scenario(
        "review",
        {
            "product": ANY,
            "stars": ChoiceSlot(tuple("12345")),
            "words": ChoiceSlot(
                ("Lovely finish", "Not for me", "Sturdy and plain", "Would buy again")
            ),
        },
        lambda b: [
            *find(b["product"]),
            choose(Word("stars"), b["stars"], f"give {b['stars']} stars"),
            enter(Word("review"), b["words"], "write the review"),
            press(Word("send_review"), "send it"),
        ],
        expect=(added("review", product="{product[id]}", stars="{stars}", body="{words}"),),
    ),
    TASKS.scenario(
        "move",
        {
            "number": Number(2, 98),
            "street": ChoiceSlot(("Fountain Court", "Abbey Close", "Quarry Hill", "Weaver Street")),
            "city": Pick(
                "SELECT DISTINCT city FROM (SELECT 'Leeds' AS city UNION SELECT 'York' "
                "UNION SELECT 'Exeter' UNION SELECT 'Durham') WHERE city NOT IN "
                "(SELECT city FROM account) ORDER BY 1"
            ),
        },
        lambda b: [
            follow(Word("account"), "open the account"),
            enter(Word("street"), f"{b['number']} {b['street']}", "fill in the street"),
            choose(Word("city"), b["city"]["city"], "choose the city"),
            press(Word("save_address"), "save the address"),
        ],
        expect=(changed("account", "me", street="{number} {street}", city="{city[city]}"),),
    ),
)
