"""The rows of an office: those of its applications, its users, and mails about all of them."""

from __future__ import annotations

from importlib import import_module

import numpy as np

from trajudge.environments.apps import draws, reading
from trajudge.environments.apps.composite import MemberApp, member_tables
from trajudge.environments.apps.mail.schema import Wish, box
from trajudge.environments.model.binding import money
from trajudge.environments.model.state import Rows, Value, token

_PACKAGE = __package__ or ""
_PARENT = _PACKAGE.rpartition(".")[0]
_ROWS = reading.rows_of(_PACKAGE)
_NAMES = ("mail", "shop", "helpdesk", "press", "moderation", "console", "almanac")
ROLES = ("clerk", "buyer", "manager", "publisher", "moderator", "technician")
MAILS = 8  # of each kind
WORDS: dict[str, tuple[str, ...]] = {}


def _member(name: str) -> MemberApp:
    """Return a member, and enter its words among those of the earlier ones."""
    package = f"{_PARENT}.{name}"
    pages = import_module(f"{package}.pages")
    operations = import_module(f"{package}.operations")
    tables, words = reading.tables_of(package), reading.words_of(package)
    own = {
        key: f"{name}_{key}"
        for key, texts in words.items()
        if key != "words" and WORDS.get(key, texts) != texts  # a search is the same everywhere
    }
    for key, texts in words.items():
        WORDS.setdefault(own.get(key, key), texts)
    return MemberApp(name, tables, pages.PAGES, operations.OPERATIONS, pages.NAVIGATION, own)


MEMBERS = tuple(map(_member, _NAMES))
TABLES = tuple(table for member in MEMBERS for table in member_tables(member))


def profile(rng: np.random.Generator, index: int) -> Rows:
    """Return one world: its applications, the mails that the desk's people write about what these
    hold, and two users of each role."""
    parts: dict[str, Rows] = {
        name: import_module(f"{_PARENT}.{name}.schema").profile(rng, index) for name in _NAMES[1:]
    }
    people = [str(row[1]) for row in parts["helpdesk"]["person"]]
    parts["mail"] = box(rng, _wishes(rng, parts, people), people)
    rows = {f"{name}_{table}": some for name, part in parts.items() for table, some in part.items()}
    return {**rows, "user": _users(rng, people), "session": [("me", "")]}


def _users(rng: np.random.Generator, people: list[str]) -> list[tuple[Value, ...]]:
    """Return two users of each role."""
    users: list[tuple[Value, ...]] = []
    names = rng.choice(people, 2 * len(ROLES), replace=False).tolist()
    for place, name in enumerate(names):
        first, _, last = name.lower().partition(" ")
        login = f"{first[0]}.{last}{place}".replace("'", "")
        secret = f"{rng.choice(_ROWS.words)}-{rng.integers(100, 999)}"
        users.append((token("user", login), login, secret, name, ROLES[place % len(ROLES)]))
    return users


def _wishes(rng: np.random.Generator, parts: dict[str, Rows], people: list[str]) -> list[Wish]:
    """Return mails about things of the applications: those of one kind by as many people."""
    reports = {row[2]: row[1] for row in parts["moderation"]["report"] if row[6] == "open"}
    kinds = (
        ("wish", [row[1] for row in parts["shop"]["product"] if int(row[4]) >= 3]),
        ("question", [row[1] for row in parts["helpdesk"]["ticket"] if row[5] != "closed"]),
        ("delay", [row[1] for row in parts["press"]["article"] if row[5] != "published"]),
        ("complaint", [row[1] for row in parts["press"]["comment"]]),
        ("worry", list(reports.values())),  # each about another post
        ("night alarm", [row[1] for row in parts["console"]["alert"] if row[5] != "resolved"]),
        ("plan", [row[1] for row in parts["almanac"]["event"]]),
    )
    wishes: list[Wish] = []
    for kind, names in kinds:
        count = min(MAILS, len(names))
        writers = rng.choice(people, count, replace=False).tolist()
        for writer, at in zip(writers, rng.choice(len(names), count, replace=False), strict=True):
            limit, day = money(int(rng.integers(20, 90)) * 100), draws.day(rng, 20, 90)
            body = _ROWS.mails[kind].format(thing=names[int(at)], limit=limit, day=day)
            wishes.append((writer, f"{writer} has a {kind}", f"{body} Best, {writer}"))
    return wishes
