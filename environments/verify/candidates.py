"""What a last message offers as an answer: every value of the asked kind that it mentions.

A message is one JSON object with an ``answer``, or prose. ``clear`` candidates state a value of the
kind; ``doubtful`` ones might (a bare number beside amounts of money, a day without its year, a
number in words beside digits): a reader may or may not take them for an answer. All forms are
normal forms of ``rules.values``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from trajudge.environments.verify import readers
from trajudge.environments.verify.readers import Candidate, Piece
from trajudge.rules.errors import InvalidValue
from trajudge.rules.values.texts.text import strip_invisible

MESSAGE_CHARS = 10_000  # beyond it a message is no answer
_FENCE = re.compile(r"```(?:json)?\s*(\{.*\})\s*```", re.DOTALL)

Family = Literal["money", "number", "date", "duration", "names", "code"]


class Candidates(NamedTuple):
    """Normal forms, in the order in which the message mentions them, each once."""

    clear: tuple[str, ...]
    doubtful: tuple[str, ...] = ()


class NotAnAnswer(Exception):
    """The message cannot be an answer; the text says why."""


def pieces(message: str) -> list[Piece]:
    """Return the parts of a message to be searched: all values of a JSON answer object, or the
    prose.

    Raises Unreadable for one that is too long or cannot be normalised.
    """
    if len(message) > MESSAGE_CHARS:
        raise NotAnAnswer(f"a message of {len(message):,} characters")
    fenced = _FENCE.fullmatch(message.strip())
    found = _answer_object(fenced[1] if fenced else message)
    try:
        return [
            strip_invisible(piece) if isinstance(piece, str) else piece
            for piece in ([message] if found is None else found)
        ]
    except InvalidValue as error:
        raise NotAnAnswer(str(error)) from None


def _answer_object(text: str) -> list[Piece] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return list(_leaves(parsed)) if isinstance(parsed, dict) and "answer" in parsed else None


def _leaves(value: object) -> Iterator[Piece]:
    """Yield everything that the object says: nothing can be offered beside the answer unseen."""
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


def candidates(
    family: Family, found: list[Piece], among: tuple[str, ...] = (), like: str = ""
) -> Candidates:
    """Return all candidates of one kind. ``among`` are the names that count where names are asked;
    ``like`` is an operation code, whose shape tells codes from words."""
    clear: dict[str, None] = {}
    doubtful: dict[str, None] = {}
    for piece in found:
        for form, sure in _read(family, piece, among, like):
            (clear if sure else doubtful)[form] = None
    if not clear and family != "date":  # nothing better was said than a bare number, a clock ...
        return Candidates(tuple(doubtful))
    return Candidates(tuple(clear), tuple(form for form in doubtful if form not in clear))


def _read(family: Family, piece: Piece, among: tuple[str, ...], like: str) -> Iterator[Candidate]:
    if family == "names":
        return readers.names(piece, among)
    if family == "code":
        return readers.codes(piece, like)
    return readers.BY_KIND[family](piece)
