"""The card of a prompt folder: where a judge comes from, and what deviates from there and why."""

from __future__ import annotations

import yaml
from pydantic import BaseModel, ConfigDict


class Deviation(BaseModel):
    """One difference from the paper."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    what: str
    why: str


class Card(BaseModel):
    """``card.yaml`` of a prompt folder. ``calls`` is a formula in T, the number of steps."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str
    paper: str
    section: str
    input: str
    scale: str
    binarisation: str
    calls: str
    deviations: tuple[Deviation, ...] = ()


def read_card(text: str) -> Card:
    """The card in a YAML text. Raises pydantic.ValidationError where a field is missing."""
    return Card.model_validate(yaml.safe_load(text))
