"""What the almanac stores, and the rows of its data profiles."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np

from trajudge.environments.model.binding import money
from trajudge.environments.model.schema import table
from trajudge.environments.model.spec import TODAY
from trajudge.environments.model.state import Rows, Value, token

TABLES = (
    table("district", id="token", name="text", region="text", seat="text", area="int"),
    table("indicator", id="token", name="text", unit="text"),
    table("figure", id="token", district="ref", indicator="ref", year="int", amount="int"),
    table("visits", id="token", district="ref", month="text", amount="int"),
    table(
        "report", id="token", title="text", topic="text", published="date", leader="text",
        cost="money",
    ),
    table("passage", id="token", report="ref", place="int", heading="text", body="text"),
    table("term", id="token", name="text", meaning="text", indicator="ref"),
    table(
        "event", id="token", title="text", kind="text", district="ref", day="date", starts="text",
        ends="text", seats="int", fee="money",
    ),
    table("booking", id="token", event="ref", seats="int", total="money"),
    table("bookmark", id="token", report="ref", shelf="text", remark="text"),
    table("note", id="token", heading="text", label="text", body="text"),
    table(
        "export", id="token", number="text", indicator="ref", district="ref", first="int",
        last="int", format="text", asked="date", ready="date", status="text",
    ),
    table("desk", id="token", name="text", opens="text"),
    table("account", id="token", name="text", digest="flag"),
)  # fmt: skip

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
_DISTRICTS = (
    "Ashcombe", "Birkrigg", "Calder Moss", "Dunmallet", "Eskmouth", "Farlow", "Grimsdale",
    "Hartsop", "Inglewater", "Jarrow Fell", "Keldby", "Lowick", "Mardale", "Netherby", "Ormside",
    "Penruddock", "Quarry Bank", "Ravenglass", "Sandwath", "Thornholme", "Ulpha", "Vickerstown",
    "Wasdale", "Yewbarrow", "Appletree", "Brackenthwaite", "Coldbeck",
)  # fmt: skip
_SEATS = ("Market Cross", "Abbey Green", "Old Bridge", "Three Mills", "Ferry Landing", "High Weir")
_REGIONS = ("Upper Tarn", "Lower Tarn", "The Coast", "East Fells", "Lake Shore")
_INDICATORS = (
    ("Households", "households", 9000), ("Library loans", "loans", 48000),
    ("Bus journeys", "journeys", 310000), ("Births", "births", 420),
    ("Registered cars", "cars", 11000), ("Hotel nights", "nights", 26000),
    ("Farms", "farms", 240), ("Swimming passes", "passes", 3100),
    ("School places", "places", 5200), ("Allotments", "plots", 760),
)  # fmt: skip
_TERMS = ("Dwelling units", "Circulation", "Patronage", "Natality", "Motorisation", "Overnights",
          "Holdings", "Bathing licences", "Enrolment capacity", "Garden tenancies")  # fmt: skip
_FIRST = ("Adela", "Bram", "Chiara", "Dov", "Edda", "Femi", "Greta", "Hugo", "Ines", "Jonas")
_LAST = ("Archer", "Bielik", "Coyle", "Darzi", "Eklund", "Fenwick", "Gupta", "Hoxha", "Ito")
_SUBJECTS = ("Old Maps", "Parish Registers", "Dry Stone Walls", "Sheep Counting", "Tide Tables",
             "Bookbinding", "Fell Names", "Slate Quarries", "Mill Wheels", "Weather Diaries",
             "Railway Posters", "Village Halls", "Census Sheets", "Peat Roads")  # fmt: skip
_REMARKS = (
    "Look at <b>both</b> tables & ask again",
    'The "1999" break is not a typo',
    "<i>see also</i> the glossary",
    "Compare with last year's",
)
_FILLERS = (
    "The committee had asked for a short text, and it did not get one.",
    "Comparable work elsewhere in the county reached much the same view.",
    "Where figures were missing, the parish clerks were kind enough to look them up.",
    "Weather played a smaller part than many had expected.",
    "Earlier volumes of this series may be read at any branch library.",
    "Nothing in this section should be taken as advice.",
    "A number of replies arrived late and were kept for the next round.",
    "The maps that went with the first edition have been left out.",
    "Several readers of the draft disagreed, and their letters are on file.",
    "Two of the halls had no heating, which shortened some of the meetings.",
    "The wording of the questions follows the volume of ten years ago.",
    "A table of the parishes is kept with the clerk and may be copied there.",
    "What surprised the authors most was how little had changed.",
    "Names of persons have been left out wherever it could be done.",
    "The summer holidays fell into the middle of it and cost a fortnight.",
    "Bus and ferry times were taken from the printed timetables.",
    "Three schools lent their rooms, and a brewery lent its scales.",
    "The figures were rounded late, so that small sums still add up.",
    "Opinions on the new bridge were collected but are not reported here.",
    "Readers in a hurry may skip to the end without missing much.",
    "An earlier attempt had to be given up for want of a boat.",
)
_HEADINGS = ("Summary", "Background", "How it was done", "Who replied", "What was found",
             "Means and thanks", "What comes next")  # fmt: skip
LEADER, COST = "{leader}", "{cost}"  # their places in a passage
_Rng = np.random.Generator
_Rows = list[tuple[Value, ...]]


def profile(rng: np.random.Generator, index: int) -> Rows:
    """Return a portal of 12 to 25 districts, 5 to 9 indicators, 14 to 36 reports and 10 to 32
    events."""
    districts = _districts(rng, 12 + index + index // 4)
    chosen = rng.choice(len(_INDICATORS), 5 + index % 5, replace=False).tolist()
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
        "note": [_note(rng, n) for n in range(2 + index % 3)],
        "export": _exports(rng, districts, indicators, 6 + index),
        "desk": _desks(rng),
        "account": [("me", _person(rng, 1)[0], 0)],
    }


def _person(rng: _Rng, count: int) -> list[str]:
    """Names, all different."""
    numbers = rng.choice(len(_FIRST) * len(_LAST), count, replace=False).tolist()
    return [f"{_FIRST[n // len(_LAST)]} {_LAST[n % len(_LAST)]}" for n in numbers]


def _districts(rng: _Rng, count: int) -> _Rows:
    regions = rng.choice(_REGIONS, 3 if count < 18 else 4, replace=False).tolist()
    areas = rng.choice(700, count, replace=False) + 60
    return [
        (token("district", name, int(area)), name, regions[n % len(regions)],
         f"{name} {rng.choice(_SEATS)}", int(area))
        for n, (name, area) in enumerate(
            zip(rng.choice(_DISTRICTS, count, replace=False).tolist(), areas, strict=True)
        )
    ]  # fmt: skip


def _indicator(rng: _Rng, number: int) -> tuple[Value, ...]:
    name, unit, _ = _INDICATORS[number]
    return (token("indicator", name, int(rng.integers(1 << 30))), name, unit)


def _figures(rng: _Rng, districts: _Rows, chosen: list[int], indicators: _Rows) -> _Rows:
    rows: _Rows = []
    for number, indicator in zip(chosen, indicators, strict=True):
        for district in districts:
            size = _INDICATORS[number][2] * float(rng.uniform(0.4, 1.8))
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
    fillers = rng.permutation(_FILLERS).tolist()
    for place, heading in enumerate(_HEADINGS):
        sentences = fillers[3 * place : 3 * place + 3]
        if heading in buried:
            sentences.insert(int(rng.integers(1, 4)), buried[heading])
        rows.append((token("passage", key, place), key, place, heading, " ".join(sentences)))
    return rows


def _term(number: int, indicator: Value) -> tuple[Value, ...]:
    name, unit, _ = _INDICATORS[number]
    meaning = f'The number of {unit} counted in a year. Published here as "{name}".'
    return (token("term", _TERMS[number], indicator), _TERMS[number], meaning, indicator)


def _events(rng: _Rng, districts: _Rows, count: int) -> _Rows:
    everything = [(f"{subject} {kind}", kind) for subject in _SUBJECTS for kind in KINDS]
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
    return (token("bookmark", report), report, shelf, str(rng.choice(_REMARKS)))


def _note(rng: _Rng, number: int) -> tuple[Value, ...]:
    body = str(rng.choice(_REMARKS))
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
