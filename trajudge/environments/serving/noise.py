"""What gets in an agent's way without being part of the task: seeded, declared, harmless.

The vocabulary is WebForge's (section 3): a cookie bar, a promotion that covers the page from some
document on, slow documents, and a submission that fails once. Whatever can be dismissed is so by a
button in the accessibility tree, and nothing of it touches the application's state.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from trajudge.environments.model.axes import generator
from trajudge.environments.model.config import Config
from trajudge.environments.model.page import Overlay, Word

NoiseKind = Literal["cookies", "promotion", "latency", "inline-error"]
KINDS: tuple[NoiseKind, ...] = ("cookies", "promotion", "latency", "inline-error")
EVERY = 1  # the index of the noise that has all kinds
_SLOWEST, _FASTEST = 0.4, 0.05
_TEXTS: dict[NoiseKind, tuple[str, ...]] = {
    "cookies": (
        "We use cookies to keep this site working and to learn how it is used.",
        "This site stores small files in your browser to remember your preferences.",
        "Cookies help us to improve. You can read more in our privacy notes.",
    ),
    "promotion": (
        "Members save a tenth this month. Ask for an invitation the next time you visit.",
        "Our spring letter is out: twelve pages of ideas, free of charge.",
        "Tell a friend about us and both of you get a small present.",
    ),
    "latency": ("",),
    "inline-error": (
        "Something went wrong on our side. Please try again.",
        "We could not save this just now. Please send it once more.",
        "The connection was interrupted. Please try again in a moment.",
    ),
}
_TITLES: dict[NoiseKind, str] = {"cookies": "Cookies on this site", "promotion": "Just for you"}


class Noise(NamedTuple):
    """One disturbance. It begins with the run's document number ``at`` (from 1) and lasts until it
    is dismissed; an ``inline-error`` answers the first submission from then on; ``latency`` holds
    every document back by ``seconds``. ``blocks`` tells whether the page is out of reach
    meanwhile. ``a11y`` are the role and the key of the Word that name what dismisses it."""

    kind: NoiseKind
    at: int = 1
    seconds: float = 0.0
    blocks: bool = False
    dismissible: bool = False
    a11y: tuple[str, str] | None = None
    text: str = ""


def noise(config: Config) -> tuple[Noise, ...]:
    """Return the disturbances of a configuration: none for index 0, all kinds for index 1, else at
    least one kind."""
    if config.noise == 0:
        return ()
    rng = generator("noise", config.app, config.scenario, config.noise, config.seed)
    draws = rng.random((len(KINDS), 4)).tolist()
    items = [_one(kind, places) for kind, places in zip(KINDS, draws, strict=True)]
    if config.noise == EVERY:
        return tuple(items)
    surely = int(rng.integers(len(KINDS)))
    return tuple(
        item
        for number, (item, places) in enumerate(zip(items, draws, strict=True))
        if number == surely or places[0] < 0.5
    )


def overlays(
    items: Sequence[Noise], document: int, dismissed: Collection[str]
) -> tuple[Overlay, ...]:
    """Return what lies over the run's document of this number."""
    return tuple(
        Overlay(
            title=_TITLES[item.kind],
            text=item.text,
            dismiss=Word(item.a11y[1]),
            action=f"/dismiss/{item.kind}",
            modal=item.blocks,
        )
        for item in items
        if item.a11y and document >= item.at and item.kind not in dismissed
    )


def stumble(items: Sequence[Noise], document: int, dismissed: set[str]) -> str:
    """Return the inline error that a submission meets, "" for none: once, from the document on that
    it is set for. Notes in ``dismissed`` that it was met."""
    for item in items:
        due = item.kind == "inline-error" and document >= item.at
        if due and item.kind not in dismissed:
            dismissed.add(item.kind)
            return item.text
    return ""


def _one(kind: NoiseKind, places: Sequence[float]) -> Noise:
    """Return a disturbance from four draws in [0, 1), of which the first is not for this."""
    _, when, which, how_slow = places
    text = _TEXTS[kind][int(which * len(_TEXTS[kind]))]
    if kind == "cookies":
        return Noise(kind, dismissible=True, a11y=("button", "accept_cookies"), text=text)
    if kind == "promotion":
        closed_by = ("button", "dismiss")
        at = 2 + int(when * 5)
        return Noise(kind, at, blocks=True, dismissible=True, a11y=closed_by, text=text)
    if kind == "latency":
        # Most sites are quick, some are slow: evenly spread on a logarithmic scale.
        seconds = _FASTEST * (_SLOWEST / _FASTEST) ** how_slow
        return Noise(kind, seconds=round(seconds, 3))
    return Noise(kind, at=1 + int(when * 4), text=text)
