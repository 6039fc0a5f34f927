"""The table of the comparison: fifty trajectories at a time, a cell for what each judge said."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trajudge.app.compare.evidence import evidence_hash, letters, shown_to
from trajudge.app.compare.paired_judges import PairedJudges, PairedTables
from trajudge.app.compare.query import CompareQuery
from trajudge.app.judgments.replies import TextPart, with_steps
from trajudge.app.server.links import address, trajectory_link
from trajudge.app.server.problems import PageError
from trajudge.app.server.workspace import Workspace
from trajudge.judges.model import Judgment
from trajudge.trajectories.model import TrajectoryKey

PAGE = 50
MOST_JUDGES = 12


class ComparedCell(NamedTuple):
    """What a judge said: ``success`` 1, 0 or None, of ``samples`` the strict majority; ``wrong``
    names the mistake, "" for none; ``evidence`` is a letter, the same for what was shown alike."""

    id: int
    success: int | None
    status: str
    score: float | None
    samples: int
    wrong: str
    evidence: str


class ComparedRow(NamedTuple):
    """A trajectory and its cells, one a judge, None where the judge has no judgment of it.
    ``same`` tells whether all were shown the same, None where that is not known."""

    id: int
    key: TrajectoryKey
    goal: str
    expert: int | None
    rule: int | None
    cells: tuple[ComparedCell | None, ...]
    same: bool | None

    @property
    def link(self) -> str:
        """The address of the trajectory."""
        return trajectory_link(self.key)


class SidePanel(NamedTuple):
    """The judgment whose reasoning is shown beside the table."""

    id: int
    judgment: Judgment
    reasoning: tuple[TextPart, ...]
    link: str

    def step_link(self, step: int) -> str:
        """Return the address of a step of the trajectory."""
        return trajectory_link(self.judgment.key, step=step)


class ComparedJudges(NamedTuple):
    """A page of the table; ``left_out`` judges behind the first ``MOST_JUDGES`` have no column.
    ``after`` begins the next page, None if this is the last."""

    query: CompareQuery
    runs: tuple[str, ...]
    judges: tuple[str, ...]
    every_judge: tuple[str, ...]
    total: int
    rows: tuple[ComparedRow, ...]
    after: int | None
    paired: PairedJudges | None
    panel: SidePanel | None

    @property
    def left_out(self) -> int:
        """How many judges have no column."""
        return len(self.every_judge) - len(self.judges)


def compare(workspace: Workspace, query: CompareQuery, tables: PairedTables) -> ComparedJudges:
    """Read a page of the comparison, its table of two among ``tables``. Raises PageError 404 for a
    run that is not there, UserError for one that cannot be read."""
    combined = workspace.combined(query.runs)
    with combined.reading() as connection:
        names = [
            row[0] for row in connection.execute("select distinct judge from judgment order by 1")
        ]
        query = _with_two(query, names)
        manifests = [workspace.run(name).manifest for name in combined.runs]
        comparable = query.second and not query.problem
        paired = tables.of(connection, query, manifests) if comparable else None
        shown, total, after = _trajectories(connection, query, paired)
        judges = names[:MOST_JUDGES]
        rows = tuple(_rows(connection, workspace, combined.runs, shown, judges))
        panel = _panel(connection, workspace, combined.runs, query.show)
    return ComparedJudges(
        query, combined.runs, tuple(judges), tuple(names), total, rows, after, paired, panel
    )


def _with_two(query: CompareQuery, names: Sequence[str]) -> CompareQuery:
    """Choose the two judges of the small table: those named, else the first two."""
    first = query.first if query.first in names else next(iter(names), "")
    others = [name for name in names if name != first]
    second = query.second if query.second in others else next(iter(others), "")
    return query._replace(first=first, second=second)


def _trajectories(
    connection: sqlite3.Connection, query: CompareQuery, paired: PairedJudges | None
) -> tuple[list[sqlite3.Row], int, int | None]:
    if query.problem:
        return [], 0, None
    clause = query.clause(paired.only_first if paired else ())
    count = f"select count(*) from trajectory t where {clause.sql}"  # noqa: S608 - values are bound
    (total,) = connection.execute(count, clause.parameters).fetchone()
    chosen = f"select t.* from trajectory t where ({clause.sql}) and t.id > ? order by t.id limit ?"  # noqa: S608
    rows = connection.execute(chosen, (*clause.parameters, query.after, PAGE + 1)).fetchall()
    return rows[:PAGE], int(total), int(rows[PAGE - 1]["id"]) if len(rows) > PAGE else None


def _rows(
    connection: sqlite3.Connection,
    workspace: Workspace,
    runs: Sequence[str],
    shown: Sequence[sqlite3.Row],
    judges: Sequence[str],
) -> Iterator[ComparedRow]:
    evidence = {name: shown_to(workspace.run(name).manifest) for name in runs} if shown else {}
    for row in shown:
        samples: dict[str, list[sqlite3.Row]] = {}
        for each in connection.execute(
            "select id, run, place, judge, status, success, score from judgment "
            "where trajectory = ? order by judge, sample",
            (row["id"],),
        ):
            samples.setdefault(each["judge"], []).append(each)
        hashes = [
            _hash(workspace, runs, evidence, samples[judge][0]) if judge in samples else None
            for judge in judges
        ]
        marks = letters(hashes)
        there = [each for each, judge in zip(hashes, judges, strict=True) if judge in samples]
        yield ComparedRow(
            id=row["id"],
            key=TrajectoryKey(**{name: row[name] for name in TrajectoryKey.model_fields}),
            goal=row["goal"] or "",
            expert=row["expert"],
            rule=row["rule"],
            cells=tuple(
                _cell(samples[judge], mark, row["expert"]) if judge in samples else None
                for judge, mark in zip(judges, marks, strict=True)
            ),
            same=None if None in there or len(there) < 2 else len(set(there)) == 1,
        )


def _hash(
    workspace: Workspace, runs: Sequence[str], evidence: dict[str, str | None], row: sqlite3.Row
) -> str | None:
    name = runs[row["run"]]
    if evidence[name] is None:
        return None
    return evidence_hash(evidence[name], workspace.run(name).judgment(row["place"]))


def _cell(samples: Sequence[sqlite3.Row], evidence: str, expert: int | None) -> ComparedCell:
    answers = [each["success"] for each in samples if each["status"] == "ok"]
    votes = [vote for vote in answers if vote is not None]
    success = int(2 * sum(votes) > len(votes)) if votes else None
    wrong = ""
    if success is not None and expert in (0, 1) and success != expert:
        wrong = "false positive" if success else "false negative"
    first = next((each for each in samples if each["success"] == success), samples[0])
    return ComparedCell(
        id=first["id"],
        success=success,
        status="" if success is not None else first["status"],
        score=first["score"],
        samples=len(samples),
        wrong=wrong,
        evidence=evidence,
    )


def _panel(
    connection: sqlite3.Connection, workspace: Workspace, runs: Sequence[str], number: int
) -> SidePanel | None:
    if number < 0:
        return None
    row = connection.execute(
        "select j.run, j.place, t.steps from judgment j join trajectory t on t.id = j.trajectory "
        "where j.id = ?",
        (number,),
    ).fetchone()
    if row is None:
        raise PageError(404, "There is no such judgment in these runs: open the comparison again.")
    name = runs[row["run"]]
    judgment = workspace.run(name).judgment(row["place"])
    # Where the number of steps is not known, all that can be one leads to the trajectory.
    parts = with_steps(judgment.reasoning or judgment.detail, row["steps"] or 9_999)
    return SidePanel(number, judgment, parts, address("run", name, "judgment", row["place"]))
