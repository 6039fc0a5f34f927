"""How pages look and read: layout, order, colours, type, and the wording of labels.

A theme changes the structure of the document, not only its colours, because a replay of recorded
actions survives any change of colours (PRISM appendix 14).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Literal, TypeVar

from trajudge.environments.kit.identities import Font
from trajudge.environments.kit.palettes import PALETTES, Palette
from trajudge.environments.kit.words import WORDS
from trajudge.environments.model.axes import generator
from trajudge.environments.model.page import Label, Word
from trajudge.environments.model.spec import App

ItemsAs = Literal["table", "cards", "lines"]
Nav = Literal["top", "bottom", "side"]
Choice = Literal["list", "radio"]
Labels = Literal["above", "beside", "after"]
Density = Literal["compact", "regular", "roomy"]
Headings = Literal["modest", "large", "ruled"]
Buttons = Literal["filled", "outlined", "pill"]
Kind = Literal["facts", "form", "chart"]

T = TypeVar("T")
VOICES = 3  # applications word their labels in two or three voices
_STAYS_IN_VOICE = 0.75
UNPRINTABLE = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
"""What no document can hold, as a pattern."""

_UNPRINTABLE = re.compile(UNPRINTABLE)
_STRUCTURES: tuple[tuple[ItemsAs, Nav, Choice], ...] = tuple(
    product(("table", "cards", "lines"), ("top", "bottom", "side"), ("list", "radio"))
)
_ORDERS: tuple[tuple[Kind, ...], ...] = (
    ("facts", "form", "chart"),
    ("facts", "chart", "form"),
    ("form", "facts", "chart"),
    ("chart", "facts", "form"),
)
_FONTS: tuple[tuple[Font, Font], ...] = (
    ("sans", "sans"),
    ("serif", "serif"),
    ("sans", "serif"),
    ("serif", "sans"),
    ("mono", "mono"),
)


@dataclass(frozen=True, slots=True)
class Theme:
    """One look. ``font`` is that of text, ``titles`` that of headings; ``order`` is the order of
    facts, forms and charts that stand together; ``turn`` rotates the navigation after its first
    link; ``voice`` chooses among synonyms; ``swapped`` turns neighbouring sections around."""

    index: int
    seed: int
    items: ItemsAs
    nav: Nav
    choice: Choice
    labels: Labels
    density: Density
    palette: Palette
    font: Font
    titles: Font
    headings: Headings
    buttons: Buttons
    order: tuple[Kind, ...]
    turn: int
    swapped: bool
    voice: int


@lru_cache(maxsize=512)
def theme(index: int, seed: int) -> Theme:
    """Return the theme. No two of one seed share their structure or their colours."""
    every = generator("theme", seed)
    structure = _STRUCTURES[every.permutation(len(_STRUCTURES))[index]]
    palette = PALETTES[every.permutation(len(PALETTES))[index]]
    rng = generator("theme", index, seed)
    items, nav, choice = structure
    font, titles = _pick(rng.random(), _FONTS)
    return Theme(
        index=index,
        seed=seed,
        items=items,
        nav=nav,
        choice=choice,
        labels=_pick(rng.random(), ("above", "beside", "after")),
        density=_pick(rng.random(), ("compact", "regular", "roomy")),
        palette=palette,
        font=font,
        titles=titles,
        headings=_pick(rng.random(), ("modest", "large", "ruled")),
        buttons=_pick(rng.random(), ("filled", "outlined", "pill")),
        order=_pick(rng.random(), _ORDERS),
        turn=int(rng.integers(6)),
        swapped=bool(rng.random() < 0.5),
        voice=int(rng.integers(VOICES)),
    )


def _pick(place: float, values: Sequence[T]) -> T:
    return values[int(place * len(values))]


@lru_cache(maxsize=512)
def wordings(app: App, look: Theme) -> Mapping[str, str]:
    """Return what every Word of the kit and of the application says in this theme.

    Most follow the theme's voice; where two keys would read the same, one takes another synonym.
    Raises ValueError where no choice of synonyms tells two keys apart.
    """
    synonyms = {**WORDS, **app.words}
    draws = generator("wording", app.id, look.index, look.seed).random((len(synonyms), 2)).tolist()
    preferred: dict[str, Sequence[str]] = {}
    for (key, words), (strays, where) in zip(synonyms.items(), draws, strict=True):
        first = look.voice if strays < _STAYS_IN_VOICE else int(where * len(words))
        preferred[key] = [words[(first + step) % len(words)] for step in range(len(words))]
    try:
        return _told_apart(preferred)
    except ValueError as error:
        raise ValueError(f"application {app.id!r}: {error}") from error


def _told_apart(preferred: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return a wording for every key, no two the same: a matching by augmenting paths, so that one
    is found wherever there is one."""
    holders: dict[str, str] = {}
    chosen: dict[str, str] = {}

    def place(key: str, tried: set[str]) -> bool:
        for wording in preferred[key]:
            folded = wording.casefold()
            if folded in tried:
                continue
            tried.add(folded)
            if folded not in holders or place(holders[folded], tried):
                holders[folded], chosen[key] = key, wording
                return True
        return False

    for key in preferred:
        if not place(key, set()):
            other = holders[preferred[key][0].casefold()]
            raise ValueError(f"no synonyms tell the words {key!r} and {other!r} apart")
    return {key: chosen[key] for key in preferred}


def name_of(label: Label, words: Mapping[str, str]) -> str:
    """Return the accessible name of the control with this label; white space is collapsed, as in
    the browser. Raises KeyError for a Word that nobody words."""
    text = f"{words[label.key]} {label.of}" if isinstance(label, Word) else label
    return " ".join(printable(text).split())


def printable(text: str) -> str:
    """Return the text as a document can hold it: control characters, halves of surrogate pairs and
    what is no character become U+FFFD; tabs and line breaks stay."""
    return text if text.isprintable() else _UNPRINTABLE.sub("\ufffd", text)
