"""What an agent is asked to do in the shop, beside the questions."""

from __future__ import annotations

from collections.abc import Sequence

from trajudge.environments.apps.shop.questions import (
    ANY,
    CATEGORY,
    QUESTIONS,
    browse,
    find,
    subscribe,
)
from trajudge.environments.apps.shop.schema import DELIVERIES
from trajudge.environments.apps.tasks import added, changed, removed, row_of, task, with_distractor
from trajudge.environments.model.binding import money
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import PlanStep, choose, enter, follow, press
from trajudge.environments.model.spec import (
    AllowedChange,
    AnswerSpec,
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
    task(
        "buy",
        goals=(
            "Buy {quantity} of the {product[name]} with {delivery} delivery and tell me the "
            "operation code of the order.",
            "Order the {product[name]}, quantity {quantity}, {delivery} delivery. Report the code "
            "that the order page shows.",
        ),
        slots={
            "product": _IN_STOCK,
            "quantity": Number(1, 3),
            "delivery": ChoiceSlot(tuple(DELIVERIES)),
        },
        plan=_buy,
        expect=(
            added("purchase", {}, _CANCELLED, delivery="{delivery}"),
            added("line", _IN_THE_ORDER, product="{product[id]}", quantity="{quantity}"),
        ),
        code="purchase",
        may=(_in_the_cart("{product[id]}"),),
        reply="The order is placed; its code is {code}.",
    ),
    task(
        "wish",
        goals="Put the {product[name]} on my list of things saved for later.",
        slots={"product": _UNWISHED},
        plan=lambda b: [*find(b["product"]), press(Word("wish"), "save it for later")],
        expect=(added("wish", product="{product[id]}"),),
        reply="The {product[name]} is on your list.",
    ),
    task(
        "cancel",
        goals=("Cancel my order {order[number]}.", "I no longer need {order[number]}: cancel it."),
        slots={"order": _OPEN_ORDER},
        plan=lambda b: [
            follow(Word("orders"), "open the list of orders"),
            follow(b["order"]["number"], "open the order"),
            press(Word("cancel_order"), "cancel it"),
            press(Word("confirm"), "confirm it"),
        ],
        expect=(changed("purchase", "{order[id]}", status="cancelled"),),
        reply="Order {order[number]} is cancelled.",
    ),
    task(
        "buy-best",
        goals="Order one unit of the best rated {category} product that costs less than "
        "${limit}, with {delivery} delivery. Report the operation code and the total of the "
        "order.",
        slots={
            "category": CATEGORY,
            "limit": Number(20, 90),
            "delivery": ChoiceSlot(tuple(DELIVERIES)),
            "best": Derive(
                "SELECT * FROM product WHERE stock > 0 AND category = :category "
                "AND price < :limit * 100 AND stars = (SELECT max(stars) FROM product "
                "WHERE stock > 0 AND category = :category AND price < :limit * 100)"
            ),
        },
        plan=lambda b: [
            *browse(b["category"]),
            *find(b["best"]),
            press(Word("add_to_cart"), "put it into the cart"),
            *_order(b["delivery"]),
        ],
        expect=(
            added("purchase", {}, _CANCELLED, delivery="{delivery}"),
            added("line", _IN_THE_ORDER, product="{best[id]}", quantity=1),
        ),
        code="purchase",
        answers=(
            AnswerSpec(
                "money", "SELECT total FROM purchase WHERE id = :new_purchase", when="after"
            ),
        ),
        may=(_in_the_cart("{best[id]}"),),
        reply="Ordered. The code is {code} and the total {answer}.",
    ),
    task(
        "unwish",
        goals="Take the {product[name]} off my list of saved things.",
        slots={"product": _WISHED},
        plan=lambda b: [
            follow(Word("wishes"), "open the list"),
            press(Word("remove", b["product"]["name"]), "take it off"),
        ],
        expect=(removed("wish", product="{product[id]}"),),
        reply="It is off the list.",
    ),
    task(
        "review",
        goals='Review the {product[name]} with {stars} stars and the words "{words}".',
        slots={
            "product": ANY,
            "stars": ChoiceSlot(tuple("12345")),
            "words": ChoiceSlot(
                ("Lovely finish", "Not for me", "Sturdy and plain", "Would buy again")
            ),
        },
        plan=lambda b: [
            *find(b["product"]),
            choose(Word("stars"), b["stars"], f"give {b['stars']} stars"),
            enter(Word("review"), b["words"], "write the review"),
            press(Word("send_review"), "send it"),
        ],
        expect=(added("review", product="{product[id]}", stars="{stars}", body="{words}"),),
        reply="The review is online.",
    ),
    task(
        "move",
        goals="I have moved to {number} {street} in {city}: change my delivery address.",
        slots={
            "number": Number(2, 98),
            "street": ChoiceSlot(("Fountain Court", "Abbey Close", "Quarry Hill", "Weaver Street")),
            "city": Pick(
                "SELECT DISTINCT city FROM (SELECT 'Leeds' AS city UNION SELECT 'York' "
                "UNION SELECT 'Exeter' UNION SELECT 'Durham') WHERE city NOT IN "
                "(SELECT city FROM account) ORDER BY 1"
            ),
        },
        plan=lambda b: [
            follow(Word("account"), "open the account"),
            enter(Word("street"), f"{b['number']} {b['street']}", "fill in the street"),
            choose(Word("city"), b["city"]["city"], "choose the city"),
            press(Word("save_address"), "save the address"),
        ],
        expect=(changed("account", "me", street="{number} {street}", city="{city[city]}"),),
        reply="The address is changed.",
    ),
)
