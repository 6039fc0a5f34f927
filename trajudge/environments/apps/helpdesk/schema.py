"""What the request desk stores, and the rows of its data profiles."""

from __future__ import annotations

import numpy as np

from trajudge.environments.apps import draws
from trajudge.environments.apps.reading import rows_of
from trajudge.environments.model.state import Rows, Value, token

_ROWS = rows_of(__package__ or "")


Records = list[tuple[Value, ...]]
PRIORITIES = ("low", "normal", "high", "urgent")
CATEGORIES = ("Hardware", "Software", "Travel", "Training", "Furniture")
MONTHS = ("2025-07", "2025-08", "2025-09", "2025-10", "2025-11", "2025-12")
DAYS = ("2026-03-03", "2026-03-04", "2026-03-05", "2026-03-06")
HOURS = ("09:00", "11:00", "14:00", "16:00")
_SEATS = (4, 5, 6, 8, 10, 12, 14, 18, 22, 30)


def profile(rng: np.random.Generator, index: int) -> Rows:
    """Return a company with some 26 to 48 people, 24 to 68 tickets and 24 to 57 purchases."""
    teams, people = _staff(rng, 8 + 2 * index)
    rooms = _rooms(rng, 7 + index % 3)
    policies = _policies(rng)
    keys = [row[0] for row in people]
    return {
        "team": teams,
        "load": [row for team in teams for row in _loads(rng, team[0])],
        "person": people,
        "ticket": _tickets(rng, 24 + 4 * index, keys),
        "purchase": _purchases(rng, 24 + 3 * index, keys, policies),
        "policy": policies,
        "leave": _leaves(rng, 18 + 2 * index, keys),
        "room": rooms,
        "booking": _bookings(rng, rooms, keys),
        "account": [("me", keys[int(rng.integers(1, 6))], 0)],
    }


def _apart(rng: np.random.Generator, keys: list[Value], values: list[int]) -> list[int]:
    """Return the values shuffled so that sorting the keys does not sort them: keys stand in
    addresses."""
    while True:
        drawn: list[int] = rng.permutation(values)[: len(keys)].tolist()
        ranked = [value for _, value in sorted(zip(map(str, keys), drawn, strict=True))]
        if ranked not in (sorted(drawn), sorted(drawn, reverse=True)):
            return drawn


def _staff(rng: np.random.Generator, members: int) -> tuple[Records, Records]:
    """Return a director, five team leads, two seniors a team, and members under the seniors."""
    everybody = [f"{first} {last}" for first in _ROWS.first for last in _ROWS.last]
    names = [str(n) for n in rng.choice(everybody, 16 + members, replace=False)]
    phones = (rng.choice(900, len(names), replace=False) + 100).tolist()
    keys = [token("person", name) for name in names]
    teams: Records = []
    units = [str(name) for name in rng.choice(_ROWS.teams, 5, replace=False)]
    ids: list[Value] = [token("team", name) for name in units]
    budgets = _apart(rng, ids, [50_000 * n for n in range(90, 240)])
    teams += [
        (key, name, keys[place], budget, 0)
        for place, (key, name, budget) in enumerate(zip(ids, units, budgets, strict=True), 1)
    ]
    people: Records = []
    for place, name in enumerate(names):
        team = 0 if place == 0 else (place - 1) % 5
        if place == 0:
            title, manager = "Director", ""
        elif place < 6:
            title, manager = "Team lead", keys[0]
        elif place < 16:
            title, manager = "Senior", keys[1 + team]
        else:
            title, manager = (
                str(rng.choice(_ROWS.titles)),
                keys[6 + team + 5 * int(rng.integers(2))],
            )
        site, phone = str(rng.choice(_ROWS.sites)), f"ext. {phones[place]}"
        allowance = int(rng.integers(1, 31))
        key = keys[place]
        people.append((key, name, title, teams[team][0], manager, site, phone, allowance))
    return teams, people


