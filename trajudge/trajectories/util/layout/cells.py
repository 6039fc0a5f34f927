"""Texts by the columns that a terminal gives them, which are not their characters: a wide one (CJK,
an emoji) takes two, a combining mark none. Measured, cut, padded and broken into lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

# What our own texts consist of; each takes one column, and measuring it needs no library.
_NARROW = re.compile("[ -~\xa0-\u02ff\u0370-\u0482\u2010-\u2027\u2030-\u205e\u2190-\u22ff]*")
_WORD = re.compile(r"[ \t\n]+|[^ \t\n]+")
_JOINTS = "-_/:.,;|"  # after which a long word is broken rather than elsewhere

STIFF = "\xa0"  # a space where no line is broken


def cells(text: str) -> int:
    """Count the columns that a terminal gives a line of text."""
    if _NARROW.fullmatch(text):
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - only names that others gave need it

    return cell_len(text)


def elided(name: str, width: int) -> str:
    """Shorten a name to ``width`` columns by leaving out its middle."""
    if cells(name) <= width:
        return name
    units = list(_units(name))
    head = _first(units, min(max((width - 1) * 2 // 3, 1), width - 1))
    tail = _first(reversed(units), width - 1 - cells("".join(head)))
    return f"{''.join(head)}…{''.join(reversed(tail))}"


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Fill a text up to ``width`` columns; it stands left, or ``right``."""
    blanks = " " * (width - cells(text))
    return blanks + text if right else text + blanks


def broken(text: str, width: int, *, indent: str = "", whole: bool = False) -> list[str]:
    """Break a text at spaces into lines of at most ``width`` columns, the later ones indented.

    A word that is longer than a line is broken after a punctuation mark, where it has one;
    ``whole``: a path only between wide characters, so that it can be copied.
    """
    lines: list[str] = []
    line = ""
    for part in _WORD.findall(text):
        if not part.strip():
            line += part if line.strip() or not lines else ""
            continue
        if cells(line + part) > width and line.strip():
            lines.append(line.rstrip())
            line = indent
        path = whole and "/" in part
        *full, last = _pieces(part, width - cells(line), width - cells(indent), whole=path)
        for piece in full:
            lines.append(line + piece)
            line = indent
        line += last
    return [*lines, line.rstrip()] if line.strip() else lines


def stiff(text: str, *parts: str) -> str:
    """Keep a number and its percent sign on one line, and each of ``parts`` with what its spaces
    part it from, until ``loosened``."""
    for part in (" %", *parts):
        text = text.replace(part, part.replace(" ", STIFF))
    return text


def loosened(text: str) -> str:
    """Turn the spaces of ``stiff`` into ordinary ones."""
    return text.replace(STIFF, " ")


def hanging(label: str, text: str, width: int) -> list[str]:
    """Put a text beside its label, its later lines below the first."""
    return broken(label + text, width, indent=" " * len(label))


def _units(text: str) -> Iterator[str]:
    """Divide a text where a terminal could: marks and joined emoji stay together."""
    unit = ""
    for character in text:
        size = cells(character)
        if unit and size and cells(unit + character) - cells(unit) == size:
            yield unit
            unit = ""
        unit += character
    if unit:
        yield unit


def _first(units: Iterable[str], width: int) -> list[str]:
    """Return as many units as ``width`` columns hold."""
    chosen: list[str] = []
    for unit in units:
        width -= cells(unit)
        if width < 0:
            break
        chosen.append(unit)
    return chosen


def _pieces(word: str, width: int, later: int, *, whole: bool) -> list[str]:
    """Divide a word among lines: the first has ``width`` columns, those after it ``later``."""
    left = cells(word)
    if left <= width:
        return [word]
    pieces: list[str] = []
    units, start = list(_units(word)), 0
    while left > width:
        # No more of them have room on the line, each but the first taking a column.
        kept = _cut(units[start : start + max(width, 0) + 1], width, whole=whole)
        if not kept:
            break
        pieces.append("".join(units[start : start + kept]))
        start += kept
        left, width = left - cells(pieces[-1]), later
    return [*pieces, "".join(units[start:])]


def _cut(units: list[str], width: int, *, whole: bool) -> int:
    """Return how many units go on a line of ``width`` columns; 0 where the word stays whole."""
    most = max(len(_first(units, width)), 1)
    if whole:
        wide = (n for n in range(most, 0, -1) if cells(units[n - 1]) > 1)
        return next(wide, 0)
    joints = (n for n in range(most, most // 2, -1) if units[n - 1] in _JOINTS)
    return next(joints, most)
