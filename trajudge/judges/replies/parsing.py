"""From a model's reply to a verdict: pure functions ``str -> Verdict``.

A verdict is looked for outside of the reasoning, where words of the page may be quoted; its words
must match exactly; two that contradict each other are no verdict. Every function is linear in the
length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar

from trajudge.judges.model import Verdict
from trajudge.trajectories.model import checked, defaults_of


class ParseFailure(Exception):
    """The reply holds no verdict, or contradicting ones. One sentence that says which."""


_Label = TypeVar("_Label", bool, int)

_SUCCESS = {
    **dict.fromkeys(("successful", "success", "succeeded", "yes", "true"), True),
    **dict.fromkeys(
        ("unsuccessful", "unsuccesful", "not successful", "failure", "failed", "no", "false"), False
    ),
}
_YES_NO = {"yes": True, "true": True, "no": False, "false": False}
_GRADES = ("complete failure", "suboptimal", "somewhat optimal", "completely optimal")
_OPTIMALITY = {
    spelling: grade
    for grade, name in enumerate(_GRADES, start=1)
    for spelling in (str(grade), name, f"{grade} {name}")
}
_STATUS = {
    **dict.fromkeys(("success", "successful"), True),
    **dict.fromkeys(("failure", "failed", "unsuccessful", "not success", "not successful"), False),
}

_TAG = re.compile(
    r"(<\s{0,3}(/?)\s{0,3}(reasoning|success|side|optimal|loop)(?:\s[^<>]{0,200})?/?>)",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"</?[a-z][^<>]{0,60}>", re.IGNORECASE)
_NOT_WORD = re.compile(r"[\W_]+")
_THINK_END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_THINK_START = re.compile(r"<think(?:ing)?>", re.IGNORECASE)


def normalise(value: str) -> str:
    """Reduce to lower-case words and numbers with single blanks between: markup, quotes and other
    punctuation are removed."""
    if value.isalnum():
        return value.casefold()
    return _NOT_WORD.sub(" ", _MARKUP.sub(" ", value)).strip().casefold()


def without_thinking(text: str) -> str:
    """Remove the ``<think>`` block of reasoning models, also one that is cut off."""
    if text.isascii() and "think" not in text.lower():  # as most: told faster than by the patterns
        return text
    *_, answer = _THINK_END.split(text)
    return _THINK_START.split(answer, maxsplit=1)[0]


class _Tags(NamedTuple):
    """The tags of a reply, by their place: how each is ``written``, its ``names``, and whether it
    ``closes``. ``texts`` are what stands between them: one more, the first before all tags."""

    written: list[str]
    names: list[str]
    closes: list[str]
    texts: list[str]


def parse_tags(text: str) -> Verdict:
    """Parse the verdict in ``<success>``, ``<side>``, ``<optimal>`` and ``<loop>``, in any order.

    Tags inside ``<reasoning>...</reasoning>`` do not count; a reasoning block that is never closed
    hides nothing. A label other than success that is missing or unknown (``Unsure``) is None.
    Raises ParseFailure if success is missing or not a verdict, or if a label contradicts itself.
    """
    pieces = _TAG.split(without_thinking(text))
    names = [name.lower() for name in pieces[3::4]]
    tags = _Tags(pieces[1::4], names, pieces[2::4], pieces[::4])
    hidden = _reasoning_pairs(tags)
    values = _values(tags, hidden)
    success = _one("success", values, _SUCCESS)
    if success is None:
        raise ParseFailure(_no_success(values))
    labels: dict[str, Any] = {
        "success": success,
        "side_effect": _one("side", values, _YES_NO),
        "repetition": _one("loop", values, _YES_NO),
        "optimality": _one("optimal", values, _OPTIMALITY),
        "scores": {},
        "reasoning": _reasoning(tags, hidden),
    }
    return checked(Verdict, _BLANK | labels)


_BLANK = defaults_of(Verdict)


def _reasoning_pairs(tags: _Tags) -> list[tuple[int, int]]:
    """Pair the outermost opening and closing reasoning tags, in order; an opening tag that is never
    closed, and a closing one that was never opened, are text."""
    opened: list[int] = []
    pairs: list[tuple[int, int]] = []
    for place, name in enumerate(tags.names):
        if name != "reasoning":
            continue
        if not tags.closes[place]:
            opened.append(place)
        elif opened:
            start = opened.pop()
            while pairs and pairs[-1][0] > start:
                pairs.pop()
            pairs.append((start, place))
    return pairs


def _values(tags: _Tags, hidden: list[tuple[int, int]]) -> dict[str, list[str]]:
    """Return the normalised values of every opening tag outside of the hidden pairs, by name: up to
    the next tag; empty ones are left out. A tag that is not closed by its own ends with its
    line."""
    values: dict[str, list[str]] = {}
    remaining = iter(hidden)
    pair = next(remaining, None)
    for place, name in enumerate(tags.names):
        if pair is not None and place > pair[0]:
            if place == pair[1]:
                pair = next(remaining, None)
            continue
        if tags.closes[place] or name == "reasoning":
            continue
        value, following = tags.texts[place + 1], place + 1
        is_closed = following < len(tags.names) and tags.names[following] == name
        if not (is_closed and tags.closes[following]):
            value = value.lstrip().split("\n", 1)[0]
        if words := normalise(value[:200]):
            values.setdefault(name, []).append(words)
    return values


def _one(
    name: str, values: Mapping[str, list[str]], meanings: Mapping[str, _Label]
) -> _Label | None:
    """Return the meaning of all values of this name; None if there is none, or one without a
    meaning."""
    said = values.get(name, ())
    if len(said) < 2:
        return meanings.get(said[0]) if said else None
    labels = {meanings.get(value) for value in said}
    known = labels - {None}
    if len(known) > 1:
        raise ParseFailure(f"the reply contradicts itself about <{name}>")
    return labels.pop() if len(labels) == 1 else None


def _no_success(values: Mapping[str, list[str]]) -> str:
    unknown = [value for value in values.get("success", ()) if value not in _SUCCESS]
    if not unknown:
        return "the reply holds no <success> verdict outside of its reasoning"
    return f"the reply's <success> says {unknown[0][:40]!r}, which is neither verdict"


def _reasoning(tags: _Tags, hidden: list[tuple[int, int]]) -> str:
    """Return the reasoning blocks; without one, the text before the first verdict."""
    if hidden:
        return "\n".join(_inside(tags, start, end).strip() for start, end in hidden)
    names = enumerate(tags.names)
    first = next((place for place, name in names if name != "reasoning"), len(tags.names))
    return "".join(tags.texts[: first + 1]).strip()


def _inside(tags: _Tags, start: int, end: int) -> str:
    """Return the text from one tag to another, with the tags in it."""
    more = (tags.written[place] + tags.texts[place + 1] for place in range(start + 1, end))
    return tags.texts[start + 1] + "".join(more)


# A value and what decorates it take no more characters than this.
_REACH = 80
_THOUGHTS = re.compile(r"\A[\s*_#>\"'`]*(?:thoughts?|reasoning)[*_\"'` ]{0,4}:", re.IGNORECASE)
_GRADE = re.compile(
    r"(\d{1,3}(?:\.\d{1,3})?)(?: ?(?:/|out of) ?(\d{1,3}))?(?: points?)?(\W+[^\d]*)?"
)
_DECORATION = "*_\"'`()[]<>=#. \t\r"

_Value = TypeVar("_Value", bool, float)


class Grade(NamedTuple):
    """A number on a judge's scale, and the reasoning before it."""

    value: float
    reasoning: str


