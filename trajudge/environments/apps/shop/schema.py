"""What the shop stores, and the rows of its data profiles."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

import numpy as np

from trajudge.environments.apps import draws
from trajudge.environments.apps.reading import rows_of
from trajudge.environments.model.spec import TODAY
from trajudge.environments.model.state import Rows, Value, token

_ROWS = rows_of(__package__ or "")


MONTHS = ("March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December", "January", "February")  # fmt: skip
DELIVERIES = {"standard": 350, "express": 890, "pickup": 0}
CITIES = ("Leeds", "Bristol", "Norwich", "Exeter", "York", "Durham")


def profile(rng: np.random.Generator, index: int) -> Rows:
    """Return a shop with some 20 to 50 products and up to 20 past orders."""
    products = _products(rng, 20 + 3 * (index % 11))
    purchases, lines = _purchases(rng, products, 4 + index)
    wished = rng.choice(len(products), 3, replace=False)
    reviewed = rng.choice(len(products), 8)
    owner = str(rng.choice(_ROWS.people))
    rows: dict[str, list[draws.Row]] = {
        "product": products,
        "price": [row for product in products for row in _prices(rng, product)],
        "purchase": purchases,
        "line": lines,
        "wish": [(token("wish", str(products[i][0])), products[i][0]) for i in wished],
        "review": [_review(rng, products[i][0], n) for n, i in enumerate(reviewed)],
        "account": [("me", owner, _street(rng), str(rng.choice(CITIES)), 0)],
    }
    known = {row[0] for row in purchases}
    recent, theirs = _purchases(rng, products, 4)
    purchases += [(*row[:-1], "processing") for row in recent if row[0] not in known]
    lines += [line for line in theirs if line[1] not in known]
    return rows


def _street(rng: np.random.Generator) -> str:
    return f"{rng.integers(1, 90)} {rng.choice(_ROWS.streets)}"


@draws.listed
def _products(rng: np.random.Generator, count: int) -> Iterator[draws.Row]:
    everything = [
        (f"{material} {article}", category)
        for category, articles in _ROWS.things.items()
        for article in articles
        for material in _ROWS.materials
    ]
    for number in rng.choice(len(everything), count, replace=False):
        name, category = everything[number]
        price = int(rng.integers(6, 90)) * 100 + int(rng.choice((0, 25, 50, 90, 95)))
        stock = int(rng.choice((0, 3, 8, 20, 40), p=(0.08, 0.12, 0.2, 0.3, 0.3)))
        blurb = " ".join(rng.choice(_ROWS.blurbs, 2, replace=False))
        key = token("product", name, int(rng.integers(1 << 30)))
        yield (key, name, category, price, stock, int(rng.integers(20, 51)), blurb)


def _prices(rng: np.random.Generator, product: draws.Row) -> list[draws.Row]:
    factors = rng.permutation(np.linspace(0.7, 1.8, len(MONTHS)))
    return [
        (token("price", product[0], month), product[0], month, int(int(product[3]) * factor))
        for month, factor in zip(MONTHS, factors, strict=True)
    ]


def _purchases(
    rng: np.random.Generator, products: list[draws.Row], count: int
) -> tuple[list[draws.Row], list[draws.Row]]:
    purchases: list[draws.Row] = []
    lines: list[draws.Row] = []
    numbers = rng.choice(9000, count, replace=False) + 1000
    for number in numbers.tolist():
        key = token("purchase", number)
        placed = date.fromisoformat(TODAY) - timedelta(days=int(rng.integers(2, 200)))
        delivery = str(rng.choice(list(DELIVERIES)))
        total = DELIVERIES[delivery]
        for chosen in rng.choice(len(products), int(rng.integers(1, 4)), replace=False):
            product, quantity = products[chosen], int(rng.integers(1, 4))
            total += int(product[3]) * quantity
            line = token("line", number, str(product[0]))
            lines.append((line, key, product[0], quantity, product[3]))
        status = str(rng.choice(("delivered", "processing", "shipped"), p=(0.5, 0.3, 0.2)))
        address = f"{_street(rng)}, {rng.choice(CITIES)}"
        row = (key, f"AF-{number}", placed.isoformat(), delivery, address, total, status)
        purchases.append(row)
    return purchases, lines


def _review(rng: np.random.Generator, product: Value, number: int) -> draws.Row:
    key = token("review", product, number)
    stars, author = int(rng.integers(1, 6)), str(rng.choice(_ROWS.people))
    return (key, product, author, stars, _ROWS.praise[number % len(_ROWS.praise)])
