"""What the publishing desk stores, and the rows of its data profiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trajudge.environments.apps import draws
from trajudge.environments.apps.reading import rows_of
from trajudge.environments.model.state import Rows, token

_ROWS = rows_of(__package__ or "")


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
    names = rng.choice(_ROWS.people, count, replace=False).tolist()
    desks = ("staff", "freelance", "guest")
    return [
        (token("author", name), name, draws.one(rng, desks), _ROWS.about[at % len(_ROWS.about)])
        for at, name in enumerate(names)
    ]


def _sections(rng: np.random.Generator, count: int, authors: list[Any]) -> list[draws.Row]:
    names = rng.choice(_ROWS.sections, count, replace=False).tolist()
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
    captions = [f"{subject} {scene}" for subject in _ROWS.things for scene in _ROWS.scenes]
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
    titles = [f"{opener} {topic}" for opener in _ROWS.openers for topic in _ROWS.topics]
    for title in rng.choice(titles, count, replace=False).tolist():
        state, due = str(rng.choice(ARTICLE_STATES, p=(0.35, 0.35, 0.3))), draws.day(rng, 1, 90)
        image, placement = "", "-"
        if state == "published":
            due, placement = draws.day(rng, -90, 0), str(draws.one(rng, PLACEMENTS))
            image = draws.one(rng, images)[0]
        section, author = draws.one(rng, sections)[0], draws.one(rng, authors)[0]
        fee = 50 * int(rng.integers(120, 1900))
        tag, body = draws.one(rng, TAGS), draws.one(rng, _ROWS.bodies)
        about = (tag, state, due, fee, body, image, placement, "", "-", 0)
        yield (token("article", title), title, section, author, *about)


@draws.listed
def _reviews(
    rng: np.random.Generator, count: int, articles: list[Any], names: list[str]
) -> Iterator[draws.Row]:
    for number in range(count):
        article, reviewer = draws.one(rng, articles)[0], draws.one(rng, names)
        verdict, grade = draws.one(rng, VERDICTS), int(rng.integers(1, 11))
        remark = draws.one(rng, _ROWS.remarks)
        key = token("review", article, number)
        yield (key, article, reviewer, verdict, grade, remark)


@draws.listed
def _newsletters(rng: np.random.Generator, count: int, articles: list[Any]) -> Iterator[draws.Row]:
    for number in draws.numbers(rng, "NL", count):
        status = str(rng.choice(MAIL_STATES, p=(0.7, 0.3)))
        sends = draws.day(rng, 1, 80) if status == "planned" else draws.day(rng, -80, 0)
        subject, audience = draws.one(rng, _ROWS.subjects), str(draws.one(rng, AUDIENCES))
        sender = "-" if status == "planned" else str(draws.one(rng, SENDERS))
        about = (subject, audience, sends, status, int(rng.integers(200, 9000)))
        article = draws.one(rng, articles)[0]
        yield (token("newsletter", number), number, *about, article, sender)


@draws.listed
def _comments(rng: np.random.Generator, count: int, articles: list[Any]) -> Iterator[draws.Row]:
    for at, number in enumerate(draws.numbers(rng, "C", count)):
        article, reader = (
            draws.one(rng, articles)[0],
            f"{draws.one(rng, _ROWS.readers)}{int(rng.integers(10, 18))}",
        )
        posted, status = draws.day(rng, -60, 0), str(draws.one(rng, COMMENT_STATES))
        text = _ROWS.said[at % len(_ROWS.said)]
        yield (token("comment", number), number, article, reader, posted, text, status)


def _rules(rng: np.random.Generator) -> list[draws.Row]:
    limits = (rng.choice(150, len(_ROWS.ruled), replace=False) + 31).tolist()
    return [
        (token("rule", subject), subject, most, draws.one(rng, _ROWS.advice))
        for subject, most in zip(_ROWS.ruled, limits, strict=True)
    ]