def parse_status_line(text: str) -> Verdict:
    """Parse the verdict in ``Status: success`` (AER, WebVoyager, WebJudge), quoted or not.

    Lines that begin with it decide. Where there is none, a ``Status:`` whose verdict ends a line
    of reasoning counts; one in the middle of a line is a quotation.
    Raises ParseFailure if there is no verdict or contradicting ones.
    """
    text = without_thinking(text)
    verdicts = set(_marked("status", text, lambda line, _: _STATUS.get(normalise(line))))
    if not verdicts:
        raise ParseFailure("the reply holds no line with  Status: success  or  Status: failure")
    if len(verdicts) > 1:
        raise ParseFailure("the reply gives two contradicting statuses")
    return Verdict(success=verdicts.pop(), reasoning=_before("status", text))


def parse_grade_line(text: str, name: str, low: float, high: float) -> Grade:
    """Parse the number in ``Score: 4`` (``name`` score), also ``4/5``, ``4 out of 5`` and
    decorated.

    Which line counts is as with ``parse_status_line``. Raises ParseFailure if there is no such
    line, if its number is not in ``low`` to ``high`` or on another scale, or if two differ.
    """
    text = without_thinking(text)
    title = name.capitalize()
    numbers = set(_marked(name, text, partial(_grade, high)))
    if not numbers:
        raise ParseFailure(f"the reply holds no line  {title}:  with a number up to {high:g}")
    if len(numbers) > 1:
        raise ParseFailure(f"the reply gives contradicting numbers for  {title}:")
    value = numbers.pop()
    if not low <= value <= high:
        raise ParseFailure(f"the reply says  {title}: {value:g} , not {low:g} to {high:g}")
    return Grade(value, _before(name, text))


def _grade(high: float, line: str, begins: bool) -> float | None:
    """Return the only number of the line, which starts with it; None for a share of another scale.
    Words may explain it where the line ``begins`` with the name."""
    match = _GRADE.fullmatch(line.strip(_DECORATION).casefold())
    if match is None or (match[2] and float(match[2]) != high) or (match[3] and not begins):
        return None
    return float(match[1])


@cache
def _mark(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![a-z0-9]){re.escape(name)}[*_\"'` ]{{0,4}}:", re.IGNORECASE)


def _marked(name: str, text: str, meaning: Callable[[str, bool], _Value | None]) -> list[_Value]:
    """Return the meanings of the lines that begin with ``name:``; without one, of those in which it
    comes later. ``meaning`` gets the rest of the line, and whether the line begins so."""
    own: list[_Value] = []
    trailing: list[_Value] = []
    for mark in _mark(name).finditer(text):
        rest = text[mark.end() : mark.end() + _REACH].lstrip()
        begins = _begins_line(text, mark.start())
        value = meaning(rest.split("\n", 1)[0], begins)
        if value is not None:
            (own if begins else trailing).append(value)
    return own or trailing


def _begins_line(text: str, start: int) -> bool:
    """Tell whether nothing but markup stands before ``start`` on its line."""
    before = text[max(0, start - _REACH) : start]
    return not normalise(before.rpartition("\n")[2])


def _before(name: str, text: str) -> str:
    """Return the reasoning: the text before the last ``name:``."""
    thoughts = _THOUGHTS.sub("", text)
    last = max((mark.start() for mark in _mark(name).finditer(thoughts)), default=len(thoughts))
    return thoughts[:last].strip().rstrip("*_#\"'` \n")
