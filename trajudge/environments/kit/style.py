"""The files that pages refer to: the style sheet of a theme and the script of the widgets.

Each carries its hash in its name, so that a browser may keep it for ever. A sheet has the colours
and sizes of a theme and an identity, what all share, and the frame.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from trajudge.environments.kit.identities import IDENTITIES, Font
from trajudge.environments.kit.theme import Density, Theme

_SHEET = Path(__file__).with_name("style.css").read_text()
_FONTS: dict[Font, str] = {
    "sans": '"Liberation Sans", Arial, sans-serif',
    "serif": '"Liberation Serif", "Times New Roman", serif',
    "mono": '"Liberation Mono", "Courier New", monospace',
}
_DENSITY: dict[Density, float] = {"compact": 0.75, "regular": 1, "roomy": 1.35}


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
def stylesheet(look: Theme, identity: str) -> PageFile:
    """Return the style sheet of a theme and an identity."""
    own = IDENTITIES[identity]
    colours = look.palette._asdict()
    del colours["name"]
    values = {name.replace("_", "-"): value for name, value in colours.items()}
    values |= {
        "font": _FONTS[own.text],
        "titles": _FONTS[own.titles if look.headings != "ruled" else look.titles],
        "size": f"{own.size}px",
        "gap": f"{own.gap * _DENSITY[look.density]:g}px",
        "corner": f"{own.corner}px",
    }
    if look.palette.dark:
        values["scheme"] = "dark"
    lines = "".join(f"--{name}:{value};" for name, value in values.items())
    text = f":root{{{lines}}}\n{_SHEET}{_frame(identity)}"
    return _named("style", "css", text, "text/css")


@lru_cache
def _frame(identity: str) -> str:
    """Return the sheet of a frame."""
    return (Path(__file__).parent / "templates" / f"{identity}.css").read_text()


def body_class(look: Theme) -> str:
    """Return the classes by which the sheet tells the layouts apart."""
    return (
        f"nav-{look.nav} items-{look.items} labels-{look.labels} "
        f"heads-{look.headings} buttons-{look.buttons} {look.density}"
    )
