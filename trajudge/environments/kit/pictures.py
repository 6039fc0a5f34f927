"""Pictures drawn from a name: the same name gives the same SVG everywhere.

They are parts of the document (``data:`` addresses), so that a page needs no further request, and
say nothing that a task could ask about: whatever they show follows from a hash of the name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import quote

Drawing = Callable[["Chance"], str]
WARM = ("#c9573e", "#d98e32", "#b8862b", "#8c5a3c", "#a8485f")
COOL = ("#33658a", "#2f7f79", "#4f6d9a", "#5b5f97", "#3d7a4a")
PALE = ("#f3e3d0", "#dfe9ef", "#e5eddf", "#efe0e6", "#ece7d8", "#dde4e4")
SKIN = ("#f2cfb0", "#d9a47a", "#a8714a", "#7a4b2f", "#f6dcc6")


class Chance:
    """Choices that follow from a name, one after another."""

    def __init__(self, name: str) -> None:
        self._left = int.from_bytes(sha256(name.encode("utf-8", "replace")).digest(), "big")

    def below(self, count: int) -> int:
        """Return a whole number from 0 to ``count`` - 1."""
        self._left, number = divmod(self._left, count)
        return number

    def one_of(self, values: tuple[str, ...]) -> str:
        return values[self.below(len(values))]


class Drawn(NamedTuple):
    """A picture as the templates show it: its address and its size in pixels."""

    src: str
    width: int
    height: int


@lru_cache(maxsize=8192)
def picture(kind: str, name: str) -> Drawn:
    """Return the picture of a kind (a key of ``DRAWINGS``) for a name. Raises KeyError."""
    width, height, draw = DRAWINGS[kind]
    return Drawn(_address(draw(Chance(f"{kind} {name}")), width, height), width, height)


@lru_cache(maxsize=64)
def stars(tenths: int) -> Drawn:
    """Return five stars, filled up to so many tenths of a star."""
    row = "".join(
        f'<path d="M{9 + 18 * n} 1l2.3 5.2 5.7.6-4.2 3.8 1.2 5.6-5-2.9-5 2.9 1.2-5.6L{1 + 18 * n} '
        f'6.8l5.7-.6z"/>'
        for n in range(5)
    )
    clip = f'<clipPath id="c"><rect width="{tenths * 1.8:g}" height="17"/></clipPath>'
    body = f'{clip}<g fill="#c9c9c9">{row}</g><g fill="#c27c0e" clip-path="url(#c)">{row}</g>'
    return Drawn(_address(body, 90, 17), 90, 17)


def _address(body: str, width: int, height: int) -> str:
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">{body}</svg>'
    return "data:image/svg+xml," + quote(svg, safe=" =:/,;()'-.!*").replace("'", "%27")


def _scene(chance: Chance) -> str:
    """Draw a thing on a table, in light from one side."""
    wall, table, colour = chance.one_of(PALE), chance.one_of(WARM), chance.one_of(WARM + COOL)
    wide, high = 50 + chance.below(70), 50 + chance.below(80)
    left, top = 120 - wide // 2 + chance.below(30) - 15, 150 - high
    rounded = chance.below(wide // 2)
    shapes = (
        f'<rect x="{left}" y="{top}" width="{wide}" height="{high}" rx="{rounded}"/>',
        f'<path d="M{left} {top}h{wide}l-{wide // 5} {high}h-{wide - 2 * (wide // 5)}z"/>',
        f'<ellipse cx="{left + wide // 2}" cy="{150 - high // 2}" rx="{wide // 2}" '
        f'ry="{high // 2}"/>',
        f'<path d="M{left} 150q-12-{high} {wide // 2}-{high}t{wide // 2} {high}z"/>',
    )
    shape = shapes[chance.below(len(shapes))]
    handle = (
        f'<path d="M{left + wide - 4} {top + high // 4}q34 {high // 4} 0 {high // 2}" '
        f'fill="none" stroke="{colour}" stroke-width="8"/>'
        if chance.below(3) == 0
        else ""
    )
    stripe = (
        f'<rect x="{left + 4}" y="{top + high // 2}" width="{wide - 8}" height="7" '
        f'fill="#fff" opacity=".45"/>'
        if chance.below(2)
        else ""
    )
    return (
        f'<rect width="240" height="180" fill="{wall}"/><rect y="128" width="240" height="52" '
        f'fill="{table}" opacity=".38"/><ellipse cx="{left + wide // 2 + 14}" cy="151" '
        f'rx="{wide // 2 + 14}" ry="8" opacity=".22"/>{handle}<g fill="{colour}">{shape}</g>'
        f'{stripe}<path d="M{30 + chance.below(150)} 0l-60 128h40z" fill="#fff" opacity=".16"/>'
    )


def _avatar(chance: Chance) -> str:
    """Draw a face: hair, eyes, a mouth, a jersey."""
    ground, skin = chance.one_of(PALE), chance.one_of(SKIN)
    hair, jersey = chance.one_of(("#2b2320", "#6b4a2f", "#b07d3b", "#8d8d8d")), chance.one_of(COOL)
    bend, tall = chance.below(5) - 1, 12 + chance.below(8)
    return (
        f'<rect width="64" height="64" fill="{ground}"/><path d="M8 64q4-20 24-20t24 20z" '
        f'fill="{jersey}"/><circle cx="32" cy="29" r="15" fill="{skin}"/>'
        f'<path d="M16 29q-1-{tall + 6} 16-{tall + 4}t16 {tall + 4}q-4-9-16-9t-16 9z" '
        f'fill="{hair}"/><circle cx="26" cy="30" r="1.8"/><circle cx="38" cy="30" r="1.8"/>'
        f'<path d="M26 36q6 {bend * 2} 12 0" fill="none" stroke="#5a2f22" stroke-width="1.6"/>'
    )


def _landscape(chance: Chance) -> str:
    """Draw hills under a sky, with a sun and a few trees."""
    sky, near, far = chance.one_of(PALE), chance.one_of(COOL), chance.one_of(COOL)
    sun, first, second = 30 + chance.below(180), chance.below(60), chance.below(60)
    trees = "".join(
        f'<path d="M{x} {y}l9 26h-18z" fill="#24473a"/>'
        for x, y in ((20 + chance.below(200), 96 + chance.below(20)) for _ in range(4))
    )
    return (
        f'<rect width="240" height="140" fill="{sky}"/><circle cx="{sun}" cy="38" r="17" '
        f'fill="#e9b44c"/><path d="M0 {80 + first // 3}q60-{first + 20} 120 0t120 0v80H0z" '
        f'fill="{far}" opacity=".55"/><path d="M0 {104 + second // 4}q70-{second + 10} 130 0t110 0'
        f'v80H0z" fill="{near}"/>{trees}'
    )


def _map(chance: Chance) -> str:
    """Draw a few streets, blocks of houses, a park and a river."""
    down, across = 50 + chance.below(40), 40 + chance.below(40)
    blocks = "".join(
        f'<rect x="{6 + 48 * column}" y="{6 + 45 * row}" width="{26 + chance.below(14)}" '
        f'height="{22 + chance.below(14)}" fill="{chance.one_of(PALE)}" stroke="#b9b2a3"/>'
        for column in range(5)
        for row in range(3)
    )
    return (
        f'<rect width="240" height="140" fill="#efece4"/>{blocks}<path d="M0 {across}q80 30 240 '
        f'{chance.below(50)}" stroke="#8fb7cf" stroke-width="13" fill="none"/><path d="M{down} 0l'
        f'{chance.below(60)} 140M0 {across + 50}h240" stroke="#fff" stroke-width="7"/>'
        f'<circle cx="{40 + chance.below(160)}" cy="{30 + chance.below(80)}" r="15" '
        'fill="#a9cba0"/>'
    )


def _badge(chance: Chance) -> str:
    """Draw cells that are filled or not, alike on both sides."""
    colour, cells = chance.one_of(WARM + COOL), ""
    for row in range(5):
        for column in range(3):
            if chance.below(2):
                for x in {column, 4 - column}:
                    cells += f'<rect x="{7 + 10 * x}" y="{7 + 10 * row}" width="10" height="10"/>'
    ground = chance.one_of(PALE)
    return f'<rect width="64" height="64" fill="{ground}"/><g fill="{colour}">{cells}</g>'


def _rack(chance: Chance) -> str:
    """Draw units in a rack, with their lights."""
    units = "".join(
        f'<rect x="8" y="{6 + 11 * n}" width="48" height="9" rx="1.5" fill="#4b5563"/>'
        f'<circle cx="{13 + chance.below(5)}" cy="{10.5 + 11 * n}" r="1.8" '
        f'fill="{chance.one_of(("#7dd3a0", "#e9b44c", "#8ab4f8"))}"/>'
        for n in range(5)
    )
    return f'<rect width="64" height="64" rx="4" fill="#1f2933"/>{units}'


def _document(chance: Chance) -> str:
    """Draw a sheet of paper with a heading, lines, and a figure."""
    lines = "".join(
        f'<rect x="14" y="{26 + 6 * n}" width="{18 + chance.below(19)}" height="2.5"/>'
        for n in range(5)
    )
    return (
        f'<rect width="64" height="64" fill="{chance.one_of(PALE)}"/><path d="M10 4h34l10 10v46H10'
        f'z" fill="#fff" stroke="#98938a"/><rect x="14" y="12" width="{16 + chance.below(12)}" '
        f'height="6" fill="{chance.one_of(WARM + COOL)}"/><g fill="#a9a59c">{lines}</g>'
    )


def _icon(chance: Chance) -> str:
    """Draw a plain sign of two strokes in a round field."""
    signs = (
        "M6 12h12M12 6v12", "M6 8h12M6 12h12M6 16h8", "M7 7h10v10h-10z", "M12 6l6 10h-12z",
        "M6 13l4 4 8-9", "M8 6v12M16 6v12M6 12h12", "M12 6a6 6 0 1 0 .1 0",
        "M7 17l5-11 5 11M9 13h6",
        "M6 7h12v8h-7l-3 3v-3h-2z", "M6 18v-6M12 18v-12M18 18v-9", "M12 6v6l4 3",
        "M6 9l6-3 6 3v7l-6 3-6-3z",
    )  # fmt: skip
    colour = chance.one_of(WARM + COOL)
    return (
        f'<rect width="24" height="24" rx="{5 + chance.below(8)}" fill="{colour}"/><path '
        f'd="{chance.one_of(signs)}" fill="none" stroke="#fff" stroke-width="1.8"/>'
    )


def _logo(chance: Chance) -> str:
    """Draw two shapes, one over the other."""
    first, second = chance.one_of(WARM), chance.one_of(COOL)
    shapes = (
        '<circle cx="16" cy="20" r="12"/>', '<rect x="4" y="6" width="24" height="24" rx="5"/>',
        '<path d="M16 4l14 28H2z"/>', '<path d="M4 8q12-8 24 0v12q-12 14-24 0z"/>',
    )  # fmt: skip
    return (
        f'<g fill="{first}">{chance.one_of(shapes)}</g><g fill="{second}" opacity=".82" '
        f'transform="translate(9 {chance.below(6)}) scale(.8)">{chance.one_of(shapes)}</g>'
    )


DRAWINGS: dict[str, tuple[int, int, Drawing]] = {
    "scene": (240, 180, _scene),
    "avatar": (64, 64, _avatar),
    "landscape": (240, 140, _landscape),
    "map": (240, 140, _map),
    "badge": (64, 64, _badge),
    "rack": (64, 64, _rack),
    "document": (64, 64, _document),
    "icon": (24, 24, _icon),
    "logo": (40, 40, _logo),
}
