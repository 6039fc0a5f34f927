"""The release's string_list, json, markdown, base64 and null."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import TYPE_CHECKING

from trajudge.rules.errors import InvalidValue, TooLarge
from trajudge.rules.limits import TEXT_CHARS, bounded, bounded_json, fullmatch, is_pattern
from trajudge.rules.values.release.text import as_text, scalar_text, treated

if TYPE_CHECKING:
    from pydantic import JsonValue


def string_list(raw: JsonValue) -> tuple[str, ...]:
    """Return the sorted items between commas."""
    if raw is None or raw == "":
        raise InvalidValue("not a list")
    text = str(as_text(scalar_text(raw), TEXT_CHARS))
    return tuple(sorted(filter(None, (part.strip() for part in text.split(",")))))


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


_BULLET = re.compile(r"([ \t]*)([*+-])( .*)")
_HEADING = re.compile(r"(#{1,6})\s+(.*)")


def markdown(raw: JsonValue) -> str:
    """Line breaks, white space at line ends, blank lines, bullets and their indents."""
    if not isinstance(raw, str) or not raw:
        raise InvalidValue("not a text")
    text = bounded(raw, TEXT_CHARS).replace("\r\n", "\n").replace("\r", "\n")
    lines = []
    for line in (line.rstrip() for line in text.split("\n")):
        if bullet := _BULLET.fullmatch(line):
            nested = len(bullet[1].expandtabs(4)) > 0
            lines.append(("  " if nested else "") + "-" + bullet[3])
        elif heading := _HEADING.fullmatch(line):
            lines.append(f"{heading[1]} {heading[2]}")
        else:
            lines.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


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
    return (is_pattern(one) and fullmatch(one, other, case_matters=True)) or (
        is_pattern(other) and fullmatch(other, one, case_matters=True)
    )


def null(raw: JsonValue) -> None:
    """None, blank text, an empty object, and five words."""
    if raw is None or raw == {}:
        return
    if not isinstance(raw, str) or as_text(raw) not in ("", "n/a", "na", "nan", "null", "none"):
        raise InvalidValue("a value where none is expected")
