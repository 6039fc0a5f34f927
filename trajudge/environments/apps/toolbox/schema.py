"""What the toolbox stores, and the rows of its data profiles."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np

from trajudge.environments.apps.reading import rows_of
from trajudge.environments.model.spec import TODAY
from trajudge.environments.model.state import Rows, Value, token

_ROWS = rows_of(__package__ or "")


DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
BAGS = ("Rucksack", "Suitcase", "Bike pannier")
COUNTINGS = ("calendar days", "working days")
# How long a unit is in nanometres, heavy in nanograms, large in nanolitres. No pounds: money too.
UNITS = (
    ("millimetres", "length", 10**6), ("centimetres", "length", 10**7),
    ("metres", "length", 10**9), ("inches", "length", 25_400_000),
    ("feet", "length", 304_800_000), ("yards", "length", 914_400_000),
    ("grams", "weight", 10**9), ("kilograms", "weight", 10**12),
    ("ounces", "weight", 28_349_523_125), ("carats", "weight", 200_000_000),
    ("stones", "weight", 6_350_293_180_000), ("litres", "volume", 10**9),
    ("millilitres", "volume", 10**6), ("imperial pints", "volume", 568_261_250),
    ("imperial gallons", "volume", 4_546_090_000), ("US cups", "volume", 236_588_237),
)  # fmt: skip
_RATES = tuple(range(285, 890, 15))
_Rng = np.random.Generator
_Rows = list[tuple[Value, ...]]


def profile(rng: np.random.Generator, index: int) -> Rows:
    """Return a workshop with 8 to 16 rooms, 8 or 9 lenders, 12 to 28 paints and up to 20 saved
    jobs."""
    kinds = rng.permutation(["weight", "volume"])[: 1 + index % 2].tolist()
    units = [unit for unit in UNITS if unit[1] in ("length", *kinds)]
    rooms = _rooms(rng, min(8 + index, len(_ROWS.rooms)))
    lists = _lists(rng, 3 + index % 2)
    return {
        "unit": [(_key(rng, name), name, measures, size) for name, measures, size in units],
        "lender": _lenders(rng, 8 + index // 6),
        "paint": _paints(rng, 12 + 3 * index // 2),
        "room": rooms,
        "humidity": [row for room in rooms for row in _humidity(rng, room[0])],
        "list": lists,
        "thing": [row for one in lists for row in _things(rng, one[0], 7 + index)],
        "job": _jobs(rng, 9 + index),
        "result": _results(rng, 7 + index),
        "bench": _benches(rng),
        "account": [("me", str(rng.choice(_ROWS.people)), 0)],
    }


def _key(rng: _Rng, name: str) -> str:
    return token(name, int(rng.integers(1 << 30)))


def _some(rng: _Rng, names: tuple[str, ...], count: int) -> list[str]:
    chosen: list[str] = rng.choice(names, count, replace=False).tolist()
    return chosen


def _before(days: int) -> str:
    return (date.fromisoformat(TODAY) - timedelta(days=days)).isoformat()


def _lenders(rng: _Rng, count: int) -> _Rows:
    """No two with the same rate; few lend for long."""
    rates = rng.choice(_RATES, count, replace=False).tolist()
    terms = np.array([5, 5, 8, 8, 12, 12, 15, 20, 20, 25]) - int(rng.integers(4))
    return [
        (_key(rng, name), name, rates[n], int(rng.integers(2, 60)) * 1000, int(terms[-1 - n]))
        for n, name in enumerate(_some(rng, _ROWS.lenders, count))
    ]


def _paints(rng: _Rng, count: int) -> _Rows:
    names = tuple(f"{colour} {finish}" for colour in _ROWS.colours for finish in _ROWS.finishes)
    return [
        (_key(rng, name), name, int(rng.integers(7, 15)), int(rng.choice((1, 2, 5))),
         int(rng.integers(18, 90)) * 50 - 1, int(rng.integers(4, 25)) * 10)
        for name in _some(rng, names, count)
    ]  # fmt: skip


def _rooms(rng: _Rng, count: int) -> _Rows:
    return [
        (_key(rng, name), name, int(rng.integers(260, 900)), int(rng.integers(210, 640)),
         int(rng.integers(220, 340)), int(rng.integers(1, 9)))
        for name in _some(rng, _ROWS.rooms, count)
    ]  # fmt: skip


def _humidity(rng: _Rng, room: Value) -> _Rows:
    """Return levels that a chart tells apart: at least four points lie between any two."""
    levels = 30 + 4 * rng.choice(15, len(DAYS), replace=False)
    return [
        (token("humidity", room, day), room, day, int(level))
        for day, level in zip(DAYS, levels, strict=True)
    ]


def _lists(rng: _Rng, count: int) -> _Rows:
    days = rng.choice(150, count, replace=False).tolist()
    return [
        (_key(rng, name), name, _before(-5 - days[n]))
        for n, name in enumerate(_some(rng, _ROWS.trips, count))
    ]


def _things(rng: _Rng, held: Value, count: int) -> _Rows:
    return [
        (token("thing", held, name), held, name, str(rng.choice(BAGS)),
         int(_ROWS.things[name] * float(rng.uniform(0.6, 1.5))), int(rng.integers(1, 5)),
         str(rng.choice(_ROWS.remarks)))
        for name in _some(rng, tuple(_ROWS.things), count)
    ]  # fmt: skip


def _inputs(rng: _Rng, tool: str) -> str:
    """Draw inputs as a saved job keeps them."""
    match tool:
        case "loan":
            rate = int(rng.choice(_RATES))
            principal, years = int(rng.integers(20, 400)) * 100, int(rng.integers(2, 20))
            return f"amount={principal}; rate={rate / 100:g}; years={years}"
        case "dates":
            counting = rng.choice(COUNTINGS)
            start = _before(int(rng.integers(-40, 40)))
            return f"start={start}; days={rng.integers(5, 90)}; counting={counting}"
        case _:
            first, second = _some(rng, tuple(unit[0] for unit in UNITS[:6]), 2)
            return f"amount={rng.integers(10, 400)}; source={first}; target={second}"


def _jobs(rng: _Rng, count: int) -> _Rows:
    """Draw jobs for every tool, each made on a day of its own."""
    days = (rng.choice(300, count, replace=False) + 1).tolist()
    rows: _Rows = []
    for n, name in enumerate(_some(rng, _ROWS.jobs, count)):
        tool = ("loan", "converter", "dates")[n % 3]
        remark = str(rng.choice(_ROWS.remarks))
        rows.append((_key(rng, name), name, tool, _inputs(rng, tool), _before(days[n]), remark))
    return rows


def in_unit(amount: int, source: int, target: int) -> int:
    """Convert an amount from units of the size ``source``; half a unit counts as a whole one."""
    return (2 * amount * source + target) // (2 * target)


def _results(rng: _Rng, count: int) -> _Rows:
    """Draw conversions that were saved some time ago."""
    sizes = {name: size for name, _, size in UNITS}
    rows: _Rows = []
    for n in range(count):
        name, made = f"Old result {n + 1}", _before(int(rng.integers(20, 400)))
        inputs = _inputs(rng, "converter")
        amount, source, target = (part.partition("=")[2] for part in inputs.split("; "))
        value = in_unit(100 * int(amount), sizes[source], sizes[target])
        shown = f"{value // 100:,}.{value % 100:02} {target}"
        rows.append((_key(rng, name), name, "converter", inputs, shown, value, made))
    return rows


def _benches(rng: _Rng) -> _Rows:
    days = rng.choice(40, 3, replace=False).tolist()
    return [
        (_key(rng, name), name, _before(-3 - days[n]))
        for n, name in enumerate(("Saw bench", "Lathe", "Spray booth"))
    ]
