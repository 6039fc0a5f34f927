"""The price of a model where the user names none: of the table, or as its server lists it.

What a server told is remembered beside the cache of replies, so that a run costs the same while the
server is down.
"""

from __future__ import annotations

from pathlib import Path

from trajudge.judges.adapters.base import Adapter, ReportsPrice
from trajudge.judges.adapters.errors import Unreachable
from trajudge.judges.calls.windows import read_told, write_told
from trajudge.judges.models.prices import KnownPrice, Price, PriceSource, listed_price

FILE = "prices.json"


def find_price(model: str, adapter: Adapter, folder: Path) -> KnownPrice:
    """Return the table's price where the maker's or the cloud's own service answers; on another
    server the model has another, which that may list. ``folder`` keeps what servers told."""
    if not adapter.endpoint.startswith("http") and (listed := listed_price(model)).price:
        return listed
    if not isinstance(adapter, ReportsPrice):
        return KnownPrice()
    told, place = read_told(folder, FILE), f"{adapter.endpoint} {model}"
    try:
        price = adapter.reported_price(model)
    except Unreachable:
        kept = told.get(place)
        price = Price.model_validate(kept) if isinstance(kept, dict) else None
    else:
        content = price and price.model_dump(exclude_defaults=True)
        if place in told or price:
            write_told(folder, FILE, {**told, place: content})
    if price is None:
        return KnownPrice()
    return KnownPrice(price=price, source=PriceSource(source="server", detail=adapter.endpoint))