def _loads(rng: np.random.Generator, team: Value) -> Records:
    """Draw different steps and offsets, so that bars are told apart, until the months' surpluses
    of received over solved tickets are told apart, too."""
    base = int(rng.integers(6, 18))
    while True:
        received, solved = rng.permutation(len(MONTHS)), rng.permutation(len(MONTHS))
        second, widest = np.sort(9 * received - 7 * solved)[-2:]
        if widest - second > 4:
            break
    counted = [
        ("received", m, base + 17 + 9 * int(r)) for m, r in zip(MONTHS, received, strict=True)
    ]
    counted += [("solved", m, base + 7 * int(r)) for m, r in zip(MONTHS, solved, strict=True)]
    shares = rng.permutation((8, 13, 19, 26, 34)).tolist()
    counted += [("spending", c, 900 * s) for c, s in zip(CATEGORIES, shares, strict=True)]
    return [(token("load", team, kind, label), team, kind, label, n) for kind, label, n in counted]


def _tickets(rng: np.random.Generator, count: int, keys: list[Value]) -> Records:
    rows: Records = []
    for place, number in enumerate(draws.numbers(rng, "T", count)):
        requester, assignee = rng.choice(len(keys) - 6, 2, replace=False) + 6
        status = str(rng.choice(("open", "waiting", "closed"), p=(0.5, 0.25, 0.25)))
        resolution = "fixed" if status == "closed" else ""
        subject, body = str(rng.choice(_ROWS.subjects)), _ROWS.bodies[place % len(_ROWS.bodies)]
        who = keys[requester], keys[assignee]
        due, priority = draws.day(rng, -45, 60), PRIORITIES[int(rng.integers(4))]
        key = token("ticket", number)
        rows.append((key, number, subject, body, priority, status, *who, due, resolution, ""))
    return rows


def _policies(rng: np.random.Generator) -> Records:
    keys: list[Value] = [token("policy", category) for category in CATEGORIES]
    ceilings = _apart(rng, keys, [4_150 * n for n in range(12, 120)])
    notices = _apart(rng, keys, list(range(3, 30)))
    text = "Above the limit a request is declined and goes to the yearly plan."
    rows = zip(keys, CATEGORIES, ceilings, notices, strict=True)
    return [(key, category, most, days, text) for key, category, most, days in rows]


def _purchases(
    rng: np.random.Generator, count: int, keys: list[Value], policies: Records
) -> Records:
    rows: Records = []
    for place, number in enumerate(draws.numbers(rng, "PR", count)):
        _, category, ceiling, *_ = policies[place % len(policies)]
        amount = int(int(ceiling) * float(rng.uniform(0.3, 1.6))) // 5 * 5
        status = str(rng.choice(("pending", "approved", "declined"), p=(0.35, 0.45, 0.2)))
        article, reason = (
            str(rng.choice(_ROWS.things[str(category)])),
            _ROWS.reasons[place % len(_ROWS.reasons)],
        )
        who, filed = keys[int(rng.integers(1, len(keys)))], draws.day(rng, -60, -2)
        key = token("purchase", number)
        rows.append((key, number, article, category, amount, who, filed, status, reason, ""))
    return rows


def _leaves(rng: np.random.Generator, count: int, keys: list[Value]) -> Records:
    rows: Records = []
    for number in draws.numbers(rng, "L", count):
        kind, who = str(rng.choice(("holiday", "parental", "study"))), keys[int(rng.integers(12))]
        start, days = draws.day(rng, 10, 120), int(rng.integers(1, 16))
        status = str(rng.choice(("pending", "approved"), p=(0.6, 0.4)))
        rows.append((token("leave", number), number, who, kind, start, days, status, ""))
    return rows


def _rooms(rng: np.random.Generator, count: int) -> Records:
    names = [str(name) for name in rng.choice(_ROWS.rooms, count, replace=False)]
    keys: list[Value] = [token("room", name) for name in names]
    seats = _apart(rng, keys, list(_SEATS))
    floors = rng.choice(("ground floor", "first floor", "second floor"), count).tolist()
    screens = (rng.random(count) < 0.8).tolist()
    rows = zip(keys, names, floors, seats, screens, strict=True)
    return [(key, name, floor, seat, int(screen)) for key, name, floor, seat, screen in rows]


def _bookings(rng: np.random.Generator, rooms: Records, keys: list[Value]) -> Records:
    rows: Records = []
    for room in rooms:
        for day, hour in ((day, hour) for day in DAYS for hour in HOURS):
            purpose, person = str(rng.choice(_ROWS.purposes)), keys[int(rng.integers(len(keys)))]
            if rng.random() < 0.45:
                key = token("booking", room[0], day, hour)
                rows.append((key, room[0], day, hour, purpose, person))
    return rows
