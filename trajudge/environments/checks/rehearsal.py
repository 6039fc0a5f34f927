"""The oracle's walk through a task, as far as the search for a shorter way asks for it: what it
took, what it entered, what it changed and which pages it came past.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from trajudge.environments.checks.alternatives import Place
from trajudge.environments.checks.walk import Walk
from trajudge.environments.kit.reading import texts
from trajudge.environments.model.axes import open_state
from trajudge.environments.model.config import Config, Ui
from trajudge.environments.model.page import Label
from trajudge.environments.model.plan import PlanStep
from trajudge.environments.model.site import Site
from trajudge.environments.model.spec import App
from trajudge.environments.model.state import Change, Dump, difference

_NUMBER = re.compile(r"\d+(?:\.\d+)?")

Signature = tuple[object, ...]  # what a change comes to
Spot = tuple[str, tuple[tuple[str, str], ...]]  # a page and its arguments, sorted


@dataclass(frozen=True)
class Rehearsal:
    """What the oracle's walk was: browser ``actions``, ``changes`` of the state, what was
    ``entered`` by label of the field, the pages come to ``early``, before anything changed, and
    the texts ``shown`` on all pages."""

    actions: int
    changes: frozenset[Signature]
    entered: Mapping[Label, set[Label]]
    early: Sequence[Place]
    shown: str

    @property
    def reckoned(self) -> list[Spot]:
        """List the early pages that were asked for with numbers which the oracle enters."""
        entered: set[Label] = set().union(*self.entered.values())
        numbers = {text for text in entered if _NUMBER.fullmatch(str(text))}
        return [spot(*place) for place in self.early if numbers & set(place[1].values())]


def rehearse(
    app: App, config: Config, interface: Ui, plan: Sequence[PlanStep], before: Dump
) -> Rehearsal:
    """Walk the oracle's ``plan`` on a fresh state, which is as ``before``."""
    early: list[Place] = []
    changes: set[Signature] = set()
    entered: dict[Label, set[Label]] = {}
    with closing(open_state(app, config)) as state:
        walk = Walk(Site(app, state, interface))
        walk.open(interface.start, {})
        for step in plan:
            walk.do(step)
            changed = difference(before, state.dump())
            changes |= {signature(change) for change in changed}
            if not changed:
                early = [(visit.name, visit.args) for visit in walk.visits]
            if step.do in ("enter", "choose", "tick"):
                entered.setdefault(step.label, set()).add(step.text)
        shown = " | ".join(text for visit in walk.visits for text in texts(visit.page))
    return Rehearsal(walk.moved, frozenset(changes), entered, early, shown)


def spot(name: str, args: Mapping[str, str]) -> Spot:
    """Return a page and its arguments as a key."""
    return name, tuple(sorted(args.items()))


def signature(change: Change) -> Signature:
    """Return what a change comes to; the key of a row that was added is drawn and left out."""
    row = change.before if change.kind == "removed" else change.after
    cells = list(row.items())
    return (change.kind, change.table, *(cells[1:] if change.kind == "added" else cells))
