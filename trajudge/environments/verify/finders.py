"""The values of one family in a text, in the forms that answers are compared in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Literal

from trajudge.environments.model.spec import TODAY
from trajudge.environments.verify.mentions import ProseKind, ProseMention, mentions
from trajudge.environments.verify.names import is_clock, may_mean, name_form, names, times
from trajudge.environments.verify.prose.passages import lines
from trajudge.environments.verify.prose.qualifiers import is_label
from trajudge.environments.verify.prose.question import Question, stems
from trajudge.rules.limits import InvalidValue
from trajudge.rules.values import normalise
from trajudge.rules.values.quantities import parse_duration
from trajudge.rules.values.texts import normal_text

Family = Literal["money", "number", "date", "duration", "names", "code"]
Find = Callable[[str], list[ProseMention]]

_NEAR = 40  # characters before a number that say what it is
ROUNDED = 30  # seconds by which a duration in hours with decimals may differ
KINDS: dict[Family, ProseKind] = {
    "money": "currency",
    "number": "number",
    "date": "date",
    "duration": "duration",
}
_SCREEN = re.compile(
    r"\A ?(?:pages?|attempts?|steps?|tabs?|clicks?|times|tries|screens?|searches|filters?)\b", re.I
)
_ZERO = re.compile(
    r"\bnone\b|\bno (?!more\b|less\b|longer\b)((?:\w+ ?){1,3})"
    r"|(?:\bnot|n't) (?:\w+ ){1,2}any ((?:\w+ ?){1,3})",
    re.IGNORECASE,
)
_LETTER = re.compile(r"(?![hmsgltxkd])[a-z](?!\w)", re.IGNORECASE)  # "8c"
_YEAR = re.compile(r"\b(?:in|since|during|for|of|year|until|from|by) $", re.IGNORECASE)
_OF_YEAR = re.compile(r"(?:19|20)\d\d")
_MARK = re.compile(r"[$€£¥]|[a-z]", re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<=\d)[ .'’\u00a0\u2009\u202f](?=\d{3}(?!\d))")
_FOREIGN_HOURS = re.compile(
    r"\b(?:stunden?|heures?|horas?|ore|uur|minuten|minutos?)\b", re.IGNORECASE
)
_DIGITS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")


@lru_cache(maxsize=4096)
def form_of(family: Family, value: str) -> str:
    """Return the normal form that a mention of the value has."""
    if family == "names":
        return name_form(value)
    if family == "code":
        return value.replace("-", "").upper()
    return str(normalise(KINDS[family], value))


def tidy(family: Family) -> Callable[[str], str]:
    """Return what a line goes through before it is searched."""
    return normal_text if family == "names" else str


def same(family: Family) -> Callable[[str, str], bool]:
    """Return how two forms compare: a duration as rounded hours (2.67 h) is the same."""
    return _same_duration if family == "duration" else str.__eq__


@lru_cache(maxsize=4096)
def _same_duration(wanted: str, form: str) -> bool:
    if wanted == form:
        return True
    try:
        seconds = [parse_duration(one).value for one in (wanted, form)]
    except InvalidValue:
        return False
    return abs(seconds[0] - seconds[1]) <= ROUNDED


def finder(
    family: Family, among: tuple[str, ...], question: Question, currency: str = "USD"
) -> Find:
    """Return what finds the family's values in a sentence; ``currency`` is that of amounts without
    one."""
    if family == "names":
        if among and all(is_clock(name) for name in among):
            return lambda sentence: sorted(times(sentence))
        return lambda sentence: list(names(sentence, among, question))
    if family == "number":
        return lambda sentence: sorted(_numbers(sentence, question))
    if family == "date":
        return lambda sentence: list(_dates(sentence))
    if family == "money":
        return lambda sentence: sorted(_amounts(sentence, question, currency))
    kind = KINDS[family]
    return lambda sentence: mentions(kind, sentence)


def _numbers(sentence: str, question: Question) -> Iterator[ProseMention]:
    """Yield numbers that count no pages and attempts; "no alerts" is 0 where alerts are counted."""
    for one in mentions("number", sentence):
        before = sentence[max(0, one.start - _NEAR) : one.start]
        named = is_label(question.text, before) or _LETTER.match(sentence, one.end)
        screen = _SCREEN.match(sentence[one.end :]) and not _SCREEN.match(" " + question.text)
        year = _YEAR.search(before) and _OF_YEAR.fullmatch(one.form)
        if not named and not screen and not (year and question.counts):
            yield one
    yield from (one._replace(form="0", sure=True) for one in _nothing(sentence, question))
    if question.asks_year:
        yield from _years(sentence)
    marked = mentions("currency", sentence) if any(mark in sentence for mark in "$€£¥") else ()
    for one in marked:  # "in billions: $27.0 billion"
        if digits := _DIGITS.search(sentence[one.start : one.end]) if one.sure else None:
            yield ProseMention(one.start, one.end, str(normalise("number", digits[0])), False)


def _years(sentence: str) -> Iterator[ProseMention]:
    """Yield the years of days: ``12 May 1894``."""
    for one in mentions("date", sentence):
        if one.sure and not one.form.startswith("--"):
            yield one._replace(form=one.form[:4])


def _amounts(sentence: str, question: Question, currency: str) -> Iterator[ProseMention]:
    """Yield amounts of money; "no money spent" may be 0 where that is asked."""
    for one in (*mentions("currency", sentence), *_nothing(sentence, question)):
        bare = not _MARK.search(sentence[one.start : one.end])
        yield one._replace(form=one.form.replace("USD", currency, 1)) if bare else one


def hint(family: Family, among: tuple[str, ...], goal: str) -> Callable[[str, Sequence[str]], bool]:
    """Return what tells whether a message may state values that were not found in it."""
    if family == "names":
        return lambda message, missing: may_mean(message, missing, among, goal)
    if family in ("number", "money"):
        return lambda message, missing: (
            _has_digits(message, missing, family) or _has_groups(message, missing)
        )
    if family == "duration":
        return lambda message, missing: (
            _has_digits(message, missing, family)
            or bool(_FOREIGN_HOURS.search(message) and not re.search(r"\d", message))
        )
    return lambda message, missing: False


def _has_groups(message: str, missing: Sequence[str]) -> bool:
    """Tell whether the missing numbers stand in the message with their thousands set apart in
    another way than in English: ``18 450``, ``18.450``."""
    joined = _THOUSANDS.sub("", message)
    digits = [form.rpartition(" ")[2].removesuffix(".00") for form in missing]
    return joined != message and all(
        re.search(rf"(?<![\d.,]){re.escape(one)}(?!\d|[.,]\d)", joined) for one in digits
    )


def _has_digits(message: str, missing: Sequence[str], family: Family) -> bool:
    """Tell whether the groups of digits of the missing values stand in the message in their order,
    outside of the values that were found."""
    groups = re.findall(r"\d+", " ".join(missing))
    in_order = r"\b.{0,20}?\b".join(rf"(?<!\d)0*{group}(?!\d)" for group in groups)
    return len(groups) > 1 and any(
        re.search(in_order, _unread(line, family)) for line in lines(message, str)
    )


def _unread(line: str, family: Family) -> str:
    """Return a line with the values that are surely of the family blanked out."""
    for one in mentions(KINDS[family], line):
        if one.sure:
            line = f"{line[: one.start]}{' ' * (one.end - one.start)}{line[one.end :]}"
    return line


def _nothing(sentence: str, question: Question) -> Iterator[ProseMention]:
    """Yield where a text says that there is none of what the goal asks about."""
    for zero in _ZERO.finditer(sentence):
        counted = zero[1] or zero[2]
        if counted is None or stems(counted) & question.stems:
            yield ProseMention(zero.start(), zero.start() + 2, "USD 0.00", False)


def _dates(sentence: str) -> Iterator[ProseMention]:
    """Yield days; one without its year is of this year or the last."""
    for one in mentions("date", sentence):
        if not one.form.startswith("--"):
            yield one
            continue
        for year in (int(TODAY[:4]), int(TODAY[:4]) - 1):
            yield one._replace(form=f"{year}{one.form[1:]}")
