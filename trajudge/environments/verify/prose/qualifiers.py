"""What narrows a goal or a clause down: which train, which account, which day, how many nights.

A clause that has another qualifier of the same type than the goal speaks of something else: ``the
train 420 takes ...`` answers nothing about the train 418.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from trajudge.environments.verify.mentions import digits_for_words
from trajudge.environments.verify.prose import cues
from trajudge.environments.verify.prose.passages import Mention, capitals
from trajudge.environments.verify.prose.polarity import Signs, against, agrees, elliptical, signs
from trajudge.environments.verify.prose.question import Question, proper_phrases, stem, stems
from trajudge.rules.values.quantities import MONTHS

_LITTLE = """
    a an the of in on at to for from by with and or is are was were be been has have had it its this
    that these those there than then as until till since before after about around over under above
    below only just exactly least most top first last next past per not no all any both each every
    either neither or plus minus times equals total we i you he she they says shows see when which
    what who how if so but now here
"""
_FUNCTION = frozenset(_LITTLE.split())
_NO_KIND = _FUNCTION | MONTHS.keys()
_PREFIXED = re.compile(
    r"\b([^\W\d_]+)(?:'s)?(?: (?:no|number|nr)\b\.?)?[-_ #]{0,2}(\d[\w.]*\w|\d\w*)"
)
_LETTERED = re.compile(r"\b(\d{1,3}[a-z])\b", re.IGNORECASE)
_AS_NAMED = re.compile(r"\bthe (\d[\w.]*)(?= (?:is|was|has|takes?|needs?|will|would|#))")
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_WEEKDAYS = frozenset(_DAYS.split())
_TITLES = frozenset({"dr", "prof", "mr", "mrs", "ms"})
_WEEKDAY = re.compile(rf"\b({_DAYS.replace(' ', '|')})(?:s|'s)?\b", re.IGNORECASE)
_SHORT_DAY = re.compile(
    r"\b(mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)\b(?=\.?[ ,:)/-]*(?:#|\d|-|\)|[,:]))", re.IGNORECASE
)
_NAME = "|".join(sorted(MONTHS.keys() - {"may", "mar", "sep", "dec"}, key=len, reverse=True))
_MONTH = re.compile(rf"\b({_NAME}|(?<=in )may|may(?= \d))\b", re.IGNORECASE)
_DAY = re.compile(
    rf"\b(?:{_NAME}|may)\.? (\d{{1,2}})(?:st|nd|rd|th)?\b"
    rf"|\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?:{_NAME}|may)\b",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?<![\w.,/$€£-])((?:19|20)\d\d)(?![\w/]|[.,-]\d)")
_COUNTED = re.compile(r"(?<![\w.,$€£])(\d{1,3}) ([a-z]{4,})\b")
_THAN = re.compile(r"\bthan\b")
_FROM_TO = re.compile(r"\b[Ff]rom ([\w' ]+?) to ([\w']+(?: [A-Z][\w']*)*)")
_MORE = re.compile(
    r"\b(?:more|dearer|higher|larger|longer|older|later|bigger|heavier|taller)\b", re.I
)
_LESS = re.compile(
    r"\b(?:less|cheaper|lower|smaller|shorter|younger|earlier|lighter|fewer)\b", re.I
)

_COUNT_IN_GOAL = re.compile(r"(?<![\w.,$€£-])\d{1,3} (?=[a-z]{2,}s\b)")
_SINCE = re.compile(
    rf"\b(?:from|since|until|till|between|to) (?:the )?{_DAY.pattern}", re.IGNORECASE
)
_LAST_WORD = re.compile(r"([^\W\d_]+)(?: (?:no|number|nr)\b\.?)?[ #]*$", re.IGNORECASE)
_LABEL = "number of "

Qualifiers = Mapping[str, frozenset[str]]
_SOFT = ("weekday", "month", "day", "year", "count:")


class Conflict(IntEnum):
    """How surely a clause speaks of something else than the goal."""

    NONE = 0
    SOFT = 1  # a time or a number that may belong to something beside
    HARD = 2  # another thing of the same kind, or the opposite


class Standing(NamedTuple):
    """``supported``: the clause has a qualifier of the goal; ``settled``: whether "not" denies a
    value or the property that is asked for is settled by the words (``who has not paid``);
    ``excepted``: an exception from it may have what is asked for (``all have paid but ...``)."""

    conflict: Conflict
    supported: bool
    settled: bool = False
    excepted: bool = False


@lru_cache(maxsize=1024)
def qualifiers(text: str) -> Qualifiers:
    """Return the qualifiers of a text by type. Names of a kind are left to ``_named``."""
    by_key: dict[str, set[str]] = {}

    def add(key: str, value: str) -> None:
        by_key.setdefault(key, set()).add(value.casefold())

    for prefix, number in _PREFIXED.findall(text):
        if prefix.casefold() not in _NO_KIND:
            add(f"{_LABEL}{stem(prefix)}", number)
    for number in _LETTERED.findall(text):
        add("letter", number)
    for short in _SHORT_DAY.findall(text):
        add("weekday", next(day for day in _WEEKDAYS if day.startswith(short.casefold())))
    for key, pattern in (("weekday", _WEEKDAY), ("year", _YEAR)):
        for value in pattern.findall(text):
            add(key, value)
    for name in _MONTH.findall(text):
        add("month", str(MONTHS[name.casefold()]))
    for days in _DAY.findall(text):
        add("day", next(filter(None, days)))
    for number, noun in _COUNTED.findall(text):
        if noun not in _NO_KIND:
            add(f"count:{stem(noun)}", number)
    return {key: frozenset(values) for key, values in by_key.items()}


@lru_cache(maxsize=256)
def _of_goal(goal: str) -> Qualifiers:
    """Return the qualifiers of a goal: a number in words counts something, one in digits before a
    plural too; a day from which something goes on narrows nothing."""
    plain = _COUNT_IN_GOAL.sub(" ", _SINCE.sub(" ", goal))
    by_key = dict(qualifiers(plain))
    counted = qualifiers(digits_for_words(goal)).items()
    labels = {
        number for key, numbers in by_key.items() for number in numbers if key.startswith(_LABEL)
    }
    for key, numbers in counted:
        if key.startswith("count:") and numbers - labels:
            by_key[key] = numbers - labels
    return by_key


def is_label(goal: str, before: str) -> bool:
    """Tell whether a number after these words names one of a kind, as the goal names one: ``the
    milestone 4.1``."""
    word = _LAST_WORD.search(before)
    return bool(word) and f"{_LABEL}{stem(word[1])}" in _of_goal(goal) if word else False


@lru_cache(maxsize=256)
def _phrases(goal: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the names in a goal, each with the kind before it: ``depot`` and ``("west",)``; ""
    where there is none."""
    return tuple(
        ("" if before in _NO_KIND else before, tuple(phrase.casefold().split()))
        for before, phrase in proper_phrases(goal)
    )


