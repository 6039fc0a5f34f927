"""The rows of a mail box: small talk, one mail for each thing that others wish done, bills."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from trajudge.environments.apps import draws
from trajudge.environments.apps.reading import rows_of
from trajudge.environments.model.state import Rows, token

_ROWS = rows_of(__package__ or "")
FOLDERS = ("inbox", "archive", "bin")
MONTHS = ("September", "October", "November", "December", "January", "February")
Wish = tuple[str, str, str]  # sender, topic, body


def profile(rng: np.random.Generator, index: int) -> Rows:
    """Return a box with some 40 to 73 mails and 20 to 42 bills of 14 to 19 people."""
    everybody = [f"{first} {last}" for first in _ROWS.first for last in _ROWS.last]
    people = rng.choice(everybody, 14 + index % 6, replace=False).tolist()
    return box(rng, [], people, mails=40 + 3 * index, bills=20 + 2 * index)


def box(
    rng: np.random.Generator,
    wishes: Sequence[Wish],
    people: Sequence[str],
    mails: int = 24,
    bills: int = 12,
) -> Rows:
    """Return a box with these mails among small talk by the people."""
    senders = rng.permutation(people).tolist()[:20]
    contacts = _contacts(rng, senders)
    return {
        "message": _messages(rng, wishes, senders, mails),
        "reply": [],
        "contact": contacts,
        "letter": _letters(rng, contacts),
        "bill": _bills(rng, bills),
        "filter": _filters(rng, contacts),
        "traffic": _traffic(rng),
        "account": [("me", 0)],
    }


@draws.listed
def _messages(
    rng: np.random.Generator, wishes: Sequence[Wish], senders: Sequence[str], count: int
) -> Iterator[draws.Row]:
    """Yield the wishes, in the inbox, and small talk of which no two have the same topic."""
    topics = [turn.format(subject) for subject in _ROWS.things for turn in _ROWS.turns]
    talk = [
        (draws.one(rng, senders), topic, _ROWS.bodies[at % len(_ROWS.bodies)])
        for at, topic in enumerate(rng.choice(topics, count, replace=False).tolist())
    ]
    every = [*wishes, *talk]
    for number in rng.permutation(len(every)).tolist():
        sender, topic, body = every[number]
        folder = "inbox" if number < len(wishes) else str(rng.choice(FOLDERS, p=(0.5, 0.3, 0.2)))
        day, size = draws.day(rng, -60, -1), int(rng.integers(12, 4000))
        yield (token("mail", topic, sender), sender, topic, body, day, folder, size)


@draws.listed
def _contacts(rng: np.random.Generator, names: Sequence[str]) -> Iterator[draws.Row]:
    lines = rng.choice(9000, len(names), replace=False) + 1000
    for name, line in zip(names, lines.tolist(), strict=True):
        since = draws.day(rng, -2000, -100)
        yield (token("contact", name), name, draws.one(rng, _ROWS.firms), f"555-{line}", since)


@draws.listed
def _letters(rng: np.random.Generator, contacts: Sequence[draws.Row]) -> Iterator[draws.Row]:
    for topic in _ROWS.topics:
        to, day = draws.one(rng, contacts)[0], draws.day(rng, -40, -1)
        yield (token("letter", topic), to, topic, "As agreed.", "", day)


@draws.listed
def _bills(rng: np.random.Generator, count: int) -> Iterator[draws.Row]:
    days = rng.choice(90, count, replace=False) - 20
    sums = rng.choice(4500, count, replace=False) * 10 + 1250
    firms = rng.permutation(_ROWS.firms).tolist()  # by turns, so that several have two open ones
    for at, number in enumerate(draws.numbers(rng, "B", count)):
        state = "paid" if rng.random() < 0.35 else "open"
        due, owed = draws.shifted(int(days[at])), int(sums[at])
        yield (token("bill", number), number, firms[at % len(firms)], owed, due, state)


@draws.listed
def _filters(rng: np.random.Generator, contacts: Sequence[draws.Row]) -> Iterator[draws.Row]:
    for at in rng.choice(len(contacts), 5, replace=False).tolist():
        who, day = contacts[at][0], draws.day(rng, -300, -10)
        yield (token("filter", who), who, draws.one(rng, FOLDERS[1:]), day)


@draws.listed
def _traffic(rng: np.random.Generator) -> Iterator[draws.Row]:
    """Yield what came and went by month, and the space of folders, in steps that are told apart in
    a chart; so are the months' surpluses of received over sent mail."""
    while True:
        came, went = rng.permutation(len(MONTHS)), rng.permutation(len(MONTHS))
        second, widest = np.sort(9 * came - 7 * went)[-2:]
        if widest - second > 4:
            break
    base = int(rng.integers(8, 20))
    for kind, ranks, low, step in (("received", came, 17, 9), ("sent", went, 0, 7)):
        for month, rank in zip(MONTHS, ranks.tolist(), strict=True):
            yield (token(kind, month), kind, month, base + low + step * rank)
    shares = rng.permutation((7, 12, 19, 27, 35)).tolist()
    for name, share in zip(("Mail", "Pictures", "Films", "Music", "Copies"), shares, strict=True):
        yield (token("space", name), "space", name, 10 * share)
