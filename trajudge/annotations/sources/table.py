"""Labels in a user's table: CSV, JSON, JSON lines or Parquet, one label per row.

Columns are recognised by name, or named with ``--columns run=trajectory,label=ok,annotator=who``
(``ROLES``). A row is joined to a trajectory by its run (a key, a name or a path), or by its task
with the benchmark, agent and attempt columns of the table. Rows without a match are counted, with
an example; a cell that is neither yes nor no is skipped, and never counts as no.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from trajudge.annotations.model import Label
from trajudge.trajectories.model import TrajectoryKey, canonical_task_id
from trajudge.util.errors import UserError
from trajudge.util.foreign_table import (
    ForeignTable,
    choose_column,
    holds_scores,
    missing_column,
    named_column,
    parse_columns,
    parse_words,
    read_rows,
    read_verdict,
)
from trajudge.util.terminal import count_of, listed

_SUFFIXES = {".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".txt"}

ROLES: Mapping[str, tuple[str, ...]] = {
    "label": (
        *("success", "successful", "label", "human_label", "human", "expert", "expert_label"),
        *("gold", "ground_truth", "ok", "correct", "passed", "outcome", "result", "verdict"),
        *("erfolg", "urteil"),
    ),
    "side_effect": ("side_effect", "side_effects", "nebenwirkung"),
    "repetition": ("repetition", "repeats", "looping", "loop", "wiederholung"),
    "annotator": (
        *("annotator", "annotator_id", "rater", "labeler", "labeller", "labelled_by", "who"),
        *("person", "annotatorin", "prüfer"),
    ),
    "run": (
        *("run", "trajectory", "trajectory_id", "run_id", "run_name", "trace", "trace_id"),
        *("episode", "session", "key", "file", "filename", "path", "lauf"),
    ),
    "benchmark": ("benchmark", "dataset", "suite"),
    "agent": ("agent", "agent_name", "policy", "system"),
    "task": ("task", "task_id", "task_name", "question_id", "example_id", "id", "aufgabe"),
    "attempt": ("attempt", "trial", "repeat", "try", "versuch"),
}
"""What a column of the table may be, with the names by which it is found."""

_OF_OTHERS = re.compile(r"reward|rule|judge|pred|model|score", re.I)
_VERDICTS = {"label": "success", "side_effect": "side_effect", "repetition": "repetition"}
_PARTS = ("benchmark", "agent", "task", "attempt")
_ANNOTATOR = "expert"  # where no column says whose label it is


def _only_verdicts(
    table: ForeignTable, taken: Collection[str], words: Mapping[str, bool]
) -> str | None:
    """Return the only column with yes or no in words, if there is exactly one; never one named
    after a reward or a judge."""
    columns = []
    for name in table.columns:
        if name not in taken and not _OF_OTHERS.search(name):
            cells = set(table.column(name))
            reasons = {read_verdict(cell, words).reason for cell in cells}
            in_words = any(cell and not cell.isdigit() for cell in cells)
            if in_words and "" in reasons and "unreadable" not in reasons:
                columns.append(name)
    return columns[0] if len(columns) == 1 else None


def detect(path: Path) -> bool:
    """Return True for a file with a table's extension."""
    return path.suffix.lower() in _SUFFIXES and not path.is_dir()


def load(
    path: Path, columns: str = "", keys: Iterable[TrajectoryKey] | None = None
) -> tuple[list[Label], str]:
    """Read the labels of a table, and print how its rows were joined to ``keys``.

    ``columns`` is the value of ``--columns`` and ``--words``, ``ROLE=COLUMN,...;WORD=yes,...``.
    Without ``keys`` each row's key consists of its own cells, and nothing is printed. Raises
    UserError for a file that is not a table, a missing column, and if no row matches a key.
    """
    table = read_rows(path)
    if not len(table):
        raise UserError(f"{path}: has column names and no rows: add a row for each label")
    named, _, meanings = columns.partition(";")
    chosen = _Columns.of(table, parse_columns(named, [*ROLES]), parse_words(meanings))
    join = _own_keys(chosen) if keys is None else _joined(chosen, list(dict.fromkeys(keys)))
    labels, counts = _labels(chosen, join)
    if keys is None:
        return labels, ""
    return labels, _report(chosen, join, counts, labels)


def check_columns(columns: str | None, words: str | None) -> None:
    """Check ``--columns`` and ``--words`` before a file is read. Raises UserError."""
    parse_columns(columns, [*ROLES])
    parse_words(words)


