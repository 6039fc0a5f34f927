"""The style sheet of a theme and an identity: colours and sizes, what all share, the frame."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from trajudge.environments.kit.identities import IDENTITIES, Font
from trajudge.environments.kit.theme import Density, Theme

_SHEET = Path(__file__).with_name("style.css").read_text()
_FONTS: dict[Font, str] = {
    "sans": '"Liberation Sans", Arial, sans-serif',
    "serif": '"Liberation Serif", "Times New Roman", serif',
    "mono": '"Liberation Mono", "Courier New", monospace',
}
_DENSITY: dict[Density, float] = {"compact": 0.75, "regular": 1, "roomy": 1.35}


@lru_cache(maxsize=512)
def style(look: Theme, identity: str) -> str:
    """Return the text of the ``<style>`` element; a server may name its hash in its policy."""
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
    return f":root{{{lines}}}\n{_SHEET}{_frame(identity)}"


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
