"""The card of a prompt folder: where a judge comes from, and what deviates from there and why."""

from __future__ import annotations

import yaml
from pydantic import BaseModel, ConfigDict, Field


class Deviation(BaseModel):
    """One difference from the paper."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    what: str
    why: str


class Own(BaseModel):
    """What one of several judges with the same prompts has for itself: its ``deviations`` come on
    top of theirs, the rest takes the place of theirs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    input: str
    calls: str
    deviations: tuple[Deviation, ...] = ()


class Card(BaseModel):
    """``card.yaml`` of a prompt folder. ``calls`` is a formula in T, the number of steps;
    ``judges`` are those that share the folder, where there are several.

    ``version`` is raised with every change of what the judge is shown or asked, and of how its
    replies are read; cards without one are of the first. ``left_out`` are rules of the source that
    the prompts do not hold: id (``judges.cards.fidelity``) to the reason.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str
    paper: str
    section: str
    input: str
    scale: str
    binarisation: str
    calls: str
    version: int = Field(default=1, ge=1)
    deviations: tuple[Deviation, ...] = ()
    left_out: dict[str, str] = Field(default_factory=dict)
    judges: dict[str, Own] = Field(default_factory=dict, exclude=True)

    def of(self, judge: str) -> Card:
        """Return the card of one judge: this one, or its own where several share the folder."""
        own = self.judges.get(judge)
        if own is None:
            return self
        fields = {**dict(own), "name": judge, "deviations": self.deviations + own.deviations}
        return self.model_copy(update={**fields, "judges": {}})


def read_card(text: str) -> Card:
    """Read the card in a YAML text. Raises pydantic.ValidationError where a field is missing."""
    return Card.model_validate(yaml.safe_load(text))