@dataclass(frozen=True)
class _Columns:
    """The columns of a table by role; ``labels`` may be several, one per annotator."""

    table: ForeignTable
    labels: tuple[str, ...]
    others: Mapping[str, str]
    named: frozenset[str]
    words: Mapping[str, bool]

    @classmethod
    def of(
        cls, table: ForeignTable, named: Mapping[str, Sequence[str]], words: Mapping[str, bool]
    ) -> _Columns:
        names: dict[str, list[str]] = {}
        for role, columns in named.items():
            if len(columns) > 1 and role != "label":
                raise UserError(f"--columns {role}=: is given {len(columns)} columns: give one")
            names[role] = [named_column(table, one, f"--columns {role}={one}") for one in columns]
        taken = {name for several in names.values() for name in several}
        for role, candidates in ROLES.items():
            if role not in names and (name := choose_column(table, candidates, taken=taken)):
                names[role] = [name]
                taken.add(name)
        if "label" not in names and (only := _only_verdicts(table, taken, words)):
            names["label"] = [only]
        if "label" not in names:
            raise missing_column(table, "label", ROLES["label"], words)
        if not {"run", "task"} & names.keys():
            raise missing_column(table, "run", (*ROLES["run"], *ROLES["task"]), words)
        labels = names.pop("label")
        for name in labels:
            unread = (c for c in table.column(name) if read_verdict(c, words).verdict is None)
            if holds_scores(unread):
                raise UserError(
                    f"{table.source}: the column {name!r} holds numbers other than 0 and 1: name a "
                    "column of yes and no with --columns label=COLUMN. It has "
                    f"{'; '.join(table.describe(words))}"
                )
        others = {role: several[0] for role, several in names.items()}
        chosen = cls(table, tuple(labels), others, frozenset(named), words)
        return chosen._with_attempts()

    def _with_attempts(self) -> _Columns:
        """Use a column of counted runs in addition to the tasks as the attempts, as in
        ``task,run``."""
        run = self.others.get("run")
        if run is None or "task" not in self.others or "attempt" in self.others:
            return self
        if "run" in self.named or not all(cell.isdigit() for cell in self.table.column(run)):
            return self
        others = {role: name for role, name in self.others.items() if role != "run"}
        return _Columns(self.table, self.labels, {**others, "attempt": run}, self.named, self.words)

    def cells(self, role: str) -> list[str]:
        return self.table.column(self.others[role])

    def text(self) -> str:
        pairs = [*(("label", name) for name in self.labels), *self.others.items()]
        return ", ".join(f"{role}={name}" for role, name in pairs)


class _Unmatched(NamedTuple):
    """The cells of a row, and the trajectories that match equally well, none or several."""

    cells: str
    fits: Sequence[TrajectoryKey] = ()


@dataclass
class _Join:
    """The key of each row, or why it has none."""

    by: str
    rows: list[TrajectoryKey | _Unmatched]
    keys: Sequence[TrajectoryKey] = ()
    notes: list[str] = field(default_factory=list)

    @property
    def matched(self) -> int:
        return sum(isinstance(one, TrajectoryKey) for one in self.rows)


def _own_keys(columns: _Columns) -> _Join:
    """Return the key of every row from its own cells. Raises UserError for one without a task,
    or with an invalid attempt."""
    rows = range(len(columns.table))
    cells = {role: columns.cells(role) for role in columns.others}
    task = cells["task" if "task" in cells else "run"]
    attempts = cells.get("attempt", [])
    for row in rows:
        if not task[row]:
            raise UserError(f"{columns.table.at(row)}: names no task: name that of every row")
        if attempts and attempts[row] and not attempts[row].isdigit():
            raise UserError(
                f"{columns.table.at(row)}: the attempt {attempts[row]!r} is no whole number: "
                "number the attempts of a task from 0"
            )
    keys: list[TrajectoryKey | _Unmatched] = [
        TrajectoryKey(
            benchmark=cells["benchmark"][row] if "benchmark" in cells else "",
            agent=cells["agent"][row] if "agent" in cells else "",
            task_id=task[row],
            attempt=int(attempts[row]) if attempts and attempts[row].isdigit() else 0,
        )
        for row in rows
    ]
    return _Join("its own columns", keys)


