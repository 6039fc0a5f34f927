"""A message as sentences, and the values that they mention."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

from trajudge.environments.verify.mentions import ProseMention, digits_for_words, with_fractions
from trajudge.environments.verify.prose.segments import Segment, segments
from trajudge.rules.values.quantities import MONTHS
from trajudge.rules.values.texts import strip_invisible

MOST_SENTENCES = 400
MOST_MENTIONS = 150  # about as many are read, the rest is not
_MARKS = re.compile(r"\*\*|__|`+|~~|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])")
_LEAD = re.compile(r"^\s*(?:#{1,6}\s+|>\s+)?(?:(?:[-*•–]|\(?(\d{1,2})[.)])\s+)?(?!\s)")
_SHORT = re.compile(
    r"\b(?:approx|max|i\.e|e\.g|vs|dr|prof|mrs?|ms|incl|excl|resp|ca|est|st)\.(?=\s)"
    r"|\b(?:min|std|hrs?|dep|arr)\.(?=\s(?-i:[^A-Z]))",
    re.IGNORECASE,
)
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_SENTENCE_END = re.compile(
    rf"(?<=[.!?;])(?<!\s[^\W\d]\.)(?!(?<=\d\.)\s(?:{_MONTH})\b)\s+(?=\S)", re.IGNORECASE
)
_LEADS = re.compile(r"\b(?:is|was):? ?\Z", re.IGNORECASE)
_CAPITALISED = re.compile(r"\b[A-Z][\w-]+")
_RULE = re.compile(r"[\s|:-]+")
_ANSWER = re.compile(  # <answer>14</answer>, \boxed{14}
    r"<(final[ _-]?answer|answer|result)>(?P<tagged>.*?)</\1>"
    r"|\\boxed\{(?P<boxed>(?:[^{}]|\{[^{}]*\})*)\}",
    re.IGNORECASE | re.DOTALL,
)
_TAG = re.compile(r"</?[a-z][\w-]*(?: [^<>]*)?/?>", re.IGNORECASE)
_LATEX = ((re.compile(r"\{,\}"), ","), (re.compile(r"\\(?=[$%€&#_])|\\text(?=\{)"), ""))

Finder = Callable[[str], Sequence[ProseMention]]


@dataclass(frozen=True)
class Mention:
    """A value in a sentence. ``before`` reaches back to the mention before it or the beginning of
    the sentence (with the line above that ends in ``is:``), ``after`` on to the next one or the
    end; ``inside`` are parentheses. ``previous`` is the sentence before, ``message`` the whole."""

    form: str
    sure: bool
    sentence: int
    line: int
    text: str
    before: str
    after: str
    whole_before: str
    whole_after: str
    inside: bool
    segment: Segment
    previous: str
    message: str


@lru_cache(maxsize=64)
def capitals(message: str) -> frozenset[str]:
    """Return the words that are written with a capital, in small letters."""
    return frozenset(word.casefold() for word in _CAPITALISED.findall(message))


def without_stops(text: str) -> str:
    """Return the text without the full stops of abbreviations: they end no sentence."""
    return _SHORT.sub(lambda word: word[0][:-1], text)


def lines(message: str, tidy: Callable[[str], str]) -> Iterator[str]:
    """Yield the lines that say something, without Markdown's marks, numbers in digits."""
    unmarked = [_MARKS.sub("", line) for line in without_tags(message).splitlines()]
    numbers = {int(lead[1]) for line in unmarked if (lead := _LEAD.match(line)) and lead[1]}
    for line in unmarked:
        plain = _LEAD.sub(partial(_without_number, numbers), line, count=1)
        if plain.strip() and not _RULE.fullmatch(plain):
            yield without_stops(tidy(digits_for_words(strip_invisible(with_fractions(plain)))))


def without_tags(message: str) -> str:
    """Return the message without tags and TeX; what is tagged or boxed as the answer says so."""
    if "<" in message:
        message = _TAG.sub(" ", _ANSWER.sub(_as_answer, message))
    if "\\" in message:
        message = _ANSWER.sub(_as_answer, message)
        for pattern, plain in _LATEX:
            message = pattern.sub(plain, message)
    return message


def _as_answer(match: re.Match[str]) -> str:
    return f"\nAnswer: {(match['tagged'] or match['boxed'] or '').strip()}\n"


def _without_number(numbers: set[int], lead: re.Match[str]) -> str:
    """Remove the number of a line in a list of ``numbers``: "4. All the best" has no line 3."""
    number = int(lead[1] or 1)
    in_a_list = number == 1 or {number - 1, number + 1} & numbers
    return "" if in_a_list else f"{lead[1]}. "


def sentences(line: str) -> list[str]:
    """Return the sentences of a line."""
    return _SENTENCE_END.split(line)


def passage(message: str, find: Finder, tidy: Callable[[str], str] = str) -> list[Mention]:
    """Return every mention that ``find`` sees, in the order of the message."""
    mentions: list[Mention] = []
    number, lead, previous = 0, "", ""
    for index, line in enumerate(lines(message, tidy)):
        for sentence in sentences(line):
            number += 1
            if number > MOST_SENTENCES or len(mentions) > MOST_MENTIONS:
                return mentions
            around = _Around(number, index, lead, previous, message)
            mentions += _mentions(sentence, find(sentence), around)
            lead, previous = "", sentence
        lead = f"{line} " if _LEADS.search(line) else ""
    return mentions


class _Around(NamedTuple):
    sentence: int
    line: int
    lead: str
    previous: str
    message: str


def _mentions(sentence: str, values: Sequence[ProseMention], around: _Around) -> Iterator[Mention]:
    values = values[: MOST_MENTIONS + 1]
    places = sorted({value[:2] for value in values})
    sure = {value[:2] for value in values if value.sure}
    parts = dict(zip(places, segments(sentence, places, sure), strict=True))
    ends = dict(zip(places, [0, *(end for _, end in places)], strict=False))
    starts = dict(zip(places, [start for start, _ in places[1:]], strict=False))
    for place, value in enumerate(values):
        start, end = ends[value[:2]], starts.get(value[:2])
        earlier = sentence[: value.start]
        yield Mention(
            form=value.form,
            sure=value.sure,
            sentence=around.sentence,
            line=around.line,
            text=sentence[value.start : value.end],
            before=("" if place else around.lead) + sentence[start : value.start],
            after=sentence[value.end : end],
            whole_before=earlier,
            whole_after=sentence[value.end :],
            inside=earlier.count("(") > earlier.count(")"),
            segment=parts[value[:2]],
            previous=around.previous,
            message=around.message,
        )
