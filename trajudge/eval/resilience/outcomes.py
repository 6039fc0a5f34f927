"""Which tasks succeeded, as the user's own evaluation says: CSV or JSON Lines.

Columns ``task``, ``arm`` (``clean``, or the name of the faulted folder) and ``success`` (true,
false, 1, 0, yes, no; empty is unknown), and where they occur ``seed``, ``agent`` and ``steps``.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import read_text

_TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": None}


class TaskOutcome(NamedTuple):
    """How a run of a task ended."""

    success: bool | None
    agent: str
    steps: int | None


class OutcomePlace(NamedTuple):
    """Which run an outcome is of; without a seed, each run of the task."""

    arm: str
    task: str
    seed: int | None


@dataclass(frozen=True)
class OutcomeFile:
    """Outcomes by arm, task and seed, which a file may leave out."""

    path: Path
    outcomes: Mapping[OutcomePlace, TaskOutcome]

    @classmethod
    def read(cls, path: Path) -> OutcomeFile:
        """Read a file. Raises UserError that names the line and the value."""
        outcomes: dict[OutcomePlace, TaskOutcome] = {}
        for number, row in _rows(path):
            task = str(row.get("task") or "")
            arm = str(row.get("arm") or "")
            if not task or not arm or "success" not in row:
                raise UserError(f"{path}, line {number}: needs the columns task, arm and success")
            place = OutcomePlace(arm, task, _number(path, number, row, "seed"))
            if place in outcomes:
                raise UserError(f"{path}, line {number}: {task!r} has an outcome already")
            outcomes[place] = TaskOutcome(
                _truth(path, number, row["success"]),
                _word(row, "agent") or "",
                _number(path, number, row, "steps"),
            )
        return cls(path, outcomes)

    def place_of(self, arm: str, task: str, seed: int) -> OutcomePlace | None:
        """Return where a run's outcome stands: the line that names most of it; None for none."""
        places = (OutcomePlace(arm, task, seed), OutcomePlace(arm, task, None))
        return next((place for place in places if place in self.outcomes), None)


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        text = read_text(path)
    except OSError as error:
        raise UserError(f"--outcomes {path}: cannot be read ({error.strerror})") from error
    if path.suffix != ".jsonl":
        reader = csv.DictReader(io.StringIO(text, newline=""))
        yield from ((number, row) for number, row in enumerate(reader, 2))
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if not isinstance(row, dict):
                raise UserError(f"{path}, line {number}: no JSON object")
            yield number, row


def _truth(path: Path, number: int, value: Any) -> bool | None:
    word = "" if value is None else str(value).strip().lower()
    if word not in _TRUTHS:
        raise UserError(
            f"{path}, line {number}: success is {value!r:.40}: write true, false, or nothing where "
            "it is not known"
        )
    return _TRUTHS[word]


def _word(row: Mapping[str, Any], name: str) -> str | None:
    value = row.get(name)
    return str(value) if value not in (None, "") else None


def _number(path: Path, line: int, row: Mapping[str, Any], name: str) -> int | None:
    value = row.get(name)
    if value in (None, ""):
        return None
    try:
        return int(str(value))
    except ValueError:
        raise UserError(f"{path}, line {line}: {name} is {value!r:.40}, no whole number") from None
