"""What a structured answer offers: every value in it; and the operation codes in a text.

A message that is one JSON object with an ``answer`` (a declared answer is recorded as one) is
compared value by value; only a value that is none of its kind as a whole is read as prose.
``clear`` codes have a code's shape, ``doubtful`` ones may be words. All forms are normal forms of
``rules.values``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from trajudge.environments.verify.finders import KINDS, Family, Find, form_of
from trajudge.rules.limits import InvalidValue
from trajudge.rules.values import normalise
from trajudge.rules.values.texts import strip_invisible

MESSAGE_CHARS = 10_000  # beyond it a message is no answer
_FENCE = re.compile(r"```(?:json)?\s*(\{.*\})\s*```", re.DOTALL)
_TOKEN = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*")

Piece = str | int | float


class Candidates(NamedTuple):
    """Normal forms, in the order in which the message mentions them, each once."""

    clear: tuple[str, ...]
    doubtful: tuple[str, ...] = ()


class NotAnAnswer(Exception):
    """The message cannot be an answer; the text says why."""


def pieces(message: str) -> list[Piece] | None:
    """Return all values of a JSON answer object; None for prose.

    Raises NotAnAnswer for a message that is too long or cannot be normalised.
    """
    if len(message) > MESSAGE_CHARS:
        raise NotAnAnswer(f"a message of {len(message):,} characters")
    fenced = _FENCE.fullmatch(message.strip())
    answer = _answer_object(fenced[1] if fenced else message)
    try:
        strip_invisible(message)
    except InvalidValue as error:
        raise NotAnAnswer(str(error)) from None
    return answer


def _answer_object(text: str) -> list[Piece] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return list(leaves(parsed)) if isinstance(parsed, dict) and "answer" in parsed else None


def leaves(value: object) -> Iterator[Piece]:
    """Yield everything that a structure says: nothing can be offered beside the answer unseen."""
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack.extend(reversed(value.values()))
        elif isinstance(value, list):
            stack.extend(reversed(value))
        elif isinstance(value, bool):
            yield "yes" if value else "no"
        elif isinstance(value, str | int | float):
            yield value


def whole(family: Family, piece: Piece, find: Find) -> str | None:
    """Return the form of a value that is nothing else; None for one that must be read as prose."""
    if family == "names":
        text = form_of("names", str(piece))
        named = find(text)
        return text if not named or named[0].form == text else None
    try:
        return str(normalise(KINDS[family], piece))
    except InvalidValue:
        return None


def codes(text: str, like: str) -> Candidates:
    """Return tokens as long as a code, in capitals and digits; those without a digit may be words.
    Hyphens between groups are left out. The right code counts in small letters too."""
    clear: dict[str, None] = {}
    doubtful: dict[str, None] = {}
    wanted = like.replace("-", "").upper()
    for match in _TOKEN.finditer(text):
        token = match[0].replace("-", "")
        if token.upper() == wanted:
            clear[token.upper()] = None
        elif len(token) == len(wanted) and token == token.upper():
            sure = not token.isalpha() and not token.isdigit()
            (clear if sure else doubtful)[token] = None
    if not clear:
        return Candidates(tuple(doubtful))
    return Candidates(tuple(clear), tuple(form for form in doubtful if form not in clear))
