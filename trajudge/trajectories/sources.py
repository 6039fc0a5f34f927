"""The register of data sets: authors, licence, labels, and permitted use."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Literal

from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError
from trajudge.util.files import read_text

_REGISTER = Path(__file__).with_name("sources.toml")


class SourceCard(Record):
    """One data set.

    ``revision`` is the one that was reviewed, empty if none is pinned; ``redistribution``: its
    content may be redistributed; ``kinds`` are its loaders; ``contamination`` is why scores on it
    may be too high.
    """

    name: str
    title: str
    home: str
    revision: str
    licence: str
    redistribution: Literal["yes", "no", "unknown"]
    size: str
    splits: tuple[str, ...]
    labels: tuple[str, ...]
    contamination: str
    kinds: tuple[str, ...]


@cache
def source_cards() -> dict[str, SourceCard]:
    """Read the register, in order."""
    tables = tomllib.loads(read_text(_REGISTER))
    return {name: SourceCard(name=name, **table) for name, table in tables.items()}


def source_card(name: str) -> SourceCard:
    """Return one card. Raises UserError for an unknown name."""
    cards = source_cards()
    if name not in cards:
        raise UserError(f"no data set {name!r}: use one of {', '.join(cards)}")
    return cards[name]


def card_of_kind(kind: str) -> SourceCard | None:
    """Return the data set of a loader; None for a loader of any data."""
    return next((card for card in source_cards().values() if kind in card.kinds), None)


def check_redistribution(kind: str, *, allowed: bool) -> str:
    """Return a sentence for the user if it is unknown whether data of this kind may be
    redistributed, "" if they may.

    Raises UserError if the card forbids it, unless the user ``allowed`` it.
    """
    card = card_of_kind(kind)
    if card is None or card.redistribution == "yes" or allowed:
        return ""
    if card.redistribution == "no":
        raise UserError(
            f"--export: {card.title} may not be redistributed ({card.licence}): keep the export to "
            "yourself and say so with --export-restricted"
        )
    return (
        f"whether {card.title} may be redistributed is not known ({card.licence}): ask its authors "
        "before you publish the export"
    )
