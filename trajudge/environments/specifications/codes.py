"""The operation codes that a recorded run may report, for a specification that is written for it.

A code is a keyed hash of a row as it is, and the key is drawn when the run is set up. Of the two
rows that count, one is known then: the row that the oracle's way would make under this key. The
other is in the record: a row that the run itself made as the task asks, with whatever it filled in
beside (a note, another number). Which row is as the task asks is read by the checks of the state,
not by the verifier that labels the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trajudge.environments.apps import load_app
from trajudge.environments.model.operation_codes import operation_code
from trajudge.environments.specifications.oracle import OracleRun
from trajudge.environments.specifications.states import asked_rows, changed_rows
from trajudge.rules.verified.network import find


def known_codes(run: OracleRun, facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the right codes of a recorded run, the oracle's first; none for a task without a code
    and for a recording without keys."""
    tables = [answer.sql for answer in run.scenario.answers if answer.kind == "code"]
    if not tables or "code_key" not in facts:
        return ()
    key, (table,) = bytes.fromhex(facts["code_key"]), tables
    paths = asked_rows(load_app(facts["app"]), run, table)
    oracle = [change._asdict() for change in run.changes]
    rows = [*_found(paths, oracle), *_found(paths, facts["changes"])]
    return tuple(dict.fromkeys(operation_code(key, run.scenario.id, table, row) for row in rows))


def _found(paths: Iterable[str], changes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows at the first path that leads to any, without the rows of others that stand in
    them."""
    reply = changed_rows(changes)
    rows: list[Any] = next(filter(None, (find(path, reply) for path in paths)), [])
    return [
        {name: cell for name, cell in row.items() if not isinstance(cell, list)} for row in rows
    ]
