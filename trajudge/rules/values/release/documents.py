"""The release's string_list, json, markdown, base64 and null."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from trajudge.rules.errors import InvalidValue, TooLarge
from trajudge.rules.limits import TEXT_CHARS, bounded, bounded_json, is_pattern
from trajudge.rules.values.release.text import as_text, matches, scalar_text, treated

if TYPE_CHECKING:
    from pydantic import JsonValue


def string_list(raw: JsonValue) -> tuple[str, ...]:
    """Return the sorted items between commas."""
    if not raw:
        raise InvalidValue("not a list")
    parts = scalar_text(as_text(raw, TEXT_CHARS)).split(",")
    items = sorted(filter(None, (part.strip() for part in parts)))
    if not items:
        raise InvalidValue("a list without an item")
    return tuple(items)


def json_text(raw: JsonValue) -> str:
    """Sorted keys, after the common treatment of the whole text: case and accents are lost."""
    if not isinstance(raw, str):
        raise InvalidValue("not a JSON text")
    text = treated(bounded(raw, TEXT_CHARS))
    try:
        value = json.loads(text)
        bounded_json(value)
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except RecursionError as error:
        raise TooLarge("JSON nested too deep") from error
    except ValueError as error:
        raise InvalidValue("not JSON") from error


_HEADING = re.compile(r"(\s*#{1,6})[ \t]+")
_BULLET = re.compile(r"(\s*)[*+][ \t]+")
_INDENTED = re.compile(r"[ \t]+-")


def markdown(raw: JsonValue) -> str:
    """Line breaks, white space at line ends, blank lines, bullets and their indents, and the white
    space within brackets and at the edges of parentheses."""
    if not isinstance(raw, str) or not raw.strip():
        raise InvalidValue("not a text")
    text = bounded(raw, TEXT_CHARS).strip().replace("\r\n", "\n").replace("\r", "\n")
    text = "\n".join(line.rstrip(" \t") for line in text.split("\n"))
    text = "\n".join(map(_line, re.sub(r"\n{3,}", "\n\n", text).split("\n")))
    text = _within(text, "[]", lambda inner: " ".join(inner.split()))
    return _within(text, "()", lambda inner: inner.strip() or inner[-1]).strip()


def _line(line: str) -> str:
    line = _HEADING.sub(r"\1 ", line, count=1) if _HEADING.match(line) else line
    line = _BULLET.sub(r"\1- ", line, count=1) if _BULLET.match(line) else line
    return _INDENTED.sub("  -", line, count=1) if _INDENTED.match(line) else line


def _within(text: str, marks: str, change: Callable[[str], str]) -> str:
    """Return the text with what stands between two marks changed; not what is left open."""
    kept, done = [], 0
    start = text.find(marks[0])
    while start >= 0 and (end := text.find(marks[1], start + 1)) >= 0:
        if end > start + 1:
            kept += [text[done : start + 1], change(text[start + 1 : end])]
            done = end
        start = text.find(marks[0], end)
    return "".join(kept) + text[done:]


def base64_text(raw: JsonValue) -> str:
    """Return the decoded text, or a pattern as it is."""
    if not isinstance(raw, str) or not raw.strip():
        raise InvalidValue("not base64")
    text = bounded(raw, TEXT_CHARS).strip()
    if is_pattern(text):
        return text
    try:
        decoded = base64.b64decode(text, validate=True).decode("utf-8")
    except (binascii.Error, ValueError) as error:
        raise InvalidValue("not base64 of UTF-8 text") from error
    return decoded.replace("\r\n", "\n").replace("\r", "\n").strip()


def same_base64(one: str, other: str) -> bool:
    """Equal, or either is a pattern that matches the other."""
    if one == other:
        return True
    return matches(one, other, case_matters=True) or matches(other, one, case_matters=True)


def null(raw: JsonValue) -> None:
    """None, blank text, an empty object, and five words, whatever stands around a slash."""
    if raw is None or raw in ({}, []):
        return
    words = " ".join(raw.lower().split()) if isinstance(raw, str) else "-"
    if re.sub(r" ?/ ?", "/", words) not in ("", "n/a", "na", "nan", "null", "none"):
        raise InvalidValue("a value where none is expected")
