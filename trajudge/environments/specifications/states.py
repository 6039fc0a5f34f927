"""What the state must hold after the run, as checks of a probe's reply.

The probe is asked for the rows that differ between the state before and after:
``{TABLE: {"added": [ROW...], "changed": [ROW...], "removed": [ROW...]}}``, a row that changed as it
is afterwards, and in each row, by table, the rows of that kind that name its key (the lines of an
order). ``changed_rows`` makes the same reply from a recorded run's facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from trajudge.environments.model.binding import typed
from trajudge.environments.model.spec import App, Bound, Expect
from trajudge.environments.specifications.oracle import OracleRun
from trajudge.environments.verify.frame import report_changes
from trajudge.rules.verified.tasks import BackendCheck

PROBE = "changed-rows"
_PARENT = re.compile(r"\{new_(\w+)\}")


def state_checks(app: App, run: OracleRun) -> tuple[BackendCheck, ...]:
    """Return one check for every expectation of the scenario, in their order."""
    bound = report_changes(run.scenario, run.bound, run.changes).bound
    keys = {table.name: table.key for table in app.tables}
    return tuple(
        BackendCheck(probe=PROBE, expected=_expected(expect, keys, bound, run))
        for expect in run.scenario.expect
    )


def _expected(
    expect: Expect, keys: Mapping[str, str], bound: Bound, run: OracleRun
) -> dict[str, Any]:
    """Ask for exactly one row that has all the values: of several, the path gives a list. Rows that
    are tied to another stand in that one, and are all of theirs there."""
    cells = _cells(expect, keys, bound, run)
    parent = _parent(expect)
    if parent:
        owner = next(one for one in run.scenario.expect if one.table == parent)
        rows = f"{_rows(owner, _whole_cells(owner, keys, bound, run))}.{expect.table}[*]"
        return {f"{rows}.{column}": cell for column, cell in cells.items()}
    column, cell = next(iter(cells.items()))
    return {f"{_rows(expect, _whole_cells(expect, keys, bound, run))}.{column}": cell}


def _parent(expect: Expect) -> str:
    """Return the table of the row that an expected row is tied to; empty for none."""
    parent = next(map(_PARENT.fullmatch, map(str, expect.within.values())), None)
    return parent[1] if parent else ""


def _whole_cells(
    expect: Expect, keys: Mapping[str, str], bound: Bound, run: OracleRun
) -> dict[str, Any]:
    """Return the values of a row and, by their place in it, those of the first row that is tied to
    it: an order with other lines is another order."""
    cells = _cells(expect, keys, bound, run)
    for one in run.scenario.expect:
        if _parent(one) == expect.table:
            tied = _cells(one, keys, bound, run)
            cells |= {f"{one.table}[0].{column}": cell for column, cell in tied.items()}
    return cells


def asked_rows(app: App, run: OracleRun, table: str) -> tuple[str, str]:
    """Return the paths of the rows of a table that the first expectation of them asks for: with
    what has to stand in them, and, for a run that made no such row, by their own values."""
    bound = report_changes(run.scenario, run.bound, run.changes).bound
    expect = next(one for one in run.scenario.expect if one.table == table)
    keys = {one.name: one.key for one in app.tables}
    cells = _cells(expect, keys, bound, run)
    return _rows(expect, _whole_cells(expect, keys, bound, run)), _rows(expect, cells)


def _rows(expect: Expect, cells: Mapping[str, Any]) -> str:
    """Return the path of the rows that have the values and were not undone."""
    tests = [f"@.{column} == {_literal(cell)}" for column, cell in cells.items()]
    tests += [f"@.{column} != {_literal(cell)}" for column, cell in expect.undone.items()]
    return f"$.{expect.table}.{expect.kind}[?({' && '.join(tests)})]"


def _cells(expect: Expect, keys: Mapping[str, str], bound: Bound, run: OracleRun) -> dict[str, Any]:
    """Return the values that the row must have, as the state holds them."""
    values = {column: typed(value, bound) for column, value in expect.values.items()}
    if expect.key:
        values = {keys[expect.table]: typed(expect.key, bound), **values}
    row = _row(expect, values, run)
    return {column: row[column] for column in values}


def _row(expect: Expect, values: Mapping[str, Any], run: OracleRun) -> Mapping[str, Any]:
    """Return the row that the oracle's walk added, changed or removed, with its own cells: a number
    that was typed in is a number there."""
    for change in run.changes:
        row = change.before if expect.kind == "removed" else change.after
        if (change.kind, change.table) == (expect.kind, expect.table) and all(
            str(row[column]) == str(value) for column, value in values.items()
        ):
            return row
    raise ValueError(f"the oracle's walk leaves no {expect.table} {expect.kind} as expected")


def _literal(value: Any) -> str:
    if isinstance(value, int | float):
        return str(value)
    quote = '"' if "'" in str(value) else "'"
    return f"{quote}{value}{quote}"


def changed_rows(changes: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, list[Any]]]:
    """Return what the probe says of a run, from the changes among its facts."""
    reply: dict[str, dict[str, list[Any]]] = {}
    named: dict[tuple[str, str], dict[str, Any]] = {}
    for change in changes:
        kind, table = str(change["kind"]), str(change["table"])
        row = dict(change["before" if kind == "removed" else "after"])
        reply.setdefault(table, {}).setdefault(kind, []).append(row)
        named[kind, str(change["key"])] = row
    for table, kinds in reply.items():
        for kind, rows in kinds.items():
            for row in rows:
                _nest(table, row, [named.get((kind, str(cell))) for cell in row.values()])
    return reply


def _nest(table: str, row: dict[str, Any], owners: Iterable[dict[str, Any] | None]) -> None:
    """Put a copy of the row into the rows that it names."""
    copy = {column: cell for column, cell in row.items() if not isinstance(cell, list)}
    for owner in owners:
        if owner is not None and owner is not row:
            rows = owner.setdefault(table, [])
            if isinstance(rows, list):  # not a column that has the table's name
                rows.append(copy)
