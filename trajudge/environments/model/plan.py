"""Steps of a plan: what an agent means to do, on controls named by their labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trajudge.environments.model.page import Label, Word

Do = Literal["follow", "press", "enter", "choose", "tick", "scan"]


@dataclass(frozen=True, slots=True)
class PlanStep:
    """What an agent means to do, on the control with this label, wherever it is on the page.

    ``follow`` a link (through "next page" links where a list is long), ``press`` a form's button,
    ``enter`` text, ``choose`` an option (``text`` is its label), ``tick`` a checkbox, ``scan`` the
    rest of a list to its last page. ``why`` ends the sentence "Next I ...". With ``refused`` the
    site is to answer that it cannot be done, and why: the next steps are the way round.
    """

    do: Do
    label: Label
    text: Label = ""
    why: str = ""
    refused: bool = False


def follow(label: Label, why: str) -> PlanStep:
    return PlanStep("follow", label, why=why)


def press(label: Label, why: str) -> PlanStep:
    return PlanStep("press", label, why=why)


def enter(label: Label, text: str | int, why: str) -> PlanStep:
    return PlanStep("enter", label, str(text), why)


def choose(label: Label, option: Label, why: str) -> PlanStep:
    return PlanStep("choose", label, option, why)


def tick(label: Label, why: str) -> PlanStep:
    return PlanStep("tick", label, why=why)


def scan(why: str) -> PlanStep:
    return PlanStep("scan", Word("next_page"), why=why)
