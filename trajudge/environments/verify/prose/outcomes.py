"""Decide between values that a message states by what it says to be the outcome."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trajudge.environments.verify.prose import cues
from trajudge.environments.verify.prose.question import Question, stem, stems
from trajudge.environments.verify.prose.roles import Weighed, clause

CLEARLY = 2  # more of the goal's words stand with one value than with any other


def outcome(ours: Sequence[Weighed], others: Sequence[Weighed], question: Question) -> bool | None:
    """Decide by which value is said to be the outcome, else by which one the goal's words stand
    with."""
    near, far = max(one.near for one in ours), max(one.near for one in others)
    if question.key and _with_key(ours, question) is not _with_key(others, question):
        return _with_key(ours, question) or None
    concluding = [one for one in [*ours, *others] if one.concludes]
    if concluding:
        last = max(concluding, key=lambda one: (one.mention.sentence, len(place_of(one)[1])))
        ending = max(one.mention.sentence for one in [*ours, *others])
        if all(one.mention.sentence < ending for one in [*others, last]):
            return None  # the last word is a right one, an outcome was said before it
        return _concluded(any(last is one for one in ours), near, far)
    nearest = [one for one in (ours if near > far else others) if one.near == max(near, far)]
    negated = any(cues.NEGATION.search(_sentence(one)) for one in nearest)
    if any(_says_more(one, others, question) for one in ours) and not negated:
        return True
    if near <= far or negated or (far and near - far < CLEARLY):
        return None  # that another value stands nearer does not make it the answer
    return True


def in_passing(ours: Sequence[Weighed], question: Question) -> bool:
    """Tell whether the right values may stand in the message in passing only: in a condition, taken
    back, as an end, with another thing, as what a part is taken of."""
    return (
        all(_has_caution(one, question) for one in ours)
        or _is_taken_back(ours, question)
        or all(_is_divided(one, question) for one in ours)
    )


def _has_caution(one: Weighed, question: Question) -> bool:
    """Tell whether the words around a value say that it may be no answer."""
    mention = one.mention
    sentence, after = f"{mention.whole_before} # {mention.whole_after}", mention.after
    cautions = (cues.CONDITIONAL, cues.SOMETHING_ELSE)
    if not one.concludes and any(
        cue.search(sentence) and not cue.search(question.text) for cue in cautions
    ):
        return True
    distinct = cues.DISTINCT.search(after) and "different" not in question.text
    money = mention.text[:1].isdigit() and not re.search(r"[.,]\d\d$", mention.text)
    paid = money and cues.CURRENCY_BEFORE.search(mention.before) and question.counts
    passive = cues.DONE_BY.search(after) and not re.search(r"ed by\b", question.text)
    return bool(
        cues.OUTERMOST.search(after) or distinct or paid or passive or _is_reversed(one, question)
    )


def _is_reversed(one: Weighed, question: Question) -> bool:
    """Tell whether a sentence compares in the other direction than the goal does."""
    sentence = f"{one.mention.whole_before}{one.mention.text}{one.mention.whole_after}"
    goal, stated = cues.EXCEEDS.search(question.text), cues.EXCEEDS.search(sentence)
    if goal and stated:
        names_said, wanted = (
            tuple(map(stem, map(str.casefold, f.groups()))) for f in (stated, goal)
        )
        if names_said == wanted[::-1]:
            return True
    other = cues.THAN_NAME.search(question.text)
    if not other:
        return False
    leads = rf"\b{re.escape(other[1])} (?:had|has|have|was|is|were|are|leads?|led)\b"
    return bool(re.search(leads, one.mention.whole_before, re.IGNORECASE))


def _is_taken_back(ours: Sequence[Weighed], question: Question) -> bool:
    """Tell whether words that take a value back follow the last of the right ones."""
    last = max(ours, key=place_of).mention
    start = last.message.rfind(last.text)
    rest = last.message[start + len(last.text) :] if start >= 0 else last.whole_after
    return bool(cues.TAKEN_BACK.search(rest)) and not cues.TAKEN_BACK.search(question.text)


def _is_divided(one: Weighed, question: Question) -> bool:
    """Tell whether a part of a number has words of the goal that the number itself has not: ``7
    alerts, of which 4 are resolved``."""
    part = cues.OF_WHICH.search(one.mention.whole_after)
    if not (part and question.counts and re.search(r"\d", part[0])):
        return False
    return bool((stems(part[0]) & question.stems) - stems(clause(one.mention)))


def _with_key(some: Sequence[Weighed], question: Question) -> bool:
    return any(question.key in one.words for one in some)


def _says_more(one: Weighed, others: Sequence[Weighed], question: Question) -> bool:
    """Tell whether a value stands with all of the goal's words that others stand with, and with its
    predicate too: ``Mill Lane $1,267.25. Mill Lane is $212.75 cheaper.``"""
    return all(
        other.words and (one.words - other.words) & question.predicates and other.words < one.words
        for other in others
    )


def _concluded(ours: bool, near: int, far: int) -> bool | None:
    """Another value that is said to be the outcome is one, unless the goal's words stand nearer to
    the wanted one."""
    if ours:
        return True
    return False if far >= near else None


def place_of(one: Weighed) -> tuple[int, str]:
    """Return where a mention stands: its sentence, and what stands before it there."""
    return one.mention.sentence, one.mention.whole_before


def _sentence(one: Weighed) -> str:
    return f"{one.mention.whole_before} {one.mention.whole_after}"