def _joined(columns: _Columns, keys: Sequence[TrajectoryKey]) -> _Join:
    """Join the rows in the way that matches most of them: by run, or by task. Raises UserError
    without a match."""
    ways = []
    if "run" in columns.others:
        ways.append(_by_run(columns, keys))
    if "task" in columns.others:
        ways.append(_by_task(columns, keys))
    best = max(ways, key=lambda way: way.matched)
    if best.matched:
        return best
    ways_tried = " and ".join(f"{way.by} ({_first_row(columns, way)})" for way in ways)
    raise UserError(
        f"--annotations {columns.table.source}: none of its {count_of(len(columns.table), 'row')} "
        f"belongs to one of the {count_of(len(keys), 'trajectory')}, by {ways_tried}; a trajectory "
        f"is {str(keys[0])!r} (benchmark/agent/task): name other columns with --columns, which has "
        f"{', '.join(ROLES)}"
        if keys
        else f"--annotations {columns.table.source}: there is no trajectory to join it to"
    )


def _first_row(columns: _Columns, way: _Join) -> str:
    roles = ("run",) if way.by == "run" else [role for role in _PARTS if role in columns.others]
    cells = " ".join(f"{role} {columns.cells(role)[0]!r}" for role in roles)
    return f"{columns.table.at(0)}: {cells}"


def _by_run(columns: _Columns, keys: Sequence[TrajectoryKey]) -> _Join:
    owners: dict[str, list[TrajectoryKey]] = {}
    for key in keys:
        for name in _names_of(key):
            owners.setdefault(name, []).append(key)

    def find(cell: str) -> TrajectoryKey | _Unmatched:
        several: list[TrajectoryKey] = []
        for name in _readings(cell):
            owning = owners.get(name, [])
            if len(owning) == 1:
                return owning[0]
            several = several or owning
        return _Unmatched(f"run {cell!r}", several)

    return _Join("run", [find(cell) for cell in columns.cells("run")], keys)


def _names_of(key: TrajectoryKey) -> dict[str, None]:
    """Return the names by which a run may be given: its key, or the end of it."""
    whole = f"{key.benchmark}/{key.agent}/{key.task_id}"
    ends = (whole, f"{key.agent}/{key.task_id}", key.task_id)
    names = dict.fromkeys(f"{end}#{key.attempt}" for end in ends)
    return names if key.attempt else {**names, **dict.fromkeys(ends)}


def _readings(cell: str) -> Iterator[str]:
    """Yield the possible meanings of a cell, the exact one first: the text, and the ends of a
    path."""
    yield cell
    path = PurePosixPath(cell.replace("\\", "/"))
    for end in (path, path.with_suffix("") if path.suffix else path):
        for count in (3, 2, 1):
            yield "/".join(end.parts[-count:])
    for inner in (path.parent, path.parent.parent):  # run-7/trajectory.json
        yield "/".join(inner.parts[-2:])
        yield inner.name


def _by_task(columns: _Columns, keys: Sequence[TrajectoryKey]) -> _Join:
    notes: list[str] = []
    roles = [role for role in _PARTS if role in columns.others]
    for role in ("benchmark", "agent"):
        if role in roles and role not in columns.named:
            names = set(columns.cells(role))
            if len(names) == 1 and not names & {getattr(key, role) for key in keys}:
                roles.remove(role)
                known = sorted({getattr(key, role) for key in keys})
                notes.append(
                    f"the column {columns.others[role]!r} is not used: no trajectory has the "
                    f"{role} {names.pop()!r}, they have {listed([repr(one) for one in known], 3)}"
                )
    cells = {role: columns.cells(role) for role in roles}
    first = _first_attempt(cells.get("attempt"), keys)
    if first:
        notes.append(f"attempts are counted from {first} in the table, from 0 in the trajectories")
    owners: dict[tuple[str, ...], list[TrajectoryKey]] = {}
    for key in keys:
        for task in {key.task_id, canonical_task_id(key.benchmark, key.task_id)}:
            values = {"task": task, "attempt": str(key.attempt)}
            name = tuple(values.get(role) or getattr(key, role) for role in roles)
            owners.setdefault(name, []).append(key)

    def find(row: int) -> TrajectoryKey | _Unmatched:
        values = {role: cells[role][row] for role in roles}
        if first and values["attempt"].isdigit():
            values["attempt"] = str(int(values["attempt"]) - first)
        if "benchmark" in values:
            values["task"] = canonical_task_id(values["benchmark"], values["task"])
        owning = owners.get(tuple(values[role] for role in roles), [])
        if len(owning) == 1:
            return owning[0]
        return _Unmatched(" ".join(f"{role} {cells[role][row]!r}" for role in roles), owning)

    by = " and ".join([", ".join(roles[:-1]), roles[-1]] if roles[1:] else roles)
    return _Join(by, [find(row) for row in range(len(columns.table))], keys, notes)


