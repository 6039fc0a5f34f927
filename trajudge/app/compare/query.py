"""What an address asks of the comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from trajudge.app.pages.filtering import asked_filter
from trajudge.app.server.links import address
from trajudge.eval.store.filters import Filter, JudgmentView
from trajudge.stats.intervals import Bools, Ints

PRESETS = {
    "": "all trajectories",
    "wrong": "all agree and are wrong",
    "differs": "one differs",
    "rule": "rule against expert",
    "ab": "A right, B wrong",
    "unstable": "a judge unstable over its samples",
}


def _wrong(view: JudgmentView) -> Bools:
    yes, no, failed = view.votes
    right = np.where(view.expert == 0, no, yes)
    return np.asarray((view.expert >= 0) & (yes + no > 1) & (failed == 0) & (right == 0))


def _differs(view: JudgmentView) -> Bools:
    yes, no, _ = view.votes
    return np.asarray((yes + no > 1) & (np.minimum(yes, no) == 1))


def _by_rule(view: JudgmentView) -> Bools:
    return np.asarray((view.rule >= 0) & (view.expert >= 0) & (view.rule != view.expert))


_CONDITIONS: dict[str, Callable[[JudgmentView], Bools]] = {
    "wrong": _wrong,
    "differs": _differs,
    "rule": _by_rule,
    "unstable": lambda view: view.unstable,
}


class CompareQuery(NamedTuple):
    """``first`` and ``second`` are the judges of the table of two; ``problem`` says why the filter
    cannot be read; ``show`` is the number of the judgment in the side panel, -1 for none."""

    runs: tuple[str, ...]
    text: str
    chosen: Filter
    problem: str
    preset: str
    first: str
    second: str
    after: int
    show: int

    def link(self, **changes: str | int | None) -> str:
        """Return the address of this page with something changed."""
        kept: dict[str, str | int | None] = {
            "runs": ",".join(self.runs),
            "f": self.text,
            "preset": self.preset,
            "a": self.first,
            "b": self.second,
            "after": self.after if self.after >= 0 else None,
        }
        return address("compare", **{**kept, **changes})

    def trajectories(self, view: JudgmentView, only_first: Ints) -> Bools:
        """Return the trajectories that filter and preset keep, (T,); ``only_first`` are the places
        of those on which only the first judge was right."""
        kept = self.chosen.trajectories(view)
        if self.preset == "ab":
            kept &= np.isin(np.arange(len(kept)), only_first)
        elif self.preset:
            kept &= _CONDITIONS[self.preset](view)
        return kept


def read_compare(values: Mapping[str, str], runs: list[str]) -> CompareQuery:
    """Read a query; what is not understood has its default, a bad filter is a ``problem``."""
    preset = values.get("preset", "")
    return CompareQuery(
        runs=tuple(name for each in runs for name in each.split(",") if name),
        **asked_filter(values)._asdict(),
        preset=preset if preset in PRESETS else "",
        first=values.get("a", ""),
        second=values.get("b", ""),
        after=_number(values.get("after", "")),
        show=_number(values.get("show", "")),
    )


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 13 else -1
