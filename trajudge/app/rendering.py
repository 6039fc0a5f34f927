"""Templates, text of ours in them, and text of others made safe for a page.

Text of pages, agents and judges is escaped, cut, and nothing in it stays invisible: zero-width
characters, bidirectional controls, tag characters and variation selectors carry messages that a
model reads and a person does not see; here each shows as its code point.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

CUT = 4_000
"""Characters of one text that a page shows, unless told otherwise."""

_WORD = 80  # characters within which a text is cut between words, if it has a space there

# Letters of no width that Unicode does not class as format characters.
_BLANK = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_MARKED_CATEGORIES = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_ASCII_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def visible(text: str, limit: int = CUT) -> Markup:
    """Escape ``text``, isolate its direction of writing and show every invisible character as a
    box with its code point; behind ``limit`` characters say how many more there are."""
    shown, rest = _boxed(text[:limit].replace("\r\n", "\n")), len(text) - limit
    more = f'<span class="cut">… {rest:,} more characters</span>' if rest > 0 else ""
    return Markup(f"<bdi>{shown}</bdi>{more}")  # noqa: S704 - escaped, and a number


def unfolding(text: str, limit: int = CUT) -> Markup:
    """Show ``text`` as ``visible`` does, with what is behind ``limit`` characters, or behind their
    last whole word, to be unfolded: a block, for what somebody judges by and has to read whole."""
    if len(text) <= limit:
        return visible(text, limit)
    word = max(text.rfind(space, max(limit - _WORD, 0), limit) + 1 for space in " \n")
    first, rest = text[: word or limit], text[word or limit :]
    fold = Markup(
        '<details class="fold"><summary class="cut">… {} more characters</summary>{}</details>'
    )
    return visible(first, limit) + fold.format(f"{len(rest):,}", visible(rest, len(rest)))


def _boxed(text: str) -> Markup:
    if text.isascii() and not _ASCII_CONTROLS.search(text):
        return escape(text)
    parts: list[Markup] = []
    plain: list[str] = []
    for letter in text:
        if not _is_invisible(letter):
            plain.append(letter)
            continue
        parts += [escape("".join(plain)), _box(letter)]
        plain.clear()
    return Markup("").join([*parts, escape("".join(plain))])


def _is_invisible(letter: str) -> bool:
    if letter in "\n\t":
        return False
    number = ord(letter)
    selector = 0xFE00 <= number <= 0xFE0F or 0xE0100 <= number <= 0xE01EF
    return selector or letter in _BLANK or unicodedata.category(letter) in _MARKED_CATEGORIES


def _box(letter: str) -> Markup:
    name = unicodedata.name(letter, "control character")
    return Markup('<span class="invisible" title="{}">U+{}</span>').format(
        name.lower(), f"{ord(letter):04X}"
    )


_ROOM = "trajudge.app"


@cache
def templates() -> Environment:
    """Make the environment; ``visible`` is the filter for text that we did not write, ``unfolding``
    that for such text as has to be read whole."""
    environment = Environment(
        loader=PackageLoader(_ROOM),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"visible": visible, "unfolding": unfolding}
    return environment


def static_text(name: str) -> Markup:
    """Read a style sheet or script of ours, to be put into a page as it is."""
    return Markup(files(_ROOM).joinpath("static", name).read_text(encoding="utf-8"))  # noqa: S704 - our own file


_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def no_formula(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would compute."""
    return f"'{text}" if text.startswith(_FORMULA) else text
