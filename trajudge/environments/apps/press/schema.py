"""What the publishing desk stores, and the rows of its data profiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trajudge.environments.apps import draws
from trajudge.environments.model.schema import table
from trajudge.environments.model.state import Rows, token

TABLES = (
    table("author", id="token", name="text", desk="text", about="text"),
    table("section", id="token", name="text", editor="ref"),
    table("reach", id="token", section="ref", kind="text", label="text", amount="int"),
    table(
        "article", id="token", title="text", section="ref", author="ref", tag="text",
        state="text", due="date", fee="money", body="text", image="text", placement="text",
        teaser="text", weekday="text", pinned="flag",
    ),
    table(
        "review", id="token", article="ref", reviewer="text", verdict="text", grade="int",
        remark="text",
    ),
    table(
        "image", id="token", caption="text", credit="text", licence="text", fee="money",
    ),
    table(
        "newsletter", id="token", number="text", subject="text", audience="text", sends="date",
        status="text", recipients="int", article="ref", sender="text",
    ),
    table(
        "comment", id="token", number="text", article="ref", reader="text", posted="date",
        body="text", status="text",
    ),
    table("rule", id="token", subject="text", most="int", advice="text"),
    table("account", id="token", name="text", hints="flag"),
)  # fmt: skip

ARTICLE_STATES = ("draft", "in review", "published")
TAGS = ("long read", "interview", "opinion", "photo essay")
VERDICTS = ("accept", "revise", "reject")
PLACEMENTS = ("top of the front page", "foot of the front page", "not on the front page")
LICENCES = ("single use", "one year", "unlimited")
AUDIENCES = ("subscribers", "teachers", "partners")
SENDERS = ("the editors", "the letters desk", "the publisher")
MAIL_STATES = ("planned", "sent")
COMMENT_STATES = ("held", "shown")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("November", "December", "January", "February")
_SECTIONS = ("Culture", "Science", "Travel", "Economy", "Food", "Cities", "Books")
_OPENERS = ("The quiet return of", "A short guide to", "What became of", "In defence of",
            "Nights among", "Who pays for")  # fmt: skip
_TOPICS = (
    "night trains", "tide mills", "paper maps", "corner shops", "brass bands", "rain barrels",
    "ferry towns", "street choirs", "wild orchards", "model railways", "salt marshes",
    "pigeon lofts",
)  # fmt: skip
_THINGS = ("Ferry", "Lighthouse", "Bakery", "Orchard", "Tram", "Weaver", "Market hall", "Violin")
_SCENES = ("at dusk", "in the rain", "seen from above", "before opening", "in winter", "by hand")
_PEOPLE = (
    "Ottilie Kern", "Bram de Wit", "Farah Siddiqui", "Tomas Rask", "Isla Munro", "Pavel Horak",
    "Nadia Benali", "Callum Reid", "Rosa Marchetti", "Henrik Lund", "Amara Okoye", "Jun Takeda",
    "Edith Vogel", "Diego Salas", "Priya Raman", "Svea Holm", "Leo Barman", "Maud Castel",
)  # fmt: skip
_ABOUT = ("Files early.", "Writes <b>only</b> at night.", "Needs a fact checker & a map.")
_BODIES = (
    "Nobody had expected it, least of all those who live there.",
    "It begins, as so often, with a letter <i>to the editor</i>.",
    "On paper everything is simple; on the spot it is not.",
)
_SAID = (
    "Thank you, more of this!", "<b>Wrong</b> in the second paragraph.", "I was there in 1987.",
    "<a href='//example.invalid'>cheap watches</a>", "Who edits this?",
)  # fmt: skip
_READERS = ("mossy", "inkwell", "tern", "halfpast", "quillon", "barge7", "lowtide", "fennel")
_SUBJECTS = ("Our week in review", "Letters & replies", "Read on Sunday", "From the archive room")
_RULED = (
    "news headline", "feature teaser", "photo caption", "pull quote", "author note",
    "correction box", "mail subject", "list entry", "film review", "obituary title",
)  # fmt: skip
_ADVICE = ("Cut from the end.", "Count the blanks too.", "Ask the copy chief if in doubt.")
_REMARKS = ("Reads well.", "The <i>ending</i> is weak.", "Check the figures.")


def profile(rng: np.random.Generator, index: int) -> Rows:
    """Return a desk with some 26 to 59 articles, 20 to 42 images and 28 to 72 comments."""
    authors = _authors(rng, 8 + index % 10)
    names = [str(author[1]) for author in authors]
    sections = _sections(rng, 4 + index % 3, authors)
    images = _images(rng, 20 + 2 * index, names)
    articles = _articles(rng, 26 + 3 * index, sections=sections, authors=authors, images=images)
    return {
        "author": authors,
        "section": sections,
        "reach": _reaches(rng, sections),
        "article": articles,
        "review": _reviews(rng, 8 + index, articles, names),
        "image": images,
        "newsletter": _newsletters(rng, 16 + 2 * index, articles),
        "comment": _comments(rng, 28 + 4 * index, articles),
        "rule": _rules(rng),
        "account": [("me", names[0], 0)],
    }


def _authors(rng: np.random.Generator, count: int) -> list[draws.Row]:
    names = rng.choice(_PEOPLE, count, replace=False).tolist()
    desks = ("staff", "freelance", "guest")
    return [
        (token("author", name), name, draws.one(rng, desks), _ABOUT[at % len(_ABOUT)])
        for at, name in enumerate(names)
    ]


def _sections(rng: np.random.Generator, count: int, authors: list[Any]) -> list[draws.Row]:
    names = rng.choice(_SECTIONS, count, replace=False).tolist()
    return [(token("section", name), name, draws.one(rng, authors)[0]) for name in names]


@draws.listed
def _reaches(rng: np.random.Generator, sections: list[Any]) -> Iterator[draws.Row]:
    """Readers of the sections. Steps are wide, so that the highest columns of one chart are told
    apart; those of the days grow, so that the gaps between two sections are, too."""
    for month in MONTHS:
        base, ranks = int(rng.integers(900, 1700)), rng.permutation(len(sections)).tolist()
        for section, rank in zip(sections, ranks, strict=True):
            key = token("reach", section[0], month)
            yield (key, section[0], "month", month, base + 820 * rank)
    for section in sections:
        base = int(rng.integers(120, 330))
        for day, rank in zip(DAYS, rng.permutation(len(DAYS)).tolist(), strict=True):
            key = token("reach", section[0], day)
            yield (key, section[0], "day", day, base + int(45 * rank**1.5))


def _images(rng: np.random.Generator, count: int, names: list[str]) -> list[draws.Row]:
    captions = [f"{subject} {scene}" for subject in _THINGS for scene in _SCENES]
    credits_ = names[:4]
    return [
        (
            token("image", caption), caption, draws.one(rng, credits_), draws.one(rng, LICENCES),
            5 * int(rng.integers(300, 6000)),
        )
        for caption in rng.choice(captions, count, replace=False).tolist()
    ]  # fmt: skip


@draws.listed
def _articles(
    rng: np.random.Generator, count: int, *, sections: list[Any], authors: list[Any],
    images: list[Any],
) -> Iterator[draws.Row]:  # fmt: skip
    titles = [f"{opener} {topic}" for opener in _OPENERS for topic in _TOPICS]
    for title in rng.choice(titles, count, replace=False).tolist():
        state, due = str(rng.choice(ARTICLE_STATES, p=(0.35, 0.35, 0.3))), draws.day(rng, 1, 90)
        image, placement = "", "-"
        if state == "published":
            due, placement = draws.day(rng, -90, 0), str(draws.one(rng, PLACEMENTS))
            image = draws.one(rng, images)[0]
        section, author = draws.one(rng, sections)[0], draws.one(rng, authors)[0]
        fee = 50 * int(rng.integers(120, 1900))
        tag, body = draws.one(rng, TAGS), draws.one(rng, _BODIES)
        about = (tag, state, due, fee, body, image, placement, "", "-", 0)
        yield (token("article", title), title, section, author, *about)


@draws.listed
def _reviews(
    rng: np.random.Generator, count: int, articles: list[Any], names: list[str]
) -> Iterator[draws.Row]:
    for number in range(count):
        article, reviewer = draws.one(rng, articles)[0], draws.one(rng, names)
        verdict, grade = draws.one(rng, VERDICTS), int(rng.integers(1, 11))
        remark = draws.one(rng, _REMARKS)
        key = token("review", article, number)
        yield (key, article, reviewer, verdict, grade, remark)


@draws.listed
def _newsletters(rng: np.random.Generator, count: int, articles: list[Any]) -> Iterator[draws.Row]:
    for number in draws.numbers(rng, "NL", count):
        status = str(rng.choice(MAIL_STATES, p=(0.7, 0.3)))
        sends = draws.day(rng, 1, 80) if status == "planned" else draws.day(rng, -80, 0)
        subject, audience = draws.one(rng, _SUBJECTS), str(draws.one(rng, AUDIENCES))
        sender = "-" if status == "planned" else str(draws.one(rng, SENDERS))
        about = (subject, audience, sends, status, int(rng.integers(200, 9000)))
        article = draws.one(rng, articles)[0]
        yield (token("newsletter", number), number, *about, article, sender)


@draws.listed
def _comments(rng: np.random.Generator, count: int, articles: list[Any]) -> Iterator[draws.Row]:
    for at, number in enumerate(draws.numbers(rng, "C", count)):
        article, reader = (
            draws.one(rng, articles)[0],
            f"{draws.one(rng, _READERS)}{int(rng.integers(10, 18))}",
        )
        posted, status = draws.day(rng, -60, 0), str(draws.one(rng, COMMENT_STATES))
        text = _SAID[at % len(_SAID)]
        yield (token("comment", number), number, article, reader, posted, text, status)


def _rules(rng: np.random.Generator) -> list[draws.Row]:
    limits = (rng.choice(150, len(_RULED), replace=False) + 31).tolist()
    return [
        (token("rule", subject), subject, most, draws.one(rng, _ADVICE))
        for subject, most in zip(_RULED, limits, strict=True)
    ]
