"""Names and times of day in a text, as people write them: ``Solberg, Mira``, ``2:35 p.m.``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from trajudge.environments.verify.mentions import ProseMention
from trajudge.environments.verify.prose.passages import without_stops
from trajudge.environments.verify.prose.question import Question, stem, stems
from trajudge.rules.values.texts import normal_text

_CLOCK = re.compile(r"(\d{1,2})[:.](\d{2})(?: ?(am|pm|a\.m\.?|p\.m\.?))?", re.IGNORECASE)
_HALF = r"(?: ?(am\b|pm\b|a\.m\b\.?|p\.m\b\.?|(?:o'clock )?in the (?:morning|afternoon|evening)))"
_TIME = re.compile(
    rf"(?<![\w:.,])(\d{{1,2}})(?:[:h](\d{{2}}))(?::\d{{2}})?(?![\d:]){_HALF}?"
    rf"|(?<![\w:.,])(\d{{1,2}})(?:\.(\d{{2}}))?(?: ?o'clock)?{_HALF}"
    rf"|(?<![\w:.,])(\d{{1,2}})\.(\d{{2}})(?= ?(?:uhr|h|hrs|hours)\b)",
    re.IGNORECASE,
)
_PAST = re.compile(
    rf"\b(half|quarter|\d{{1,2}}(?: minutes)?) (past|to) (\d{{1,2}})\b(?![:.]\d){_HALF}?",
    re.IGNORECASE,
)
_MINUTES = {"half": 30, "quarter": 15}
_NOON = 12
_SHORTEST = 4  # letters of a word by which a name may be known


def name_form(value: str) -> str:
    """Return the normal form of a name; of a time of day, the hours of 24 and the minutes."""
    form = without_stops(normal_text(value))
    if clock := _CLOCK.fullmatch(form):
        hour = _of_24(int(clock[1]), clock[3])
        return f"{hour:02}:{clock[2]}"
    return form


def is_clock(value: str) -> bool:
    """Tell whether a value is a time of day."""
    return bool(_CLOCK.fullmatch(normal_text(value)))


def times(sentence: str) -> Iterator[ProseMention]:
    """Yield times of day; one without "pm" may be of the afternoon, too."""
    for time in _TIME.finditer(sentence):
        groups = [group for group in time.groups() if group]
        half = groups.pop() if not groups[-1].isdigit() else None
        hour, minute = int(groups[0]), int(groups[1]) if len(groups) > 1 else 0
        padded = groups[0].startswith("0")
        yield from _at(time.span(), hour, minute, half, exact=True, padded=padded)
    for time in _PAST.finditer(sentence):
        minutes = _MINUTES.get(time[1].casefold()) or int(time[1].split()[0])
        passed = int(time[3]) * 60 + (minutes if time[2].casefold() == "past" else -minutes)
        yield from _at(time.span(), passed // 60 % 24, passed % 60, time[4], exact=False)


def _at(
    span: tuple[int, int],
    hour: int,
    minute: int,
    half: str | None,
    *,
    exact: bool,
    padded: bool = False,
) -> Iterator[ProseMention]:
    if hour > 24 or minute > 59:
        return
    known = exact or bool(half) or not 1 <= hour < _NOON
    yield ProseMention(*span, f"{_of_24(hour, half):02}:{minute:02}", known)
    if not half and 1 <= hour < _NOON and not padded:
        yield ProseMention(*span, f"{hour + _NOON:02}:{minute:02}", False)


def _of_24(hour: int, half: str | None) -> int:
    if not half:
        return hour
    late = half.casefold().startswith("p") or half.casefold().endswith(("afternoon", "evening"))
    return hour % _NOON + (_NOON if late else 0)


def names(sentence: str, among: tuple[str, ...], question: Question) -> Iterator[ProseMention]:
    """Yield the names that a sentence mentions. "Copper" is the Room Copper where a room is asked
    for, "Solberg, Mira" is Mira Solberg."""
    if not among:
        return
    pattern, forms = _patterns(among, question.text, question.stems)
    for name in pattern.finditer(sentence):
        yield ProseMention(*name.span(), forms[name[0]], True)


@lru_cache(maxsize=512)
def _patterns(
    among: tuple[str, ...], goal: str, goal_stems: frozenset[str]
) -> tuple[re.Pattern[str], Mapping[str, str]]:
    full = dict.fromkeys(name_form(name) for name in among)
    forms = {form: form for form in full}
    shared = Counter(word for form in full for word in set(form.split()))
    heads = {word for word, count in shared.items() if count > 1 and stem(word) in goal_stems}
    short = {form: _without_heads(form, heads) for form in full}
    often = Counter(short.values())
    for form, rest in short.items():
        if rest and often[rest] == 1 and rest not in goal.casefold() and stems(rest):
            forms.setdefault(rest, form)
        first, _, last = form.rpartition(" ")
        if first and all(word.isalpha() for word in form.split()):
            forms.setdefault(f"{last}, {first}", form)
    ranked = sorted(forms, key=lambda form: (-len(form), form))
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, ranked))})(?!\w)"), forms


def _without_heads(form: str, heads: set[str]) -> str:
    """Return a name without the noun of which the goal asks, "" if it is nothing else."""
    words = form.split()
    if len(words) > 1 and words[0] in heads:
        return " ".join(words[1:])
    return " ".join(words[:-1]) if len(words) > 1 and words[-1] in heads else ""


def may_mean(message: str, missing: Sequence[str], among: tuple[str, ...], goal: str) -> bool:
    """Tell whether a message has, of each missing name, a word that no other name has."""
    if len(among) <= len(missing):
        return False
    of_message = set(re.findall(r"\w+", normal_text(message)))
    of_goal = set(re.findall(r"\w+", goal.casefold()))
    for form in missing:
        others = {
            word for name in among if (one := name_form(name)) != form for word in one.split()
        }
        own = {word for word in form.split() if len(word) >= _SHORTEST and word.isalpha()}
        if len(form.split()) == 1 or not (own - others - of_goal) & of_message:
            return False
    return True
