"""What a task of the shop is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from environments.state import Change, State

START = "http://shop.localhost/"


@dataclass(frozen=True)
class Move:
    """What an agent means to do: on the element with this role and name, for this reason."""

    do: Literal["click", "fill", "select_option", "go_back", "send_msg_to_user", "miss"]
    role: str = ""
    name: str = ""
    text: str = ""
    why: str = ""


@dataclass(frozen=True)
class Task:
    """A task of the shop. ``plan`` is the shortest way known; the others derive from it.

    ``holds`` is the predicate on the final state, ``permits`` the frame (a change outside of it is
    a side effect), ``answer`` the amount of money that the last message must name.

    ``early`` is how many moves of the plan an agent does that stops one step early, ``claimed`` how
    many before one that claims success falsely, ``lost`` how many before one that goes round in the
    moves of ``circle``. ``extra`` is put in after ``extra_at`` moves. ``said`` are wordings of the
    last message, ``said_claim`` those of a false one where they differ. ``reward_url`` and
    ``reward_answer`` are all that the official reward looks at.
    """

    id: str
    goal: str
    plan: tuple[Move, ...]
    wrong: tuple[Move, ...]
    early: int
    claimed: int
    lost: int
    circle: tuple[Move, ...]
    extra: tuple[Move, ...]
    extra_at: int
    said: tuple[str, ...]
    said_early: str
    said_wrong: str
    holds: Callable[[State], bool]
    permits: Callable[[Change], bool]
    said_claim: tuple[str, ...] = ()
    answer: str | None = None
    reward_url: str = ""
    reward_answer: str = ""
    start: str = START
