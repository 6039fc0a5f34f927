"""The colours that a theme can have; every text on its ground has a contrast of 4.5 or more."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple


class Palette(NamedTuple):
    """Colours as ``#rrggbb``: the page's ground, a raised surface, text, quieter text, lines, the
    colour of links and buttons, and the text on it."""

    name: str
    ground: str
    surface: str
    text: str
    quiet: str
    line: str
    accent: str
    on_accent: str

    @property
    def dark(self) -> bool:
        return luminance(self.ground) < 0.2


def luminance(colour: str) -> float:
    """Return the relative luminance of ``#rrggbb``, from 0 to 1 (WCAG 2.2)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _palettes() -> tuple[Palette, ...]:
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return tuple(Palette(name, *colours) for name, colours in tomllib.loads(text).items())


PALETTES = _palettes()
