"""The rows of an office: those of its applications, its users, and mails about all of them."""

from __future__ import annotations

from importlib import import_module

import numpy as np

from trajudge.environments.apps import reading
from trajudge.environments.apps.composite import MemberApp, member_tables
from trajudge.environments.apps.mail.schema import Wish, box
from trajudge.environments.model.binding import money
from trajudge.environments.model.state import Rows, Value, token

_PACKAGE = __package__ or ""
_ROWS = reading.rows_of(_PACKAGE)
ROLES = ("clerk", "buyer", "manager")


def _member(name: str) -> MemberApp:
    package = f"{_PACKAGE.rpartition('.')[0]}.{name}"
    pages = import_module(f"{package}.pages")
    operations = import_module(f"{package}.operations")
    tables = reading.tables_of(package)
    return MemberApp(name, tables, pages.PAGES, operations.OPERATIONS, pages.NAVIGATION)


MEMBERS = tuple(map(_member, ("mail", "shop", "helpdesk")))
TABLES = tuple(table for member in MEMBERS for table in member_tables(member))
WORDS = {
    key: texts
    for member in reversed(MEMBERS)
    for key, texts in reading.words_of(f"{_PACKAGE.rpartition('.')[0]}.{member.name}").items()
}


def profile(rng: np.random.Generator, index: int) -> Rows:
    """Return one world: a shop, a desk, the mails that their people write, three users."""
    parent = _PACKAGE.rpartition(".")[0]
    parts: dict[str, Rows] = {
        name: import_module(f"{parent}.{name}.schema").profile(rng, index)
        for name in ("shop", "helpdesk")
    }
    people = [str(row[1]) for row in parts["helpdesk"]["person"]]
    parts["mail"] = box(rng, _wishes(rng, parts), people)
    rows = {f"{name}_{table}": some for name, part in parts.items() for table, some in part.items()}
    return {**rows, "user": _users(rng, people), "session": [("me", "")]}


def _users(rng: np.random.Generator, people: list[str]) -> list[tuple[Value, ...]]:
    """Return two users of each role."""
    users: list[tuple[Value, ...]] = []
    names = [people[int(place)] for place in rng.choice(len(people), 6, replace=False)]
    for place, name in enumerate(names):
        first, _, last = name.lower().partition(" ")
        login = f"{first[0]}.{last}{place}".replace("'", "")
        secret = f"{rng.choice(_ROWS.words)}-{rng.integers(100, 999)}"
        users.append((token("user", login), login, secret, name, ROLES[place % 3]))
    return users


def _wishes(rng: np.random.Generator, parts: dict[str, Rows]) -> list[Wish]:
    """Return mails that ask for a purchase, or tell of a ticket: each by another person."""
    shop, desk = parts["shop"], parts["helpdesk"]
    people = rng.permutation([str(row[1]) for row in desk["person"]]).tolist()
    stocked = [row for row in shop["product"] if int(row[4]) >= 3]
    open_tickets = [row for row in desk["ticket"] if row[5] != "closed"]
    wishes: list[Wish] = []
    for number in rng.choice(len(stocked), min(5, len(stocked)), replace=False):
        product = stocked[int(number)]
        body = f"Our old one broke. Could we have the {product[1]}? Best, {people[-1]}"
        wishes.append((people[-1], f"{people.pop()} has a wish", body))
    for number in rng.choice(len(open_tickets), min(5, len(open_tickets)), replace=False):
        ticket = open_tickets[int(number)]
        limit = money(int(rng.integers(20, 90)) * 100)
        body = f"It is about {ticket[1]}. I would spend up to {limit} on it. Best, {people[-1]}"
        wishes.append((people[-1], f"{people.pop()} has a question", body))
    return wishes
