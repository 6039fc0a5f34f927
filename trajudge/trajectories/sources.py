"""The register of data sets: who made them, licence, labels, and what may be done with them."""

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
    """What is known of one data set.

    ``revision`` is the one that was read, empty where none is pinned; ``redistribution`` whether
    its content may be passed on; ``kinds`` the loaders that read it; ``contamination`` why scores
    on it may flatter a judge.
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
    """Read the register, in its order."""
    tables = tomllib.loads(read_text(_REGISTER))
    return {name: SourceCard(name=name, **table) for name, table in tables.items()}


def source_card(name: str) -> SourceCard:
    """Return one card. Raises UserError for an unknown name."""
    cards = source_cards()
    if name not in cards:
        raise UserError(f"no data set {name!r}: use one of {', '.join(cards)}")
    return cards[name]


def card_of_kind(kind: str) -> SourceCard | None:
    """Find the data set that a loader reads; None where it reads anybody's."""
    return next((card for card in source_cards().values() if kind in card.kinds), None)


def check_redistribution(kind: str, *, allowed: bool) -> str:
    """Return a sentence for the user where it is not known whether data of this kind may be passed
    on, "" where it may.

    Raises UserError where the card forbids it, unless the user ``allowed`` it.
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