def standing(mention: Mention, question: Question, family: str) -> Standing:
    """Compare the qualifiers of the clause in which a value stands with those of the goal."""
    own = mention.segment.own
    conflict, supported, *_ = _compared(own, question, family)
    if conflict is Conflict.SOFT and _is_contrast(mention, question, family):
        conflict = Conflict.HARD
    names = _names(own, capitals(mention.message), question)
    conflict, supported = max(conflict, names.conflict), supported or names.supported
    turned = elliptical(own, (*mention.segment.earlier, mention.previous), question.predicates)
    if _is_opposite(mention, question, turned) or _is_turned(
        own, capitals(mention.message), question.text
    ):
        conflict = Conflict.HARD
    concludes = cues.CONCLUDES.search(mention.before)
    if conflict is Conflict.NONE and not supported and not concludes:
        conflict = _inherited(mention, question, family)
    negative = agrees(signs(question.text, question.predicates), signs(own, question.predicates))
    if conflict is Conflict.NONE and _is_bracketed_off(mention, question):
        conflict = Conflict.SOFT
    wanted, stated = signs(question.text, question.predicates), signs(own, question.predicates)
    excepted = against(wanted, stated) or not stems(own) & question.predicates
    return Standing(conflict, supported, bool(turned) or negative, excepted)


def _is_bracketed_off(mention: Mention, question: Question) -> bool:
    """Tell whether parentheses behind a value say the opposite of the goal: ``X (has paid)``."""
    bracketed = cues.BRACKETED_AFTER.search(mention.after)
    wanted = signs(question.text, question.predicates)
    return bracketed is not None and against(wanted, signs(bracketed[1], question.predicates))


def _is_contrast(mention: Mention, question: Question, family: str) -> bool:
    """Tell whether the message speaks of the goal's own qualifier in another place: ``On Monday it
    is 11. On Tuesday ...``."""
    own = qualifiers(mention.segment.own)
    stated, wanted = qualifiers(mention.message), _of_goal(question.text)
    keys = [key for key in own if key in wanted and not own[key] & wanted[key]]
    return family != "date" and any(stated.get(key, frozenset()) & wanted[key] for key in keys)


