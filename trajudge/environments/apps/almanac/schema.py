"""What the almanac stores, and the rows of its data profiles."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np

from trajudge.environments.apps.reading import rows_of
from trajudge.environments.model.binding import money
from trajudge.environments.model.spec import TODAY
from trajudge.environments.model.state import Rows, Value, token

_ROWS = rows_of(__package__ or "")


YEARS = tuple(range(2018, 2026))
MONTHS = ("March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December", "January", "February")  # fmt: skip
SHELVES = ("To read", "For the thesis", "Sources", "Finished")
LABELS = ("Idea", "Question", "Result", "Reminder")
FORMATS = {"spreadsheet": 2, "typeset tables": 5, "printed volume": 9}  # days it takes to make
DESKS = ("Lending desk", "Map room", "Archive", "Newspaper room")
KINDS = ("Lecture", "Guided tour", "Workshop", "Reading")
STUDIES = {
    "Transport": ("Buses after Dark", "Getting to Work", "Cycling to School"),
    "Housing": ("Empty Upper Floors", "Renting under Thirty", "Building on the Edge"),
    "Culture": ("Who Borrows Books", "Choirs and Bands", "Museums on Mondays"),
    "Health": ("Waiting for the Doctor", "Sleep and Shift Work", "Walking for Pleasure"),
}
LEADER, COST = "{leader}", "{cost}"  # their places in a passage
_Rng = np.random.Generator
_Rows = list[tuple[Value, ...]]


def profile(rng: np.random.Generator, index: int) -> Rows:
    """Return a portal of 12 to 25 districts, 5 to 9 indicators, 14 to 36 reports and 10 to 32
    events."""
    districts = _districts(rng, 12 + index + index // 4)
    chosen = rng.choice(len(_ROWS.indicators), 5 + index % 5, replace=False).tolist()
    indicators = [_indicator(rng, n) for n in chosen]
    reports, passages = _reports(rng, districts, 14 + 2 * index)
    kept = rng.choice(len(reports), 4, replace=False).tolist()
    return {
        "district": districts,
        "indicator": indicators,
        "figure": _figures(rng, districts, chosen, indicators),
        "visits": [row for n, d in enumerate(districts) for row in _visits(rng, d[0], n % 2)],
        "report": reports,
        "passage": passages,
        "term": [_term(n, i[0]) for n, i in zip(chosen, indicators, strict=True)],
        "event": _events(rng, districts, 10 + 2 * index),
        "bookmark": [_bookmark(rng, reports[n][0]) for n in kept],
        "note": [_note(rng, n) for n in range(6 + index % 3)],
        "export": _exports(rng, districts, indicators, 6 + index),
        "desk": _desks(rng),
        "account": [("me", _person(rng, 1)[0], 0)],
    }


def _person(rng: _Rng, count: int) -> list[str]:
    """Names, all different."""
    numbers = rng.choice(len(_ROWS.first) * len(_ROWS.last), count, replace=False).tolist()
    return [
        f"{_ROWS.first[n // len(_ROWS.last)]} {_ROWS.last[n % len(_ROWS.last)]}" for n in numbers
    ]


def _districts(rng: _Rng, count: int) -> _Rows:
    regions = rng.choice(_ROWS.regions, 3 if count < 18 else 4, replace=False).tolist()
    areas = rng.choice(700, count, replace=False) + 60
    return [
        (token("district", name, int(area)), name, regions[n % len(regions)],
         f"{name} {rng.choice(_ROWS.seats)}", int(area))
        for n, (name, area) in enumerate(
            zip(rng.choice(_ROWS.districts, count, replace=False).tolist(), areas, strict=True)
        )
    ]  # fmt: skip


def _indicator(rng: _Rng, number: int) -> tuple[Value, ...]:
    name, unit, _ = _ROWS.indicators[number]
    return (token("indicator", name, int(rng.integers(1 << 30))), name, unit)


def _figures(rng: _Rng, districts: _Rows, chosen: list[int], indicators: _Rows) -> _Rows:
    rows: _Rows = []
    for number, indicator in zip(chosen, indicators, strict=True):
        for district in districts:
            size = _ROWS.indicators[number][2] * float(rng.uniform(0.4, 1.8))
            growth = float(rng.uniform(0.97, 1.09))
            for step, year in enumerate(YEARS):
                amount = int(size * growth**step * float(rng.uniform(0.94, 1.06)))
                key = token("figure", district[0], indicator[0], year)
                rows.append((key, district[0], indicator[0], year, amount))
    return rows


def _visits(rng: _Rng, district: Value, half: int) -> _Rows:
    """Return levels far enough apart to be read from a chart; districts of the other half lie
    between."""
    levels = (rng.permutation(len(MONTHS)) + 1) * 240 + 120 * half
    return [
        (token("visits", district, month), district, month, int(level))
        for month, level in zip(MONTHS, levels, strict=True)
    ]


def _reports(rng: _Rng, districts: _Rows, count: int) -> tuple[_Rows, _Rows]:
    everything = [
        (f"{study} in {district[1]}", topic)
        for topic, studies in STUDIES.items()
        for study in studies
        for district in districts
    ]
    chosen = rng.choice(len(everything), count, replace=False).tolist()
    reports: _Rows = []
    passages: _Rows = []
    for number, leader in zip(chosen, _person(rng, count), strict=True):
        title, topic = everything[number]
        key = token("report", title, leader)
        published = date.fromisoformat(TODAY) - timedelta(days=int(rng.integers(30, 1400)))
        cost = int(rng.integers(4000, 60000)) * 10
        reports.append((key, title, topic, published.isoformat(), leader, cost))
        passages += _passages(rng, reports[-1])
    return reports, passages


def _passages(rng: _Rng, report: tuple[Value, ...]) -> _Rows:
    """Texts of a report; its leader and its cost are filled in from its row when it is shown."""
    key, *_, cost = report
    printing = int(int(cost) * float(rng.uniform(0.1, 0.4)))
    buried = {
        "How it was done": f"In the field the work was led by {LEADER}, who also drew the sample.",
        "Means and thanks": f"Printing took {money(printing)} of the money. The whole study, "
        f"printing included, cost {COST}.",
    }
    rows: _Rows = []
    fillers = rng.permutation(_ROWS.fillers).tolist()
    for place, heading in enumerate(_ROWS.headings):
        sentences = fillers[3 * place : 3 * place + 3]
        if heading in buried:
            sentences.insert(int(rng.integers(1, 4)), buried[heading])
        rows.append((token("passage", key, place), key, place, heading, " ".join(sentences)))
    return rows


def _term(number: int, indicator: Value) -> tuple[Value, ...]:
    name, unit, _ = _ROWS.indicators[number]
    meaning = f'The number of {unit} counted in a year. Published here as "{name}".'
    return (token("term", _ROWS.terms[number], indicator), _ROWS.terms[number], meaning, indicator)


def _events(rng: _Rng, districts: _Rows, count: int) -> _Rows:
    everything = [(f"{subject} {kind}", kind) for subject in _ROWS.subjects for kind in KINDS]
    days = rng.choice(120, count, replace=False) + 1
    rows: _Rows = []
    for n, number in enumerate(rng.choice(len(everything), count, replace=False).tolist()):
        title, kind = everything[number]
        day = (date.fromisoformat(TODAY) + timedelta(days=int(days[n]))).isoformat()
        start = int(rng.integers(36, 70)) * 15
        end = start + int(rng.integers(3, 16)) * 15 + int(rng.choice((0, 5, 10)))
        district = districts[int(rng.integers(len(districts)))][0]
        seats, fee = int(rng.integers(6, 60)), int(rng.integers(4, 40)) * 50
        key = token("event", title, day)
        rows.append((key, title, kind, district, day, _clock(start), _clock(end), seats, fee))
    return rows


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _bookmark(rng: _Rng, report: Value) -> tuple[Value, ...]:
    shelf = str(rng.choice(SHELVES))
    return (token("bookmark", report), report, shelf, str(rng.choice(_ROWS.remarks)))


def _note(rng: _Rng, number: int) -> tuple[Value, ...]:
    body = str(rng.choice(_ROWS.remarks))
    return (token("note", number, body), f"Reading {number + 1}", str(rng.choice(LABELS)), body)


def _desks(rng: _Rng) -> _Rows:
    hours = rng.choice(12, len(DESKS), replace=False) * 15 + 480
    return [
        (token("desk", name), name, _clock(int(hour)))
        for name, hour in zip(DESKS, hours, strict=True)
    ]


def _exports(rng: _Rng, districts: _Rows, indicators: _Rows, count: int) -> _Rows:
    """Past requests, on days of their own; every format is among those that are still open."""
    days = (rng.choice(60, count, replace=False) + 3).tolist()
    rows: _Rows = []
    for n, number in enumerate((rng.choice(900, count, replace=False) + 100).tolist()):
        form = list(FORMATS)[n % len(FORMATS)]
        requested = date.fromisoformat(TODAY) - timedelta(days=days[n])
        ready = requested + timedelta(days=FORMATS[form])
        first, last = sorted(rng.choice(YEARS, 2, replace=False).tolist())
        state = "requested" if n < 2 * len(FORMATS) else str(rng.choice(("sent", "withdrawn")))
        indicator = indicators[int(rng.integers(len(indicators)))][0]
        district = districts[int(rng.integers(len(districts)))][0]
        rows.append((token("export", number), f"EX-{number}", indicator, district, first, last,
                     form, requested.isoformat(), ready.isoformat(), state))  # fmt: skip
    return rows
