"""markdown: a document, compared by its blocks rather than by its white space.

Normal form, line by line and outside of code fences: ``\\n`` as line break, no white space at line
ends, one space after the signs of a heading and none of its closing signs, ``-`` for every bullet,
two spaces of indent for every level of a list, ``***`` for a rule, at most one blank line in a row
and none around headings. Case, accents and everything inside of a code fence are kept.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trajudge.rules.errors import InvalidValue
from trajudge.rules.limits import TEXT_CHARS, bounded, unicode_text
from trajudge.rules.values.model import Kind

if TYPE_CHECKING:
    from pydantic import JsonValue

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
_BULLET = re.compile(r"([ \t]*)[-*+][ \t]+(\S.*)")
_RULE = re.compile(r" {0,3}(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|-[ \t]+-[ \t]+(?:-[ \t]*)+|-{3,}")


def _width(indent: str) -> int:
    return len(indent.expandtabs(4))


def _bullet(found: re.Match[str], levels: list[int]) -> str:
    """Return the line of a list item; ``levels`` are the indents of the lists that are open."""
    width = _width(found[1])
    while levels and width <= levels[-1] - 1:
        levels.pop()
    if not levels or width >= levels[-1] + 2:
        levels.append(width)
    return "  " * (len(levels) - 1) + f"- {found[2]}"


def _line(line: str, previous: str, levels: list[int]) -> str:
    """Return one line outside of a fence, in normal form."""
    if line.startswith("-") and line.strip("-") == "" and previous:
        return line  # the underline of a heading
    if _RULE.fullmatch(line):
        levels.clear()
        return "***"
    if heading := _HEADING.fullmatch(line):
        levels.clear()
        title = heading[2].rstrip("#")
        closed = title != heading[2] and title[-1:].isspace()
        return f"{heading[1]} {title.rstrip() if closed else heading[2]}"
    if bullet := _BULLET.fullmatch(line):
        return _bullet(bullet, levels)
    if line and not line[0].isspace():
        levels.clear()
    return line


def _separate(done: list[str], line: str) -> bool:
    """Tell whether a blank line stays between what is done and a line."""
    return bool(done) and not _HEADING.fullmatch(done[-1]) and not _HEADING.fullmatch(line)


def parse(raw: JsonValue) -> str:
    """Return the normal form itself."""
    if not isinstance(raw, str):
        raise InvalidValue("not a text")
    text = unicode_text(bounded(raw, TEXT_CHARS)).replace("\r\n", "\n").replace("\r", "\n")
    done: list[str] = []
    levels: list[int] = []
    blank, fence = False, ""
    for line in text.split("\n"):
        opening = _FENCE.match(line)
        if fence:
            done.append(line)
            if opening and opening[1].startswith(fence) and line.strip() == opening[1]:
                fence = ""
            continue
        kept = line.rstrip()
        if not kept:
            blank = True
            continue
        if opening:
            fence = opening[1]
        else:
            kept = _line(kept, "" if blank or not done else done[-1], levels)
        if blank and _separate(done, kept):
            done.append("")
        blank = False
        done.append(kept)
    return "\n".join(done).rstrip("\n")


KIND = Kind(parse=parse, show=str)
