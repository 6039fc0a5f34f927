"""The style sheet of a theme: one sheet for all, with the theme's colours and sizes in front."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from trajudge.environments.kit.theme import Density, Font, Theme

_SHEET = Path(__file__).with_name("style.css").read_text()
_FONTS: dict[Font, str] = {
    "sans": '"Liberation Sans", Arial, sans-serif',
    "serif": '"Liberation Serif", "Times New Roman", serif',
    "mono": '"Liberation Mono", "Courier New", monospace',
}
_SIZES: dict[Font, int] = {"sans": 16, "serif": 17, "mono": 15}
_GAPS: dict[Density, int] = {"compact": 6, "regular": 10, "roomy": 16}


@lru_cache(maxsize=512)
def style(look: Theme) -> str:
    """Return the text of the ``<style>`` element; a server may name its hash in its policy."""
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
    return f":root{{{lines}}}\n{_SHEET}"


def body_class(look: Theme) -> str:
    """Return the classes by which the sheet tells the layouts apart."""
    return (
        f"nav-{look.nav} items-{look.items} labels-{look.labels} "
        f"heads-{look.headings} buttons-{look.buttons} {look.density}"
    )
