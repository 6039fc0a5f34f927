"""Right, wrong, or open to argument: what was asked against what the last message offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trajudge.environments.verify.candidates import (
    Candidates,
    Family,
    NotAnAnswer,
    candidates,
    pieces,
)
from trajudge.environments.verify.model import AnswerFact
from trajudge.environments.verify.truth import ResolvedAnswer
from trajudge.rules.values import normalise
from trajudge.rules.values.texts.text import normal_text

LEFT_OPEN = 3  # so many doubtful candidates beside the right answer; more are a list of guesses
_SHOWN = 20  # candidates kept in the facts
_VALUES = {"money": "currency", "number": "number", "date": "date", "duration": "duration"}
_FAMILIES: Mapping[str, Family] = {
    "money": "money",
    "number": "number",
    "date": "date",
    "duration": "duration",
    "text": "names",
    "texts": "names",
    "code": "code",
}


def answered(
    asked: Sequence[ResolvedAnswer], message: str | None, goal: str
) -> tuple[AnswerFact, ...]:
    """Return one fact for every kind that is asked, answers of the same kind together.

    Right is a message whose candidates of the kind are exactly the right ones. Values that the
    goal itself states are no candidates; beside an answer that the goal states too, they leave it
    open.
    """
    families: dict[Family, list[ResolvedAnswer]] = {}
    for one in asked:
        families.setdefault(_FAMILIES[one.kind], []).append(one)
    return tuple(_fact(family, some, message, goal) for family, some in families.items())


def _fact(
    family: Family, some: Sequence[ResolvedAnswer], message: str | None, goal: str
) -> AnswerFact:
    written = tuple(dict.fromkeys(value for one in some for value in one.values))
    if any(not one.values for one in some):
        return _wrong(family, (), "the state has no right answer")
    if message is None or not message.strip():
        return _wrong(family, written, "no answer")
    among = tuple(dict.fromkeys(name for one in some for name in one.among))
    wanted = frozenset(_form(family, value) for value in written)
    try:
        offered = candidates(family, pieces(message), among, written[0])
    except NotAnAnswer as error:
        return _wrong(family, written, str(error))
    offered = _beyond(goal, offered, family, among=among, like=written[0], wanted=wanted)
    right, reason = _compared(wanted, offered)
    return AnswerFact(
        kind=family,
        expected=written,
        found=offered.clear[:_SHOWN],
        doubtful=offered.doubtful[:_SHOWN],
        right=right,
        reason=reason,
    )


def _wrong(family: Family, expected: tuple[str, ...], reason: str) -> AnswerFact:
    return AnswerFact(kind=family, expected=expected, found=(), right=False, reason=reason)


def _form(family: Family, value: str) -> str:
    """Return the normal form that a candidate has to have."""
    if family == "names":
        return normal_text(value)
    if family == "code":
        return value.replace("-", "").upper()
    return str(normalise(_VALUES[family], value))


def _beyond(
    goal: str,
    offered: Candidates,
    family: Family,
    *,
    among: tuple[str, ...],
    like: str,
    wanted: frozenset[str],
) -> Candidates:
    """Return the candidates without those that the goal states. Where the goal states the answer
    too (it names what there is to choose from), the others are doubtful: "A is cheaper than B"."""
    if wanted.issuperset(offered.clear) and not offered.doubtful:
        return offered
    try:
        stated = candidates(family, pieces(goal), among, like)
    except NotAnAnswer:
        return offered
    known = {*stated.clear, *stated.doubtful}
    others = known - wanted
    clear = tuple(form for form in offered.clear if form not in others)
    doubtful = tuple(form for form in offered.doubtful if form not in others)
    if known & wanted:
        doubtful += tuple(form for form in offered.clear if form in others)
    return Candidates(clear, doubtful)


def _compared(wanted: frozenset[str], offered: Candidates) -> tuple[bool | None, str]:
    """Tell whether the candidates are the right ones, and if not, why."""
    clear, doubtful = set(offered.clear), set(offered.doubtful)
    if clear - wanted:
        return False, "other candidates" if wanted <= clear else "another answer"
    if missing := wanted - clear - doubtful:
        return False, "the answer is not in the message" if missing == wanted else "incomplete"
    beside = len(doubtful - wanted)
    if wanted <= clear and not beside:
        return True, ""
    return (None, "open to argument") if beside <= LEFT_OPEN else (False, "other candidates")
