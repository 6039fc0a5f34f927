"""Names of files and texts of others, as they may stand in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NO_FILE_NAME = re.compile(r"[^\w.-]+")
_TICKS = re.compile(r"`+")


def file_names(judges: Iterable[str]) -> dict[str, str]:
    """Return a file name without its ending for every judge, each another."""
    names: dict[str, str] = {}
    for judge in judges:
        name = plain = _NO_FILE_NAME.sub("-", judge).strip(".-") or "judge"
        number = 1
        while name.lower() in {one.lower() for one in names.values()}:
            number += 1
            name = f"{plain}-{number}"
        names[judge] = name
    return names


def cell(text: str) -> str:
    """Return a text that ends neither a table's cell nor its line, and is no HTML or link."""
    line = visible(" ".join(text.split()))
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", line)


def fenced(lines: Iterable[str], language: str = "") -> list[str]:
    """Return lines as a block of code that nothing in them ends."""
    shown = [visible(line) for line in lines]
    longest = max((len(run) for line in shown for run in _TICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", *shown, fence]


def visible(text: str) -> str:
    """Return the text with whatever a reader would not see, but tabs, as its number."""
    return "".join(
        letter if letter.isprintable() or letter == "\t" else f"\\u{{{ord(letter):x}}}"
        for letter in text
    )
