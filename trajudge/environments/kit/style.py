"""The files that pages refer to: the style sheet of a theme and the script of the widgets.

Each carries its hash in its name, so that a browser may keep it for ever. One sheet is for all
themes, with the theme's colours and sizes in front.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from trajudge.environments.kit.theme import Density, Font, Theme

_SHEET = Path(__file__).with_name("style.css").read_text()
_FONTS: dict[Font, str] = {
    "sans": '"Liberation Sans", Arial, sans-serif',
    "serif": '"Liberation Serif", "Times New Roman", serif',
    "mono": '"Liberation Mono", "Courier New", monospace',
}
_SIZES: dict[Font, int] = {"sans": 16, "serif": 17, "mono": 15}
_GAPS: dict[Density, int] = {"compact": 6, "regular": 10, "roomy": 16}


class PageFile(NamedTuple):
    """A file that pages refer to by its ``name``."""

    name: str
    text: str
    content_type: str


def _named(stem: str, ending: str, text: str, content_type: str) -> PageFile:
    name = f"{stem}-{sha256(text.encode()).hexdigest()[:16]}.{ending}"
    return PageFile(name, text, content_type)


SCRIPT = _named("kit", "js", Path(__file__).with_name("kit.js").read_text(), "text/javascript")
"""What the widgets do beyond their plain forms."""


@lru_cache(maxsize=512)
def stylesheet(look: Theme) -> PageFile:
    """Return the style sheet of a theme."""
    colours = look.palette._asdict()
    del colours["name"]
    values = {name.replace("_", "-"): value for name, value in colours.items()}
    values |= {
        "font": _FONTS[look.font],
        "titles": _FONTS[look.titles],
        "size": f"{_SIZES[look.font]}px",
        "gap": f"{_GAPS[look.density]}px",
        "corner": {"filled": "4px", "outlined": "0", "pill": "12px"}[look.buttons],
    }
    if look.palette.dark:
        values["scheme"] = "dark"
    lines = "".join(f"--{name}:{value};" for name, value in values.items())
    return _named("style", "css", f":root{{{lines}}}\n{_SHEET}", "text/css")


def body_class(look: Theme) -> str:
    """Return the classes by which the sheet tells the layouts apart."""
    return (
        f"nav-{look.nav} items-{look.items} labels-{look.labels} "
        f"heads-{look.headings} buttons-{look.buttons} {look.density}"
    )
