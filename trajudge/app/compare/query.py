"""What an address asks of the comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson

from trajudge.app.pages.filtering import asked_filter
from trajudge.app.server.links import address
from trajudge.eval.store.queries import Clause, Filter

PRESETS = {
    "": "all trajectories",
    "wrong": "all agree and are wrong",
    "differs": "one differs",
    "rule": "rule against expert",
    "ab": "A right, B wrong",
    "unstable": "a judge unstable over its samples",
}
_CONDITIONS = {
    "wrong": "t.expert in (0, 1) and t.yes + t.no > 1 and t.failed = 0 "
    "and iif(t.expert = 0, t.no, t.yes) = 0",
    "differs": "t.yes + t.no > 1 and min(t.yes, t.no) = 1",
    "rule": "t.rule in (0, 1) and t.expert in (0, 1) and t.rule <> t.expert",
    "unstable": "exists (select 1 from judgment j where j.trajectory = t.id and j.status = 'ok' "
    "group by j.judge having min(j.success) <> max(j.success))",
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

    def clause(self, only_first: Sequence[int]) -> Clause:
        """Make the condition of the filter and the preset on ``trajectory t``; ``only_first`` are
        the numbers of those on which only the first judge was right."""
        clause = self.chosen.trajectories()
        if self.preset == "ab":
            among = "t.id in (select value from json_each(?))"
            numbers = orjson.dumps(only_first).decode()
            return Clause(f"({clause.sql}) and {among}", (*clause.parameters, numbers))
        extra = _CONDITIONS.get(self.preset)
        return Clause(f"({clause.sql}) and {extra}", clause.parameters) if extra else clause


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
