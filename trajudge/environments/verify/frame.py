"""The difference of two states, read through a scenario: what holds, what was permitted, and what
nobody asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from trajudge.environments.model.binding import typed
from trajudge.environments.model.spec import AllowedChange, Bound, Expect, Scenario
from trajudge.environments.model.state import Change
from trajudge.environments.verify.model import ChangeFact, Predicate


class ChangeReport(NamedTuple):
    """``rows`` gives, for every table that an expectation found a change in, the key of the first
    such row; ``bound`` is the binding with ``new_TABLE`` for the rows that were expected to appear
    ("" where none did)."""

    predicates: tuple[Predicate, ...]
    changes: tuple[ChangeFact, ...]
    rows: Mapping[str, str]
    bound: Bound

    @property
    def holds(self) -> bool:
        return all(predicate.holds for predicate in self.predicates)

    @property
    def no_side_effect(self) -> bool:
        """Whether nothing happened that nobody asked for."""
        return all(change.inside for change in self.changes)


def report_changes(scenario: Scenario, bound: Bound, changes: Sequence[Change]) -> ChangeReport:
    """Return which expectations hold, and which changes are inside of the frame.

    An expectation claims at most as many changes as it wants: doing what was asked for once more
    is a side effect. Later expectations may name the row that an earlier one found to be added as
    ``{new_TABLE}``, which ties a line to its order.
    """
    binding: dict[str, Any] = dict(bound)
    predicates: list[Predicate] = []
    rows: dict[str, str] = {}
    claimed: dict[tuple[str, str], set[str]] = {}
    for expect in scenario.expect:
        meeting = [change for change in changes if _meets(expect, change, binding)]
        meeting = _whole(scenario, expect, meeting, changes, binding) or meeting
        predicates.append(_predicate(expect, meeting, _beside(expect, changes, binding, meeting)))
        for change in meeting[: expect.count]:
            columns = _asked(expect, change)
            claimed.setdefault((change.table, change.key), set()).update(columns)
        if meeting:
            rows.setdefault(expect.table, meeting[0].key)
        if expect.kind == "added":
            binding.setdefault(f"new_{expect.table}", meeting[0].key if meeting else "")
    done = all(predicate.holds for predicate in predicates)
    may = [change for change in scenario.may if not (done and change.on_the_way)]
    facts = tuple(_fact(c, claimed.get((c.table, c.key)), may, binding) for c in changes)
    return ChangeReport(tuple(predicates), facts, rows, binding)


def _whole(
    scenario: Scenario,
    expect: Expect,
    rows_met: Sequence[Change],
    changes: Sequence[Change],
    bound: Bound,
) -> list[Change]:
    """Return those of the added rows in which everything stands that is wanted within one of them:
    an order with other lines is another order, and none of the orders that were asked for."""
    name = f"new_{expect.table}"
    tied = [one for one in scenario.expect if f"{{{name}}}" in one.within.values()]
    if expect.kind != "added" or not tied or name in bound:
        return []

    def stands(one: Expect, row: Change) -> bool:
        binding = {**bound, name: row.key}
        meeting = [change for change in changes if _meets(one, change, binding)]
        return _predicate(one, meeting, _beside(one, changes, binding, meeting)).holds

    return [row for row in rows_met if all(stands(one, row) for one in tied)]


def _predicate(expect: Expect, met: Sequence[Change], beside: int) -> Predicate:
    """Return what holds: as many changes as wanted, and none beside them."""
    number = len(met) + (beside if len(met) >= expect.count else 0)
    return Predicate(
        name=named(expect), holds=number == expect.count, found=number, wanted=expect.count
    )


def _beside(expect: Expect, changes: Sequence[Change], bound: Bound, met: Sequence[Change]) -> int:
    """Count the changes of this kind that stand with the expected ones and are none of them."""
    within = _tied(expect, bound)
    return sum(
        (change.kind, change.table) == (expect.kind, expect.table)
        and _held(within, change, bound)
        and change not in met
        for change in changes
        if within
    )


def _tied(expect: Expect, bound: Bound) -> Mapping[str, str | int]:
    """Return ``within``, or nothing where the row that it names was never made."""
    return {} if "" in [typed(value, bound) for value in expect.within.values()] else expect.within


def named(expect: Expect) -> str:
    """Render an expectation as ``added line: product = {product[id]}, quantity = {quantity}``."""
    key = f" {expect.key}" if expect.key else ""
    count = f" x{expect.count}" if expect.count != 1 else ""
    values = ", ".join(f"{column} = {value}" for column, value in expect.values.items())
    return f"{expect.kind} {expect.table}{key}{count}" + (f": {values}" if values else "")


def _meets(expect: Expect, change: Change, bound: Bound) -> bool:
    if (change.kind, change.table) != (expect.kind, expect.table):
        return False
    if expect.key and str(typed(expect.key, bound)) != change.key:
        return False
    if change.kind == "changed" and expect.values and not set(expect.values) & set(change.columns):
        return False  # another column changed; the expected values were there before
    if expect.undone and _held(expect.undone, change, bound):
        return False
    return _held({**expect.values, **_tied(expect, bound)}, change, bound)


def _held(values: Mapping[str, str | int], change: Change, bound: Bound) -> bool:
    row = change.before if change.kind == "removed" else change.after
    return all(_same(row.get(column), typed(value, bound)) for column, value in values.items())


def _same(cell: Any, value: Any) -> bool:
    """Cells are text or numbers; a number that was written as text is the same number."""
    return cell is not None and (cell == value or str(cell) == str(value))


def _asked(expect: Expect, change: Change) -> Iterable[str]:
    """Return the columns of the change that the expectation covers."""
    if change.kind == "changed" and expect.values:
        return expect.values
    return change.columns


def _fact(
    change: Change, claimed: set[str] | None, may: Sequence[AllowedChange], bound: Bound
) -> ChangeFact:
    left = set(change.columns) - (claimed or set())
    inside = claimed is not None and not left
    for permitted in may:
        if (permitted.kind, permitted.table) != (change.kind, change.table):
            continue
        if not _held(permitted.values, change, bound):
            continue
        whole = change.kind != "changed" or not permitted.columns
        left -= left if whole else set(permitted.columns)
        inside = inside or not left
    columns = change.columns if inside else tuple(n for n in change.columns if n in left)
    return ChangeFact(
        kind=change.kind,
        table=change.table,
        key=change.key,
        columns=columns,
        before=dict(change.before),
        after=dict(change.after),
        inside=inside,
    )
