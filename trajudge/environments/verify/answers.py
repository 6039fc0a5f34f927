"""Right, wrong or open: what was asked against what a run declares, or says where it declares
nothing.

A declaration is the action ``answer(value)`` (recorded as the JSON object ``{"answer": value}``),
the page for it, or a last line ``Answer: value``. Its values are compared by kind. A message that
declares nothing is wrong where it holds no value either, read where it holds just one of the kind
that is asked and no word that casts doubt on it, and else open (None).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

from trajudge.environments.model.operation_codes import ALPHABET, LENGTH
from trajudge.environments.verify.model import AnswerFact
from trajudge.environments.verify.truth import ResolvedAnswer
from trajudge.rules.limits import InvalidValue
from trajudge.rules.values import normalise
from trajudge.rules.values.quantities import MONTHS, SMALL, TENS
from trajudge.rules.values.texts import normal_text, strip_invisible, unaccented

_MOST_TEXT = 4_000  # characters that are read of a message; a longer one is open
_NOTHING = frozenset({"none", "null", "n/a", "not possible", "impossible", "infeasible"})

_LINE = re.compile(r"[*_#>\s]*(?:final )?answer[*_\s]*:(.*)", re.IGNORECASE)
_WORDS = "|".join(sorted({*SMALL, *TENS, "hundred"} - {"one"}, key=len, reverse=True))
_DOUBT = re.compile(  # anywhere in a text: its value may not be what is meant
    r"(?i)[?~≈<>]|n't\b|\b(?:not|no|never|none|nothing|nobody|neither|nor|cannot|unable|if(?! you)"
    r"|unless|could|would have|may(?= (?:be|have)\b)|might|maybe|perhaps|possibly|probably|usually"
    r"|one of|either|or|than|at least|at most|up to|between|except|but|without|others?|another|some"
    r"|thousand|million|each|apiece|every|half|quarters?|ago"
    rf"|(?:per|an?) (?:year|week|day|hour|minute|coat)|(?:{_WORDS}) (?:dollar|euro|cent)s?)\b"
    r"|/ ?(?:year|week|day)\b|\d ?p\.?m\b"
)
_BOUND = re.compile(  # right before a value
    r"(?i)\b(?:about|above|after|almost|approx\w*\.?|around|before|below|beyond|just|nearly|over|past"
    r"|roughly|under) (?:the )?\Z"
)
_SIZES = """time minute 60, time min 60, time hour 3600, time h 3600, time day 86400,
    time week 604800, mass gram 1, mass g 1, mass kilogram 1000, mass kg 1000, mass pound 453.59237,
    length kilometre 1000, length kilometer 1000, length km 1000, length mile 1609.344,
    length mi 1609.344"""
_UNITS = {unit: (of, Decimal(size)) for of, unit, size in map(str.split, _SIZES.split(","))}

_NUM = r"\d+(?:[.,']\d+| \d{3}(?!\d))*"
_AMOUNT = rf"(?P<amount>(?:(?<![\w)])-)?(?<![\w.,#])(?<!\w-){_NUM})"
_NUMBER = re.compile(rf"{_AMOUNT}(?: ?(?P<name>[^\W\d_]+\b|%))?")
_MONEY = re.compile(
    rf"(?i)(?:(?<!\w)- ?)?(?:\bus)?(?:[$€£]|\b(?:usd|eur|gbp)) ?-?{_NUM}"
    rf"|{_AMOUNT} ?(?:[$€£]|(?:usd|eur|gbp|dollar|euro|pound|cent)s?\b)"
)
_MONTH = rf"(?:{'|'.join(sorted(MONTHS, key=len, reverse=True))})\.?"
_DAY = r"\d\d?(?:st|nd|rd|th|\.)?"
_DATE = re.compile(
    r"(?i)\b(?:\d{4}([-/.])\d\d?\1\d\d?|(?P<a>\d\d?)(?P<by>[-/.])(?P<b>\d\d?)(?P=by)(?P<year>\d{4})"
    rf"|(?:{_DAY}(?: of | |-){_MONTH}|{_MONTH} (?:the )?{_DAY})(?:(?:,? |-)\d{{4}})?)(?!\d)"
)
_PART = r"\d+(?:\.\d+)? ?(?:(?:week|day|hour|hr|minute|min|second|sec)s?|[dhms])\b\.?"
_DURATION = re.compile(
    rf"(?i)\b(?:\d{{1,2}}:\d\d ?(?:hours?|hrs?|h)\b|\d+ ?h ?\d\d?\b(?! ?m)"
    rf"|{_PART}(?:(?:,? and |, ?| )?{_PART})*)"
)
_CLOCK = re.compile(r"\b\d{1,2}:\d\d(?::\d\d)?\b")
_CODE = re.compile(rf"(?<!\w)(?=[A-Z]*[2-7])[{ALPHABET}]{{{LENGTH}}}(?!\w)")
_IN_WORDS = re.compile(
    rf"(?i)\b(?:one(?= (?:hour|minute|week|day)s?\b)|(?:one )?(?:{_WORDS})"
    rf"(?:(?:[ -]| and )(?:{_WORDS}|one)\b)*)\b"
)
_Found = tuple[re.Match[str], Collection[Any] | None]
# A value and what it may mean: ``1.234`` is read in two ways, ``5 March`` in none.
_Value = tuple[re.Match[str], frozenset[Any]]


def answered(answers: Sequence[ResolvedAnswer], message: str | None) -> tuple[AnswerFact, ...]:
    """Return one fact for each thing that is asked, in order."""
    if message is None or not message.strip():
        return tuple(_fact(answer, False, reason="no answer") for answer in answers)
    values = declared(message)
    if values is None:
        return tuple(_in_prose(answer, message, *answers) for answer in answers)
    if len(answers) == 1 and (len(values) != 1 or answers[0].kind == "texts"):
        values = [values]
    elif len(values) == 1 and isinstance(text := values[0], str):
        values = next((p for mark in ";," if len(p := text.split(mark)) == len(answers)), values)
    if len(values) != len(answers):
        return tuple(_fact(answer, False, reason="another number of values") for answer in answers)
    return tuple(map(_of_declared, answers, values))


def declared(message: str) -> list[Any] | None:
    """Return the values that a last message declares; None where it declares nothing."""
    last = (message.strip().strip("`").strip().splitlines() or [""])[-1].strip()
    if line := _LINE.fullmatch(last[:_MOST_TEXT]):
        return [line[1].strip(" *_`\"'.")]
    try:
        content = json.loads(last[:_MOST_TEXT])
        (value,) = [content["answer"]] if len(content) == 1 else []
    except (ValueError, RecursionError, TypeError, KeyError, IndexError):
        return None
    value = [*value.values()] if isinstance(value, dict) else value
    return value if isinstance(value, list) else [value]


def only_value(answer: ResolvedAnswer, text: str) -> bool:
    """Tell whether the right answer is the one value of its kind that a text holds."""
    return _compared(answer, _found(answer, _line(text), answer)) is True


def is_nothing(value: object) -> bool:
    """Tell whether a declared value says that there is no answer, or that it cannot be done."""
    return value is None or (isinstance(value, str) and normal_text(_line(value)) in _NOTHING)


def _line(text: str) -> str:
    try:
        return strip_invisible(text)
    except InvalidValue:  # a hostile text
        return ""


def _fact(
    answer: ResolvedAnswer, right: bool | None, values: Sequence[str] = (), reason: str = ""
) -> AnswerFact:
    if not answer.values:
        right, reason = False, "the state has no right answer"
    reason = {True: "", None: "open to argument"}.get(right, reason or "another answer")
    shown = tuple(text[:200] for text in values)
    return AnswerFact(
        kind=answer.kind, expected=answer.values, found=shown, right=right, reason=reason
    )


def _in_prose(answer: ResolvedAnswer, message: str, *answers: ResolvedAnswer) -> AnswerFact:
    text = _line(message[: _MOST_TEXT + 1])
    values = _found(answer, text, *answers) if len(text) <= _MOST_TEXT else []
    if not values and _silent(answer, text):
        return _fact(answer, False, reason="no answer")
    right = None if answer.kind in ("none", "texts") else _right(answer, text, values)
    return _fact(answer, right, [match[0] for match, _ in values])


def _silent(answer: ResolvedAnswer, text: str) -> bool:
    """Tell whether a text without values has nothing that a person could take for one: a number in
    whatever form ("there are none" is one where 0 is right), or a word of the right name."""
    right = " ".join(answer.values)
    if answer.kind == "none" or len(text) > _MOST_TEXT:
        return False
    if answer.kind != "code" and re.search(r"\d", right):
        return bool(re.search("[1-9]", right)) and not re.search(r"\d", _IN_WORDS.sub("1", text))
    words = {word for word in normal_text(right).split() if len(word) > 2} - {"the", "and", "for"}
    return words.isdisjoint(normal_text(text).split())


def _of_declared(answer: ResolvedAnswer, value: Any) -> AnswerFact:
    members = [str(one) for one in value] if isinstance(value, list) else [str(value)]
    if is_nothing(value) or answer.kind == "none" or not answer.values:
        return _fact(answer, is_nothing(value) and answer.kind == "none", members)
    text = _line("; ".join(members)[:_MOST_TEXT])
    own, words = (sorted(normal_text(one).split()) for one in (answer.values[0], text))
    if answer.kind in ("text", "code") and [word.strip(",") for word in words] == own:
        return _fact(answer, True, members)
    values = _found(answer, f"{text} h" if _CLOCK.fullmatch(text) else text)
    several = len(members) > 1 or len({readings for _, readings in values}) > 1
    if not values or (several and answer.kind != "texts"):
        part = answer.kind == "text" and set() < set(words) < set(own)  # of the name
        return _fact(answer, None if part else False, members)
    right = _right(answer, text, values)
    rest = _blank(unaccented(text), _pattern(answer)) if answer.kind == "texts" and right else ""
    strange = any(re.search(r"[^\W\d_]", one) and "_" not in one for one in re.split("[;,]", rest))
    return _fact(answer, right and not strange, members)


def _right(answer: ResolvedAnswer, text: str, values: Sequence[_Value]) -> bool | None:
    """Compare the values that a text holds, if they are one (or one set) and beyond doubt."""
    bound = any(_BOUND.search(match.string[: match.start()]) for match, _ in values)
    doubtful = bound or _DOUBT.search(_blank(unaccented(text), _pattern(answer)))
    return None if doubtful else _compared(answer, values)


def _compared(answer: ResolvedAnswer, values: Sequence[_Value]) -> bool | None:
    offered = {readings for _, readings in values}
    if not values or frozenset() in offered:
        return None
    right = {_truth(answer, value) for value in answer.values}
    if answer.kind == "texts":
        return right == frozenset().union(*offered)
    return None if len(offered) > 1 else right <= offered.pop()


def _truth(answer: ResolvedAnswer, value: str) -> Any:
    if answer.kind == "number":
        return Decimal(value)
    values = _found(answer, _line(value))
    return next((reading for _, readings in values for reading in readings), None)


def _found(answer: ResolvedAnswer, text: str, *names: ResolvedAnswer) -> list[_Value]:
    """Return the values of the kind that is asked in one line of prose, where ``names`` hold no
    numbers; without ``names``, in a declared text."""
    if answer.kind in ("number", "duration"):
        text = _IN_WORDS.sub(lambda words: (*_normal("number", words[0]), words[0])[0], text)
    some: Iterable[_Found]
    match answer.kind:
        case "code":
            some = ((code, {code[0]}) for code in _CODE.finditer(text))
        case "date":
            some = ((day, _day(day)) for day in _DATE.finditer(text))
        case "money":
            some = _amounts(text, not names)
        case "duration":
            lengths = ((one, _normal("duration", one[0])) for one in _DURATION.finditer(text))
            other = _NUMBER.finditer(_blank(text, _DURATION, _CLOCK, _DATE))
            some = chain(lengths, ((number, ()) for number in other))  # "2 hours, on Fridays 3"
        case "number":
            rest = _blank(text, *map(_pattern, names), _DATE, _CLOCK, _CODE, _MONEY)
            some = ((number, _measured(number, answer.unit)) for number in _NUMBER.finditer(rest))
        case _:
            some = _names(answer, unaccented(text), not names)
    return [(match, frozenset(readings)) for match, readings in some if readings is not None]


def _blank(text: str, *patterns: re.Pattern[str]) -> str:
    for pattern in patterns:
        text = pattern.sub(lambda match: "_" * len(match[0]), text)
    return text


def _numbers(token: str) -> set[Decimal]:
    """Return what digits with separators may mean: ``1.234`` is read in two ways."""
    first, *rest = re.split(r"[.,' ]", token)
    marks, digits = re.findall(r"[.,' ]", token), Decimal(re.sub(r"[.,' ]", "", token))
    grouped = len(first.strip("-")) <= 3 and all(len(group) == 3 for group in rest[:-1])
    if not rest:
        return {digits}
    thousands = grouped and len({*marks}) == 1 and len(rest[-1]) == 3 and first.strip("-") != "0"
    decimal = marks[-1] in ".," and (len(rest) == 1 or (grouped and marks.count(marks[-1]) == 1))
    readings = ((thousands, digits), (decimal, digits.scaleb(-len(rest[-1]))))
    return {number for possible, number in readings if possible}


def _measured(match: re.Match[str], unit: str) -> set[Decimal] | None:
    """Return a number in the unit that is target; None for one that measures another thing."""
    name = (match["name"] or "").casefold()
    known = _UNITS.get(name) or _UNITS.get(name.removesuffix("s"))
    target = _UNITS.get(unit.casefold().removesuffix("s"))
    if known is None:
        return None if name == "%" else _numbers(match["amount"])
    if target is None or known[0] != target[0]:
        return set() if target is None else None
    return {number * known[1] / target[1] for number in _numbers(match["amount"])}


def _amounts(text: str, declared: bool) -> Iterator[_Found]:
    """Yield amounts with a currency; where there is none, numbers that can be amounts."""
    marked = list(_MONEY.finditer(text))
    yield from ((amount, _normal("currency", amount[0])) for amount in marked)
    for match in () if marked else _NUMBER.finditer(_blank(text, _DATE)):
        bare = declared or match[0] == text or re.search(r"[.,]\d\d\Z", match["amount"])
        yield match, _normal("currency", match["amount"]) if bare else ()


def _day(match: re.Match[str]) -> set[str]:
    """Return the day of a date; none without its year, or where day and month may be either."""
    text = match[0]
    if match["by"]:
        first, second = int(match["a"]), int(match["b"])
        if match["by"] != "." and max(first, second) <= 12 and first != second:
            return set()
        day_first = match["by"] == "." or first > 12
        text = f"{match['year']}-{second}-{first}" if day_first else text
    return {form for form in _normal("date", text) if form[0] != "-"}


def _normal(kind: str, text: str) -> set[str]:
    text = f"{text} min" if kind == "duration" and text[-1].isdigit() else text  # 1h45
    try:
        return {str(normalise(kind, text))}
    except InvalidValue:
        return set()


def _pattern(answer: ResolvedAnswer) -> re.Pattern[str]:
    known = (*answer.among, *answer.values) if answer.kind in ("text", "texts") else ()
    names = sorted({unaccented(strip_invisible(name)) for name in known if name})
    any_of = "|".join(map(re.escape, sorted(names, key=len, reverse=True))) or "(?!)"
    return re.compile(rf"(?<!\w)0?({any_of})(?!\w)", re.IGNORECASE)


def _names(answer: ResolvedAnswer, text: str, declared: bool) -> Iterator[_Found]:
    """Yield the names that may be an answer; in prose not a single word that is spelled like
    another (``may`` is no ``May``)."""
    lower = {name for name in (*answer.among, *answer.values) if name[:1].islower()}
    for match in _pattern(answer).finditer(text):
        if declared or " " in match[1] or not match[1][0].islower() or match[1] in lower:
            yield match, {normal_text(match[1])}
