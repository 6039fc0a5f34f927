"""Tasks that look for a product."""

from __future__ import annotations

from environments.tasks.model import Move, Task
from environments.tasks.moves import ADD, APPLY, choose, click, fill, search


def _way_to_lamp(*narrow: Move, lamp: str) -> tuple[Move, ...]:
    return (
        search("desk lamp"),
        choose("Sort by", "Price, low to high", "have the cheapest first"),
        *narrow,
        APPLY,
        click("link", lamp, "read the details of the cheapest one that can be bought"),
    )


def _way_to_backpack(*narrow: Move, pack: str) -> tuple[Move, ...]:
    return (
        search("backpack"),
        *narrow,
        choose("Sort by", "Rating", "have the best rated first"),
        APPLY,
        click("link", pack, "open the best rated backpack within the limit"),
        click("button", "Add to wish list", "put it on the wish list"),
    )


_IN_STOCK = click("checkbox", "In stock only", "leave out what is sold out")
_LIMIT = fill("Maximum price", "100", "keep to less than $100", role="spinbutton")

CHEAPEST_LAMP = Task(
    id="cheapest-lamp",
    goal="What does the cheapest desk lamp that is in stock cost? Tell me the price.",
    plan=_way_to_lamp(_IN_STOCK, lamp="Arc Desk Lamp"),
    wrong=_way_to_lamp(lamp="Clip Desk Lamp"),
    early=4,
    claimed=2,
    lost=4,
    circle=(
        click("link", "Arc Desk Lamp", "compare the lamps"),
        Move("go_back", why="compare again"),
    ),
    extra=(click("button", "Add to wish list", "keep it for later"),),
    extra_at=5,
    said=("$29.50", "The cheapest desk lamp in stock costs $29.50."),
    said_early="I sorted the desk lamps that are in stock by price.",
    said_claim=("$25.00", "The cheapest desk lamp in stock costs $25.00."),
    said_wrong="The cheapest desk lamp costs $24.00.",
    holds=lambda state: True,
    permits=lambda change: False,
    answer="$29.50",
    reward_answer="$29.50",
)

BEST_BACKPACK = Task(
    id="best-backpack",
    goal="Put the best rated backpack that costs less than $100 on my wish list.",
    plan=_way_to_backpack(_LIMIT, pack="Ridge Backpack"),
    wrong=_way_to_backpack(pack="Summit Backpack"),
    early=5,
    claimed=4,
    lost=4,
    circle=(
        click("link", "Ridge Backpack", "look at it closely"),
        Move("go_back", why="compare it with the others"),
    ),
    extra=(ADD, click("link", "Wish list (", "see that it is listed")),
    extra_at=6,
    said=(
        "The best rated backpack below $100 is on your wish list.",
        "Done: the Ridge Backpack is on your wish list.",
    ),
    said_early="I found the best rated backpack below $100.",
    said_wrong="The best rated backpack is on your wish list.",
    holds=lambda state: state["wishlist"] == ["ridge-backpack"],
    permits=lambda change: change == ("added", "wishlist", "ridge-backpack"),
    reward_url="/wishlist.html",
)
