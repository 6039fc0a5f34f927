"""Where in a reply a verdict stands, and the steps that a reasoning speaks of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import orjson

MOST_MARKS = 60
_VALUE = 120
_TAG = re.compile(
    r"<\s{0,3}(reasoning|success|side|optimal|loop|score|verdict|answer)(?:\s[^<>]{0,200})?>",
    re.IGNORECASE,
)
_LINE = re.compile(
    r"^[\s*_#>\"'`]{0,10}(status|score|verdict|answer|success)[*_\"'` ]{0,4}:(.{0,120})",
    re.IGNORECASE | re.MULTILINE,
)
_OBJECT = re.compile(r"\{")
_STEPS = re.compile(r"\bsteps?\s{1,3}#?(\d{1,4})(?:\s{0,2}(?:-|–|to|and)\s{0,2}(\d{1,4}))?", re.I)


class ReplyMark(NamedTuple):
    """A place of a reply from which a value may have been read: characters from 0, end beyond."""

    kind: str
    name: str
    start: int
    end: int
    value: str


class TextPart(NamedTuple):
    """A part of a text; ``step`` is the number of the step that it speaks of, None for none."""

    text: str
    step: int | None = None


def reply_marks(text: str) -> tuple[ReplyMark, ...]:
    """Find tags, lines such as ``Status: success`` and the fields of a JSON object, in order."""
    marks = sorted([*_tags(text), *_lines(text), *_fields(text)], key=lambda mark: mark.start)
    return tuple(marks[:MOST_MARKS])


def _tags(text: str) -> Iterator[ReplyMark]:
    lower = text.lower()
    for match in _TAG.finditer(text):
        name = match[1].lower()
        close = lower.find(f"</{name}>", match.end())
        end = close if close >= 0 else min(len(text), match.end() + _VALUE)
        yield ReplyMark("tag", name, match.start(), end, _cut(text[match.end() : end]))


def _lines(text: str) -> Iterator[ReplyMark]:
    for match in _LINE.finditer(text):
        yield ReplyMark("line", match[1].lower(), match.start(1), match.end(), _cut(match[2]))


def _fields(text: str) -> Iterator[ReplyMark]:
    """Yield the fields of the object from the first brace to the last."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        return
    try:
        fields = orjson.loads(text[start : end + 1].encode("utf-8", "replace"))
    except ValueError:
        return
    if isinstance(fields, dict):
        for name, value in fields.items():
            shown = value if isinstance(value, str) else orjson.dumps(value).decode()
            at = text.find(f'"{name}"', start)
            yield ReplyMark("JSON field", name, max(at, start), end + 1, _cut(shown))


def _cut(value: str) -> str:
    line = " ".join(value[: 4 * _VALUE].split())
    return line if len(line) <= _VALUE else f"{line[:_VALUE]}…"


def with_steps(text: str, steps: int) -> tuple[TextPart, ...]:
    """Split a text at its references to steps 1 to ``steps``."""
    parts: list[TextPart] = []
    at = 0
    for match in _STEPS.finditer(text):
        for group in (1, 2):
            number = int(match[group] or 0)
            if 1 <= number <= steps:
                start = match.start() if group == 1 else match.start(2)
                parts += [
                    TextPart(text[at:start]),
                    TextPart(text[start : match.end(group)], number),
                ]
                at = match.end(group)
    parts.append(TextPart(text[at:]))
    return tuple(part for part in parts if part.text)
