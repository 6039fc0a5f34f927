"""What the moderation desk stores, and the rows of its data profiles."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import numpy as np

from trajudge.environments.apps import draws
from trajudge.environments.apps.reading import rows_of
from trajudge.environments.model.spec import TODAY
from trajudge.environments.model.state import Rows, Value, token

_ROWS = rows_of(__package__ or "")


CATEGORIES = ("Spam", "Harassment", "Scam", "Off-topic", "Privacy", "Graphic content")
ACTIONS = {
    "remove": "post removed",
    "approve": "post approved",
    "warn": "member warned",
    "suspend": "member suspended",
}
SETTLED = "appeal settled"
WEEKS = tuple(f"Week {number}" for number in range(45, 53))
_DAYS = (4, 6, 9, 11, 15, 18, 22, 25, 33, 40, 55, 75, 90, 120, 180)


def profile(rng: np.random.Generator, index: int) -> Rows:
    """Return a community with some 20 to 42 members, 34 to 67 posts and 30 to 74 reports."""
    staff = [str(name) for name in rng.choice(_ROWS.staff, 4, replace=False)]
    forums = _forums(rng, staff)
    rules, clauses = _rules(rng)
    members = _members(rng, 20 + 2 * index)
    posts = _posts(rng, 34 + 3 * index, members, forums)
    decisions = _decisions(
        rng, 22 + 2 * index, posts=posts, members=members, clauses=clauses, staff=staff
    )
    appeals = _appeals(rng, [row for row in decisions if row[2] == "remove"])
    named = {row[0]: str(row[1]) for row in (*posts, *members)}
    entries: list[draws.Row] = [
        (token("entry", d[0]), d[8], d[7], ACTIONS[str(d[2])], named[d[3] or d[4]])
        for d in decisions
    ]
    entries += [
        (token("entry", a[0]), a[3], str(rng.choice(staff)), SETTLED, a[1])
        for a in appeals
        if a[5] != "pending"
    ]
    return {
        "forum": forums,
        "tally": [row for forum in forums for row in _tallies(rng, forum[0])],
        "rule": rules,
        "clause": clauses,
        "member": members,
        "post": posts,
        "report": _reports(rng, 30 + 4 * index, posts),
        "decision": decisions,
        "appeal": appeals,
        "entry": entries,
        "account": [("me", staff[0], 0)],
    }


def _forums(rng: np.random.Generator, staff: list[str]) -> list[draws.Row]:
    names = [str(name) for name in rng.choice(_ROWS.forums, 5, replace=False)]
    return [(token("forum", name), name, str(rng.choice(staff)), 0) for name in names]


def _tallies(rng: np.random.Generator, forum: Value) -> list[draws.Row]:
    """Draw different steps and offsets, so that bars are told apart and gaps between forums seldom
    tie."""
    step, base = int(rng.integers(5, 10)), int(rng.integers(4, 20))
    weekly = zip(WEEKS, rng.permutation(len(WEEKS)).tolist(), strict=True)
    yearly = zip(CATEGORIES, rng.permutation(len(CATEGORIES)).tolist(), strict=True)
    counted = [("week", label, base + step * rank) for label, rank in weekly]
    counted += [("category", label, 40 + base + 23 * rank) for label, rank in yearly]
    return [(token("tally", forum, label), forum, kind, label, n) for kind, label, n in counted]


def _rules(rng: np.random.Generator) -> tuple[list[draws.Row], list[draws.Row]]:
    rules: list[draws.Row] = []
    clauses: list[draws.Row] = []
    days = rng.permutation(_DAYS).tolist()
    for place, name in enumerate(rng.choice(_ROWS.rules, 4, replace=False), 1):
        rules.append((token("rule", name), f"{place}. {name}"))
        for part, body in enumerate(rng.choice(_ROWS.bodies, 3, replace=False), 1):
            key = token("clause", name, part)
            penalty = 0 if part == 1 else days.pop() + int(str(rules[-1][0])[:2], 16) % 97
            clauses.append((key, rules[-1][0], f"{place}.{part}", str(body), penalty))
    return rules, clauses


@draws.listed
def _members(rng: np.random.Generator, count: int) -> Iterator[draws.Row]:
    handles = [f"{first}_{second}" for first in _ROWS.first for second in _ROWS.second]
    for place, handle in enumerate(rng.choice(handles, count, replace=False)):
        key, about = token("member", handle), _ROWS.about[(place + count) % len(_ROWS.about)]
        yield (key, str(handle), draws.day_before(rng, 90, 2000), "active", "", about)


@draws.listed
def _posts(
    rng: np.random.Generator, count: int, members: list[Any], forums: list[Any]
) -> Iterator[draws.Row]:
    for place, number in enumerate(draws.numbers(rng, "P", count)):
        # The first members write two posts each: the reports will single some of them out.
        author = members[place % 12 if place < 18 else int(rng.integers(len(members)))][0]
        forum, fee = forums[int(rng.integers(len(forums)))][0], int(rng.integers(0, 40)) * 75
        title = f"{rng.choice(_ROWS.openers)} {rng.choice(_ROWS.subjects)}"
        body = _ROWS.posted[place % len(_ROWS.posted)]
        yield (token("post", number), number, author, forum, title, body, fee, "visible")


def _decisions(
    rng: np.random.Generator,
    count: int,
    *,
    posts: list[Any],
    members: list[Any],
    clauses: list[Any],
    staff: list[str],
) -> list[draws.Row]:
    """Past decisions. Everybody has a favourite kind; removals and suspensions show elsewhere."""
    favourite = dict(zip(ACTIONS, rng.permutation(staff), strict=True))
    shares, rows = (0.3, 0.2, 0.25, 0.25), list[draws.Row]()
    kinds = rng.choice(list(ACTIONS), count, p=shares).tolist()
    later = rng.permutation(np.arange(18, len(posts))).tolist()
    for number, kind in zip(draws.numbers(rng, "D", count), kinds, strict=True):
        taken = draws.day_before(rng, 5, 60)
        clause = clauses[int(rng.integers(len(clauses)))]
        by = str(favourite[kind] if rng.random() < 0.6 else rng.choice(staff))
        post, member, days = "", members[int(rng.integers(12, len(members)))][0], 0
        if kind in ("remove", "approve") and not later:
            kind = "warn"  # noqa: PLW2901 - every post was decided on
        if kind in ("remove", "approve"):
            at = later.pop()
            post, member = posts[at][0], posts[at][2]
            posts[at] = (*posts[at][:-1], "removed" if kind == "remove" else "visible")
        if kind == "suspend":
            days = clause[4] or 5
            _suspended(members, member, date.fromisoformat(taken) + timedelta(days=days))
        under = "" if kind == "approve" else clause[0]
        note = str(rng.choice(("", "Clear case.", "Discussed in the team.")))
        key = token("decision", number)
        rows.append((key, number, kind, post, member, under, days, by, taken, note))
    return rows


def _suspended(members: list[Any], key: Value, until: date) -> None:
    at = next(place for place, member in enumerate(members) if member[0] == key)
    end = until.isoformat()
    if end > max(TODAY, members[at][4]):
        members[at] = (*members[at][:3], "suspended", end, members[at][5])


@draws.listed
def _reports(rng: np.random.Generator, count: int, posts: list[Any]) -> Iterator[draws.Row]:
    """Of every category one author, active, has more open reports than anybody else."""
    notorious = dict(zip(CATEGORIES, rng.permutation(6).tolist(), strict=True))
    for place, number in enumerate(draws.numbers(rng, "R", count)):
        category = CATEGORIES[place % len(CATEGORIES)]
        author = notorious[category]  # posts 0 to 5 and 12 to 17 are by the first six members
        at = author + 12 * int(rng.integers(2)) if rng.random() < 0.45 else -1
        post = posts[at if at >= 0 else int(rng.integers(len(posts)))]
        open_ = post[7] == "visible" and rng.random() < 0.75
        note, status = str(rng.choice(_ROWS.notes)), "open" if open_ else "closed"
        key = token("report", number)
        yield (key, number, post[0], category, draws.day_before(rng, 2, 58), note, status)


@draws.listed
def _appeals(rng: np.random.Generator, decisions: list[Any]) -> Iterator[draws.Row]:
    for place, number in enumerate(draws.numbers(rng, "A", len(decisions))):
        status = "pending" if place % 3 < 2 else "upheld"
        filed, plea = draws.day_before(rng, 1, 5), str(rng.choice(_ROWS.pleas))
        reply = "" if status == "pending" else "The decision stands."
        key = token("appeal", number)
        yield (key, number, decisions[place][0], filed, plea, status, reply)
