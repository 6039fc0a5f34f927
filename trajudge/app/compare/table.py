"""The table of the comparison: fifty trajectories at a time, a cell for what each judge said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from trajudge.app.compare.evidence import evidence_hash, letters, shown_to
from trajudge.app.compare.paired_judges import PairedJudges, PairedTables
from trajudge.app.compare.query import CompareQuery
from trajudge.app.judgments.replies import TextPart, with_steps
from trajudge.app.server.links import address, trajectory_link
from trajudge.app.server.problems import PageError
from trajudge.app.server.workspace import CombinedRuns, Workspace
from trajudge.eval.store.filters import MISTAKES, UNSURE, JudgmentView, truth
from trajudge.eval.store.table import KeyColumns, places_among
from trajudge.judges.model import Judgment, Status
from trajudge.stats.intervals import Ints
from trajudge.trajectories.model import TrajectoryKey

PAGE = 50
MOST_JUDGES = 12


class ComparedCell(NamedTuple):
    """What a judge said: ``success``, of ``samples`` the strict majority; ``wrong``
    names the mistake, "" for none; ``evidence`` is a letter, the same for what was shown alike."""

    id: int
    success: bool | None
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
    expert: bool | str | None
    rule: bool | None
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
    view = combined.view
    names = sorted(view.judgments.judges)
    query = _with_two(query, names)
    manifests = [workspace.run(name).manifest for name in combined.runs]
    comparable = query.second and not query.problem
    paired = tables.of(view, query, manifests) if comparable else None
    kept = _trajectories(view, query, paired)
    behind = kept[kept > query.after]
    shown, judges = behind[:PAGE].tolist(), names[:MOST_JUDGES]
    return ComparedJudges(
        query=query,
        runs=combined.runs,
        judges=tuple(judges),
        every_judge=tuple(names),
        total=len(kept),
        rows=tuple(_rows(workspace, combined, shown, judges)),
        after=shown[-1] if len(behind) > PAGE else None,
        paired=paired,
        panel=_panel(workspace, combined, query.show),
    )


def _with_two(query: CompareQuery, names: Sequence[str]) -> CompareQuery:
    """Choose the two judges of the small table: those named, else the first two."""
    first = query.first if query.first in names else next(iter(names), "")
    others = [name for name in names if name != first]
    second = query.second if query.second in others else next(iter(others), "")
    return query._replace(first=first, second=second)


def _trajectories(view: JudgmentView, query: CompareQuery, paired: PairedJudges | None) -> Ints:
    """Return the places of the trajectories that the query keeps."""
    if query.problem:
        return np.empty(0, dtype=np.int64)
    only_first = paired.only_first if paired else np.empty(0, dtype=np.int64)
    return np.flatnonzero(query.trajectories(view, only_first))


def _rows(
    workspace: Workspace, combined: CombinedRuns, places: Sequence[int], judges: Sequence[str]
) -> Iterator[ComparedRow]:
    view = combined.view
    shown = {name: shown_to(workspace.run(name).manifest) for name in combined.runs if places}
    # Of each trajectory the rows, by judge and sample.
    order = np.lexsort((view.judgments.sample, view.judgments.judge, view.trajectory))
    starts = np.searchsorted(view.trajectory[order], [*places, *(place + 1 for place in places)])
    for at, place in enumerate(places):
        rows = order[starts[at] : starts[at + len(places)]]
        samples = {name: rows[view.judgments.of_judge(name)[rows]].tolist() for name in judges}
        hashes = []
        for name in judges:
            run = combined.place(samples[name][0])[0] if samples[name] else ""
            hashes.append(
                evidence_hash(shown[run], view.judgments[samples[name][0]])
                if run and shown[run] is not None
                else None
            )
        marks = letters(hashes)
        there = [each for each, name in zip(hashes, judges, strict=True) if samples[name]]
        expert = int(view.expert[place])
        yield ComparedRow(
            id=place,
            key=view.keys.key(place),
            expert="unsure" if expert == UNSURE else truth(expert),
            rule=truth(view.rule[place]),
            cells=tuple(
                _cell(view, samples[name], mark, truth(expert)) if samples[name] else None
                for name, mark in zip(judges, marks, strict=True)
            ),
            same=None if None in there or len(there) < 2 else len(set(there)) == 1,
        )


def _cell(
    view: JudgmentView, samples: Sequence[int], evidence: str, expert: bool | None
) -> ComparedCell:
    judgments = [view.judgments[row] for row in samples]
    votes = [j.success for j in judgments if j.status is Status.OK and j.success is not None]
    success = 2 * sum(votes) > len(votes) if votes else None
    wrong = ""
    if success is not None and expert is not None and success != expert:
        wrong = MISTAKES[1 if success else 2]
    at = next((at for at, each in enumerate(judgments) if each.success == success), 0)
    return ComparedCell(
        id=samples[at],
        success=success,
        status="" if success is not None else str(judgments[at].status),
        score=judgments[at].score,
        samples=len(samples),
        wrong=wrong,
        evidence=evidence,
    )


def _panel(workspace: Workspace, combined: CombinedRuns, number: int) -> SidePanel | None:
    if number < 0:
        return None
    view = combined.view
    if number >= len(view.judgments):
        raise PageError(404, "There is no such judgment in these runs: open the comparison again.")
    judgment = view.judgments[number]
    run, place = combined.place(number)
    own = workspace.run(run).view()
    steps = own.steps[int(places_among(KeyColumns.of([judgment.key]), own.keys)[0])]
    # Where the number of steps is not known, all that can be one leads to the trajectory.
    known = 9_999 if np.isnan(steps) else int(steps)
    parts = with_steps(judgment.reasoning or judgment.detail, known)
    return SidePanel(number, judgment, parts, address("run", run, "judgment", place))