def counts(goal: str, noun: str) -> bool:
    """Tell whether a goal states how many there are of something: ``stars`` of ``4 stars``."""
    return f"count:{stem(noun)}" in _of_goal(goal)


def _compared(text: str, question: Question, family: str) -> Standing:
    conflict, supported = Conflict.NONE, False
    wanted, stated = _of_goal(question.text), qualifiers(text)
    for key, values in stated.items():
        if key not in wanted or (family == "date" and key in ("weekday", "month", "day", "year")):
            continue
        stranger = len(values) > 1 and len(wanted[key]) > 1 and values - wanted[key]
        if values & wanted[key] and not stranger:
            supported = True
        elif key.startswith(_SOFT):
            conflict = max(conflict, Conflict.SOFT)
        else:
            conflict = Conflict.HARD
    for number in _AS_NAMED.findall(text):
        supported = supported or any(number in values for values in wanted.values())
    return Standing(conflict, supported)


def _names(text: str, capital: frozenset[str], question: Question) -> Standing:
    """Compare the names that stand where the goal has its own: ``the depot East``."""
    lower = text.casefold().replace(".", " ")
    strange, supported = False, False
    for kind, words in _phrases(question.text):
        if " ".join(words) in lower:
            return Standing(Conflict.NONE, supported=True)
        shown = _in_place(lower, kind, words)
        strange = strange or bool(shown & capital - _FUNCTION - _WEEKDAYS)
        supported = supported or any(word in lower for word in words if word not in _TITLES)
    return Standing(Conflict.HARD if strange else Conflict.NONE, supported and not strange)


def _in_place(lower: str, kind: str, words: Sequence[str]) -> set[str]:
    """Return the other words that stand in the places of a name's words: ``east`` of ``depot east``
    for the depot West, ``otter`` of ``otter trail`` for the Heron Trail."""
    places = [(rf"\b{re.escape(kind)}(?:'s)? +([\w-]+)", words[0])] if kind else []
    if len(words) > 1:
        places.append((rf"\b{re.escape(words[0])} +([\w-]+)", words[1]))
        places.append((rf"([\w-]+) +{re.escape(words[-1])}\b", words[-2]))
    return {word for place, name in places for word in re.findall(place, lower) if word != name}


def _is_opposite(mention: Mention, question: Question, turned: Signs) -> bool:
    """Tell whether the clause denies a property that the goal asks for, or the other way round."""
    segment, words = mention.segment, question.predicates
    wanted = signs(question.text, words)
    stated = signs(segment.own, words) or turned
    return against(wanted, stated) or against(wanted, signs(segment.more, words))


def _is_turned(text: str, capital: frozenset[str], goal: str) -> bool:
    """Tell whether a comparison or a way goes in the other direction than the goal's."""
    way, other = (_FROM_TO.search(one) for one in (goal, text))
    if way and other:
        a, b = (name.casefold().split()[-1] for name in way.groups())
        if other[1].casefold().endswith(b) and other[2].casefold().startswith(a):
            return True
    halves, sides = (_THAN.split(one.casefold(), maxsplit=1) for one in (goal, text))
    if len(halves) < 2 or len(sides) < 2:
        return False
    names = [_capitalised(half, goal) for half in halves]
    flipped = bool(_MORE.search(goal)) is not bool(_MORE.search(text)) and bool(
        _MORE.search(text) or _LESS.search(text)
    )
    first, second = (names[1], names[0]) if flipped else (names[0], names[1])
    shown = set(re.findall(r"[\w-]+", sides[1])) & capital - _NO_KIND
    return bool(second and shown and not shown & second) or bool(shown & first - second)


@lru_cache(maxsize=256)
def _capitalised(half: str, goal: str) -> frozenset[str]:
    words = {word.casefold() for _, name in proper_phrases(goal) for word in name.split()}
    words |= {day.casefold() for day in _WEEKDAY.findall(goal)}
    return frozenset(words & set(re.findall(r"[\w-]+", half)))


def _inherited(mention: Mention, question: Question, family: str) -> Conflict:
    """Return whether a clause before it in the sentence, the nearest with a qualifier, speaks of
    something else: its subject may go on."""
    for text in mention.segment.earlier:
        conflict, supported, *_ = _compared(text, question, family)
        names = _names(text, capitals(mention.message), question)
        if supported or names.supported:
            return Conflict.NONE
        if max(conflict, names.conflict):
            return Conflict.SOFT
    return Conflict.NONE
