"""``panel``: several judges as one, for ``judge``."""

from __future__ import annotations

from typing import Literal, NamedTuple

from trajudge.face.calls import panel_of
from trajudge.judges.model import Judge
from trajudge.judges.registry import JUDGES
from trajudge.util.errors import UserError

_EXAMPLE = panel_of("NAME:MODEL,NAME:MODEL")


class PanelSpec(NamedTuple):
    """A panel of judges that vote, made by ``panel``."""

    members: tuple[str | Judge, ...]
    rule: Literal["majority", "unanimous", "mean"]
    quorum: int | None
    tie: Literal["success", "failure"]


def panel(
    *members: str | Judge,
    rule: Literal["majority", "unanimous", "mean"] = "majority",
    quorum: int | None = None,
    tie: Literal["success", "failure"] = "failure",
) -> PanelSpec:
    """Define a panel for ``judge``: members are names of judges, optionally with their own model as
    ``"NAME:MODEL"``, or functions.

    ``rule`` combines the votes, ``quorum`` is the number of members that must answer (None: the
    majority), ``tie`` the verdict when the votes are tied. Raises UserError for fewer than two
    members.
    """
    if len(members) < 2:
        raise UserError(f"panel: name two judges or more, each once:  {_EXAMPLE}")
    return PanelSpec(members, rule, quorum, tie)


def check_members(judge: str) -> None:
    """Raise UserError for the name of a judge that is made of others, which a name does not tell:
    a panel is made by ``panel``, others by the command alone."""
    entry = JUDGES.get(judge)
    if entry is None or not entry.composed:
        return
    write = f"write judge={_EXAMPLE}"
    if judge != "panel":
        write = f"run  trajudge judge --judge {judge} --members NAME:MODEL,NAME:MODEL"
    raise UserError(f"judge={judge!r} does not tell its members: {write}")