def _first_attempt(cells: Sequence[str] | None, keys: Sequence[TrajectoryKey]) -> int:
    """Return 1 if a table counts attempts from 1: each is one more than an existing attempt
    (from 0), and the highest is one more than the highest."""
    numbers = {int(cell) for cell in cells or () if cell.isdigit()}
    attempts = {key.attempt for key in keys}
    counted = bool(numbers) and min(numbers) == 1 and max(numbers) == max(attempts, default=0) + 1
    return int(counted and {number - 1 for number in numbers} <= attempts)


def _labels(columns: _Columns, join: _Join) -> tuple[list[Label], dict[str, list[str]]]:
    """Return the labels of the joined rows, and the positions of cells without a verdict by
    reason."""
    table, words = columns.table, columns.words
    fields = {
        field: columns.cells(role) for role, field in _VERDICTS.items() if role in columns.others
    }
    annotators = columns.cells("annotator") if "annotator" in columns.others else []
    verdicts = {name: table.column(name) for name in columns.labels}
    counts: dict[str, list[str]] = {"empty": [], "unsure": [], "unreadable": []}
    labels: list[Label] = []
    for row, key in enumerate(join.rows):
        if not isinstance(key, TrajectoryKey):
            continue
        others = {}
        for name, cells in fields.items():
            others[name], reason = read_verdict(cells[row], words)
            if reason == "unreadable":
                counts[reason].append(f"{table.row_label(row)}, {name}: {cells[row][:40]!r}")
        for name, cells in verdicts.items():
            success, reason = read_verdict(cells[row], words)
            if reason:
                counts[reason].append(f"{table.row_label(row)}: {cells[row][:40]!r}")
            if reason in ("empty", "unreadable") and not any(
                v is not None for v in others.values()
            ):
                continue
            who = (annotators[row] if annotators else "") or _ANNOTATOR
            if len(verdicts) > 1:
                who = f"{who} {name}" if annotators else name
            labels.append(
                Label(key=key, raw_task_id=key.task_id, annotator=who, success=success, **others)
            )
    if not labels:
        raise UserError(
            f"{table.source}: no verdict in {', '.join(map(repr, columns.labels))} can be read, "
            f"{next((places[0] for places in counts.values() if places), 'the rows are empty')}: "
            "say what the words mean, --words WORD=yes,WORD=no, or name another column, --columns "
            "label=COLUMN"
        )
    return labels, counts


def _report(
    columns: _Columns, join: _Join, counts: Mapping[str, list[str]], labels: Sequence[Label]
) -> str:
    """Describe how rows and trajectories were joined, with examples."""
    table = columns.table
    lines = [f"labels: {table.source} ({columns.text()})"]
    if "label" not in columns.named and not choose_column(table, ROLES["label"], taken=()):
        lines.append(
            f"warning: no column is named as labels are, {columns.labels[0]!r} alone says yes or "
            "no in words: name another with --columns label=COLUMN"
        )
    matched = [(row, key) for row, key in enumerate(join.rows) if isinstance(key, TrajectoryKey)]
    lost = [(row, one) for row, one in enumerate(join.rows) if isinstance(one, _Unmatched)]
    row, key = matched[0]
    lines.append(
        f"{len(matched):,} of {count_of(len(table), 'row')} joined by {join.by}: "
        f"{table.row_label(row)} is {key}"
    )
    lines += join.notes
    if of_none := [(row, one) for row, one in lost if not one.fits]:
        row, one = of_none[0]
        lines.append(
            f"{count_of(len(of_none), 'row')} of no trajectory, such as {table.row_label(row)}: "
            f"{one.cells}"
        )
    if of_several := [(row, one) for row, one in lost if one.fits]:
        row, one = of_several[0]
        lines.append(
            f"{count_of(len(of_several), 'row')} left out, which fit several trajectories, such as "
            f"{table.row_label(row)}: {one.cells} fits {listed([*map(str, one.fits)], 2)}"
        )
    labelled = {label.key for label in labels}
    if without := [key for key in join.keys if key not in labelled]:
        lines.append(
            f"{len(without):,} of {count_of(len(join.keys), 'trajectory')} without a label, such "
            f"as {without[0]}"
        )
    decided = Counter(label.success for label in labels)
    lines.append(
        f"{count_of(decided[True] + decided[False], 'label')} ({decided[True]:,} successful)"
    )
    for reason, words in _REASONS.items():
        if places := counts[reason]:
            lines.append(f"{count_of(len(places), 'cell')} {words}, such as {places[0]}")
    return "\n  ".join(lines) + "\n"


_REASONS = {
    "unreadable": "neither yes nor no, left out (--words WORD=yes,WORD=no)",
    "unsure": "undecided",
    "empty": "without a verdict",
}
