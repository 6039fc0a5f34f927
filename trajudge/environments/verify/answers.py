"""Right, wrong, or open to argument: what was asked against what the last message offers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial

from trajudge.environments.verify.candidates import (
    Candidates,
    NotAnAnswer,
    Piece,
    codes,
    pieces,
    whole,
)
from trajudge.environments.verify.finders import Family, finder, form_of, hint, same, tidy
from trajudge.environments.verify.model import AnswerFact
from trajudge.environments.verify.prose import Reading, Wanted, denied, read
from trajudge.environments.verify.prose.passages import passage
from trajudge.environments.verify.prose.question import question
from trajudge.environments.verify.truth import ResolvedAnswer
from trajudge.rules.values.texts import strip_invisible

LEFT_OPEN = 3  # so many doubtful candidates beside the right answer; more are a list of guesses
_DIGITS = re.compile(r"(?<![\w.,-])\d{1,9}(?:\.\d{1,9})?(?![\w-]|[.,]\d)")
_SHOWN = 20  # candidates kept in the facts
_FAMILIES: Mapping[str, Family] = {
    "money": "money",
    "number": "number",
    "date": "date",
    "duration": "duration",
    "text": "names",
    "texts": "names",
    "code": "code",
}
_Asked = Mapping[Family, Sequence[ResolvedAnswer]]


def answered(
    answers: Sequence[ResolvedAnswer], message: str | None, goal: str
) -> tuple[AnswerFact, ...]:
    """Return one fact for every kind that is asked, answers of the same kind together.

    A structured answer (``answer(value)``, a JSON object with an ``answer``) is right if its values
    are exactly the right ones; prose is read (``prose``), and left open where a reader may take it
    so or so.
    """
    families: dict[Family, list[ResolvedAnswer]] = {}
    for one in answers:
        families.setdefault(_FAMILIES[one.kind], []).append(one)
    return tuple(_fact(family, families, message, goal) for family in families)


def _fact(family: Family, families: _Asked, message: str | None, goal: str) -> AnswerFact:
    some = families[family]
    written = _written(some)
    if any(not one.values for one in some):
        return _wrong(family, (), "the state has no right answer")
    if message is None or not message.strip():
        return _wrong(family, written, "no answer")
    try:
        reading = _reading(family, families, message, goal)
    except NotAnAnswer as error:
        return _wrong(family, written, str(error))
    return AnswerFact(
        kind=family,
        expected=written,
        found=reading.stated[:_SHOWN],
        doubtful=reading.doubtful[:_SHOWN],
        right=reading.right,
        reason=reading.reason,
    )


def _wrong(family: Family, expected: tuple[str, ...], reason: str) -> AnswerFact:
    return AnswerFact(kind=family, expected=expected, found=(), right=False, reason=reason)


def _written(some: Sequence[ResolvedAnswer]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for one in some for value in one.values))


def _wanted(family: Family, some: Sequence[ResolvedAnswer]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(form_of(family, value) for value in _written(some)))


def _reading(family: Family, families: _Asked, message: str, goal: str) -> Reading:
    some = families[family]
    wanted = _wanted(family, some)
    structured = pieces(message)
    if family == "code":
        text = message if structured is None else " ".join(map(str, structured))
        return _code(text, wanted, _written(some)[0])
    names = (name for one in some for name in (*one.among, *one.values))
    among = tuple(dict.fromkeys(names)) if family == "names" else ()
    find = finder(family, among, question(goal), _currency(family, wanted))
    if structured is not None:
        own = [piece for piece in structured if not _belongs_to_another(piece, family, families)]
        forms = [whole(family, piece, find) for piece in own]
        if None not in forms:
            return _compared(frozenset(wanted), Candidates(tuple(filter(None, forms))))
        message = "\n".join(map(str, own))
    in_goal = partial(_stated, goal, family, among)
    may = hint(family, among, goal)
    target = Wanted(wanted, family, find, same(family), tidy(family), in_goal, may)
    return read(message, goal, target)


def _currency(family: Family, wanted: Sequence[str]) -> str:
    """Return the currency of the right amounts."""
    return wanted[0].partition(" ")[0] if family == "money" else "USD"


def _belongs_to_another(piece: Piece, family: Family, families: _Asked) -> bool:
    """Tell whether a value of a structured answer is the right one of another kind."""
    for other, some in families.items():
        if other == family:
            continue
        if other == "code":
            form: str | None = form_of("code", str(piece))
        else:
            names = tuple(name for one in some for name in (*one.among, *one.values))
            form = whole(other, piece, finder(other, names, question("")))
        if form in _wanted(other, some):
            return True
    return False


@lru_cache(maxsize=256)
def _stated(goal: str, family: Family, among: tuple[str, ...]) -> frozenset[str]:
    """Return the values that the goal itself states: they are no candidates."""
    find = finder(family, among, question(goal))
    stated = {one.form for one in passage(goal, find, tidy(family))}
    if family == "number":  # "the milestone 4.2" is none that is counted, and none that is offered
        stated |= {form_of("number", digits) for digits in _DIGITS.findall(goal)}
    return frozenset(stated)


def _code(text: str, wanted: tuple[str, ...], like: str) -> Reading:
    reading = _compared(frozenset(wanted), codes(strip_invisible(text), like))
    if reading.right and denied(text, like):
        return reading._replace(right=False, reason="denied or a bound")
    return reading


def _compared(wanted: frozenset[str], offered: Candidates) -> Reading:
    """Tell whether the candidates are the right ones, and if not, why."""
    clear, doubtful = set(offered.clear), set(offered.doubtful)
    missing, beside = wanted - clear - doubtful, len(doubtful - wanted)
    right: bool | None = False
    if clear - wanted:
        reason = "other candidates" if wanted <= clear else "another answer"
    elif missing:
        reason = "the answer is not in the message" if missing == wanted else "incomplete"
    elif wanted <= clear and not beside:
        right, reason = True, ""
    elif beside <= LEFT_OPEN:
        right, reason = None, "open to argument"
    else:
        reason = "other candidates"
    return Reading(right, reason, offered.clear, offered.doubtful)
