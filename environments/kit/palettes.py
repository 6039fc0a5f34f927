"""The colours that a theme can have; every text on its ground has a contrast of 4.5 or more."""

from __future__ import annotations

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


PALETTES = (
    Palette("slate", "#f4f6f8", "#ffffff", "#1d2733", "#55616e", "#d5dbe1", "#1f5fae", "#ffffff"),
    Palette("forest", "#f3f6f1", "#ffffff", "#1f2a20", "#536054", "#d3ddd2", "#2c6e3f", "#ffffff"),
    Palette("plum", "#f8f4f8", "#ffffff", "#2b1f2e", "#67566b", "#e0d4e3", "#7a2f86", "#ffffff"),
    Palette("brick", "#faf5f2", "#ffffff", "#2f2220", "#6b5854", "#e6d8d3", "#a3402a", "#ffffff"),
    Palette("sea", "#eff7f8", "#ffffff", "#15292d", "#4c6166", "#cbdfe2", "#0e6c7a", "#ffffff"),
    Palette("ink", "#ffffff", "#f5f5f5", "#111111", "#555555", "#d0d0d0", "#111111", "#ffffff"),
    Palette("night", "#14181f", "#1d232d", "#e8ecf2", "#a9b4c2", "#39424f", "#7db2ff", "#0c1420"),
    Palette("moss", "#171b16", "#21271f", "#e9eee6", "#aab8a4", "#3c4738", "#a5d67b", "#12180d"),
    Palette("sand", "#fbf7ec", "#fffdf6", "#332b1a", "#6a5e45", "#e5dac0", "#8a5a00", "#ffffff"),
    Palette("rose", "#fdf4f6", "#ffffff", "#33202a", "#6f5462", "#ecd6de", "#b02359", "#ffffff"),
    Palette("steel", "#e9ecef", "#f8f9fa", "#212529", "#4d565e", "#c3cad0", "#364f6b", "#ffffff"),
    Palette("olive", "#f7f7ec", "#ffffff", "#25261a", "#5b5d48", "#dcdec5", "#5d6600", "#ffffff"),
)
