"""One configuration of a scenario, and how the interface stands when a run begins."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, get_args

from pydantic import Field

from trajudge.trajectories.model import Record

Engine = Literal["text", "chromium"]
Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
PROFILES = 12
STRESS = PROFILES  # a profile beyond those: what people write looks like markup
THEMES = 12
STATES = 12
PAGE_SIZES = (10, 14, 18, 24)


def split_of(seed: int) -> Split:
    """Return the split whose data a seed draws: the splits' seeds are residue classes."""
    return SPLITS[seed % len(SPLITS)]


drawn_split: ContextVar[Split] = ContextVar("drawn_split", default="train")
"""The split that rows are drawn for: the test split has names of its own."""


class Config(Record):
    """One configuration of a scenario. ``noise`` 0 is none; the other axes are indices."""

    app: str
    scenario: str
    instance: int = Field(default=0, ge=0)
    profile: int = Field(default=0, ge=0, le=STRESS)
    theme: int = Field(default=0, ge=0, lt=THEMES)
    ui: int = Field(default=0, ge=0, lt=STATES)
    noise: int = Field(default=0, ge=0)
    seed: int = Field(default=0, ge=0)

    @property
    def id(self) -> str:
        """``shop.buy.i3.p1.t0.u2.n0.s0``: a name for files and task ids."""
        axes = zip("iptuns", (self.instance, self.profile, self.theme, self.ui), strict=False)
        numbers = [f"{letter}{value}" for letter, value in axes]
        return ".".join([self.app, self.scenario, *numbers, f"n{self.noise}", f"s{self.seed}"])


@dataclass(frozen=True, slots=True)
class Ui:
    """How the interface stands when a run begins. ``sort`` counts the application's sort orders;
    ``folded`` hides the navigation behind a menu button; ``script`` says whether a browser gets the
    script of the widgets, or their plain forms alone as the text engine does."""

    start: str
    page_size: int
    sort: int
    folded: bool
    script: Literal["none", "full"] = "none"
