"""Which of two opposites a text speaks of: read or unread, in stock or out of stock.

A property is a word of the goal or a row of the tables; its sign is turned by "not" before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from trajudge.environments.verify.prose.question import stem

_OPPOSITES = """
    in_stock available orderable | out_of_stock sold_out unavailable
    including included incl inclusive gross brutto | excluding excluded excl exclusive net netto
    active enabled | inactive disabled
    paid settled | unpaid outstanding
    approved accepted | rejected declined refused
    passed | failed
    income deposits | expenses withdrawals
    incoming received | outgoing sent
    resolved solved fixed | unresolved unsolved
    completed finished | unfinished incomplete
    public | private
    buying | selling
    indoor | outdoor
    billing | shipping
    outward | return
    arrival arrive arrives arriving | departure depart departs departing
    opened opens opening | closed closes closing
"""
_SIGNS: dict[str, tuple[str, int]] = {}
for _line in _OPPOSITES.strip().splitlines():
    _left, _right = (side.split() for side in _line.split("|"))
    for _word in (*_left, *_right):
        _SIGNS[_word.replace("_", " ")] = (_left[0], 1 if _word in _left else -1)
_PHRASE = re.compile(rf"\b(?:{'|'.join(sorted(_SIGNS, key=len, reverse=True))})\b", re.IGNORECASE)
_NOT = re.compile(
    r"(?:\b(?:not|never|none of (?:them|these|which)|no longer|without|non"
    r"|(?:has|have|had|with) no|lacks?)\b|n't\b)"
    r"(?: (?:yet|been|be|an?|the|any|its?|to|all|actually))*\W*$",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_ELLIPSIS = re.compile(
    r"#\W*\b(?:is|are|was|were|has|have|had|do|does|did|can|could)(n't| not)?(?: yet)?\W*$",
    re.IGNORECASE,
)

_NEGATIVE = re.compile(r"\bnot\b|n't\b", re.IGNORECASE)

_SHORTEST = 5  # letters of a word with "un" before it

Signs = Mapping[str, frozenset[int]]


@lru_cache(maxsize=1024)
def signs(text: str, words: frozenset[str] = frozenset()) -> Signs:
    """Return the signs of the properties in a text: those of the tables, and of the stems
    ``words``."""
    by_name: dict[str, set[int]] = {}
    taken: set[int] = set()
    for phrase in _PHRASE.finditer(text):
        name, sign = _SIGNS[phrase[0].casefold()]
        by_name.setdefault(name, set()).add(_turned(text, phrase.start(), sign))
        taken |= {*range(*phrase.span())}
    for word in _WORD.finditer(text):
        name, sign = _plain(word[0].casefold())
        if word.start() not in taken and ({name, f"un{name}"} & words):
            by_name.setdefault(name, set()).add(_turned(text, word.start(), sign))
    return {name: frozenset(some) for name, some in by_name.items()}


def elliptical(text: str, earlier: Iterable[str], words: frozenset[str]) -> Signs:
    """Return the signs that ``... are not`` or ``... have`` turns: those said just before it."""
    ending = _ELLIPSIS.search(text)
    if not ending:
        return {}
    for one in earlier:
        if stated := signs(one, words):
            if not ending[1] and not _NEGATIVE.search(one):
                return stated
            return {name: frozenset(-sign for sign in some) for name, some in stated.items()}
    return {}


def against(wanted: Signs, stated: Signs) -> bool:
    """Tell whether a text speaks of the opposite of what is asked."""
    return any(
        len(wanted[name]) == 1 and not wanted[name] & some
        for name, some in stated.items()
        if name in wanted
    )


def agrees(wanted: Signs, stated: Signs) -> bool:
    """Tell whether a text has the negative property that is asked for: ``who has not paid``."""
    return any(wanted.get(name) == some == frozenset({-1}) for name, some in stated.items())


def _plain(word: str) -> tuple[str, int]:
    """Return the stem of a word without "un", and the sign: ``read`` and -1 of ``unread``."""
    if word.startswith("un") and len(word) > _SHORTEST:
        return stem(word.removeprefix("un").lstrip("-")), -1
    return stem(word), 1


def _turned(text: str, place: int, sign: int) -> int:
    return -sign if _NOT.search(text[max(0, place - 40) : place]) else sign
