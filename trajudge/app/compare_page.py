"""The comparison of judges: fifty trajectories at a time, a cell for what each judge said.

What a judge was shown follows from the data that its run read, from what the judge declares that it
needs to see, and from how far its prompts were cut: judges with one hash over these three saw the
same of the trajectory, in whatever words it was put.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from string import ascii_uppercase
from typing import Any, NamedTuple

import numpy as np
import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trajudge.app.judgment_page import TextPart, with_steps
from trajudge.app.recorded_judge import Manifest, NotRebuilt, remake
from trajudge.app.web import (
    PageError,
    address,
    asked_filter,
    in_thread,
    json_page,
    last_page_link,
    page,
    trajectory_link,
    wants_json,
)
from trajudge.app.workspace import MOMENT, CombinedRuns, Workspace, workspace_of
from trajudge.eval.reporting.sentences import FAILED
from trajudge.eval.rungs import RUNGS
from trajudge.eval.runs.outputs import missing_policy
from trajudge.eval.scoring.comparison import PairedCounts, paired_counts
from trajudge.eval.scoring.observations import (
    Observations,
    Predictions,
    ReferenceLabels,
    compared_observations,
    on_the_same,
)
from trajudge.eval.scoring.records import Missing
from trajudge.eval.store.filters import FIELDS, MISTAKES, UNSURE, Filter, JudgmentView, truth
from trajudge.eval.store.labels import LabelColumns
from trajudge.eval.store.table import (
    STATUS_CODE,
    STATUSES,
    UNKNOWN,
    VERDICTS,
    JudgmentTable,
    KeyColumns,
    last_of_each,
    marked,
    places_among,
)
from trajudge.judges.model import Judgment, Status
from trajudge.judges.training import key_hash
from trajudge.stats.intervals import Bools, Ints, defined
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.terminal import count_of

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


def shown_to(manifest: Manifest) -> str | None:
    """Name what the judge of a run is shown of any trajectory; None where that is not known."""
    try:
        needs = remake(manifest).needs
    except NotRebuilt:
        return None
    data = [manifest.get(name) for name in ("data", "revision", "goals", "loader_digest")]
    return orjson.dumps([data, needs.model_dump(mode="json", exclude={"requires"})]).decode()


def evidence_hash(shown: str | None, table: JudgmentTable, row: int) -> str | None:
    """Hash what was shown for a judgment; None where it is not known, or nothing was judged."""
    status, rung = STATUSES[table.status[row]], RUNGS[table.rung[row]]
    if shown is None or status is Status.SKIPPED or rung == RUNGS[-1]:
        return None
    return sha256(orjson.dumps([shown, rung])).hexdigest()


def letters(hashes: Iterable[str | None]) -> list[str]:
    """Put a letter in place of every hash, equal for equal ones; "?" for an unknown one."""
    known: dict[str, str] = {}
    shown = []
    for each in hashes:
        if each is not None and each not in known:
            known[each] = ascii_uppercase[len(known) % 26]
        shown.append("?" if each is None else known[each])
    return shown


_KEPT = 16  # tables: each names up to all trajectories


class PairedJudges(NamedTuple):
    """The counts, what a failed judgment was ``missing`` as, and the places of the trajectories on
    which only the first judge was right; ``weighted``: the labels were drawn with unequal
    probabilities, so that no test applies."""

    counts: PairedCounts
    missing: Missing
    only_first: Ints
    weighted: bool

    @property
    def counting(self) -> str:
        """Say how many trajectories there are, and what judgments without an answer count as."""
        counts = self.counts
        sizes = ((counts.failed_first, "A"), (counts.failed_second, "B"))
        failed = " and ".join(f"{size:,} of {name}" for size, name in sizes if size)
        said = f"; judgments without an answer ({failed}) {FAILED[self.missing]}" if failed else ""
        return f"{count_of(counts.n, 'trajectory')}{said}, as in trajudge score."


class PairedTables:
    """Counts pairs of judges, and keeps what was counted as long as the runs stay. To be used from
    any thread."""

    def __init__(self) -> None:
        self._kept: dict[object, tuple[JudgmentView, PairedJudges]] = {}

    def of(
        self,
        view: JudgmentView,
        query: CompareQuery,
        manifests: Sequence[Mapping[str, Any]],
    ) -> PairedJudges:
        """Compare on the trajectories that the expert labelled and both judged, whatever the
        preset; ``manifests`` are those of the runs that the view combines."""
        trained = tuple(frozenset(manifest.get("training_keys") or ()) for manifest in manifests)
        missing = _missing({str(manifest.get("protocol", "default")) for manifest in manifests})
        place = query.chosen, query.first, query.second, trained, missing
        kept = self._kept.get(place)
        if kept is None or kept[0] is not view:
            kept = view, _paired(view, query, trained, missing)
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[place] = kept
        return kept[1]


def _paired(
    view: JudgmentView,
    query: CompareQuery,
    trained: Sequence[frozenset[str]],
    missing: Missing,
) -> PairedJudges:
    first, second = on_the_same(*_observed(view, query, trained, missing))
    right = first.reference.keys.at(first.index[first.right & ~second.right])
    counts, weighted = paired_counts(first, second), first.reference.is_weighted
    return PairedJudges(counts, missing, places_among(right, view.keys), weighted)


def _observed(
    view: JudgmentView,
    query: CompareQuery,
    trained: Sequence[frozenset[str]],
    missing: Missing,
) -> list[Observations]:
    """Observe the two judges of a query. A verdict on what its judge was trained on counts in no
    score."""
    labelled = query.chosen.trajectories(view) & (view.expert >= 0)
    table = view.judgments
    kept = labelled[view.trajectory] & (table.of_judge(query.first) | table.of_judge(query.second))
    if any(trained):
        for row in np.flatnonzero(kept).tolist():
            key = view.keys.key(int(view.trajectory[row]))
            kept[row] = key_hash(key) not in trained[table.source[row]]
    columns = table.at(kept)
    columns = columns.at(last_of_each(columns))
    places = np.flatnonzero(labelled)
    verdicts = np.full((len(VERDICTS), len(places)), UNKNOWN, dtype=np.int8)
    verdicts[VERDICTS.index("success")] = view.expert[places]
    known = view.inclusion[places], view.split[places]
    labels = LabelColumns(view.keys.at(places), verdicts, *known)
    reference = ReferenceLabels.of(columns.keys, labels, {})
    return [
        compared_observations(Predictions.of(judge, columns, reference), "success", missing)
        for judge in (query.first, query.second)
    ]


def _missing(protocols: set[str]) -> Missing:
    """Count failed judgments as the runs' one protocol does, which ``trajudge score`` goes by."""
    return missing_policy(next(iter(protocols)) if len(protocols) == 1 else "default")


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
    goal: str
    expert: bool | str | None
    rule: bool | None
    cells: tuple[ComparedCell | None, ...]
    same: bool | None

    @property
    def link(self) -> str:
        """The address of the trajectory."""
        return trajectory_link(self.key)

    @property
    def last_page(self) -> str:
        """The address of the picture of its last page."""
        return last_page_link(self.key)


class SidePanel(NamedTuple):
    """The judgment whose reasoning is shown beside the table."""

    id: int
    judgment: Judgment
    reasoning: tuple[TextPart, ...]
    link: str

    def step_link(self, step: int) -> str:
        """Return the address of a step of the trajectory."""
        return trajectory_link(self.judgment.key, step=step)


class ComparePage(NamedTuple):
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
    failed: tuple[str, ...]
    panel: SidePanel | None

    @property
    def left_out(self) -> int:
        """How many judges have no column."""
        return len(self.every_judge) - len(self.judges)


def compare(workspace: Workspace, query: CompareQuery, tables: PairedTables) -> ComparePage:
    """Read a page of the comparison, its table of two among ``tables``. Raises PageError 404 for a
    run that is not there, UserError for one that cannot be read."""
    opened = query.runs or tuple(workspace.runs)
    for name in opened:
        workspace.run(name).notes(MOMENT / len(opened))  # which has the goals read
    combined = workspace.combined(query.runs)
    view = combined.view
    names = sorted(view.judgments.judges)
    answered = view.judgments.ok() & (view.success != UNKNOWN)
    failed = [name for name in names if not answered[view.judgments.of_judge(name)].any()]
    query = _with_two(query, [*(n for n in names if n not in failed), *failed])
    manifests = [workspace.run(name).manifest for name in combined.runs]
    dead = tuple(name for name in (query.first, query.second) if name in failed)
    comparable = query.second and not query.problem
    paired = tables.of(view, query, manifests) if comparable else None
    kept = _trajectories(view, query, paired)
    behind = kept[kept > query.after]
    shown, judges = behind[:PAGE].tolist(), names[:MOST_JUDGES]
    return ComparePage(
        query=query,
        runs=combined.runs,
        judges=tuple(judges),
        every_judge=tuple(names),
        total=len(kept),
        rows=tuple(_rows(workspace, combined, shown, judges)),
        after=shown[-1] if len(behind) > PAGE else None,
        paired=paired,
        failed=dead,
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
    view, table = combined.view, combined.view.judgments
    shown = {name: shown_to(workspace.run(name).manifest) for name in combined.runs if places}
    rows = np.flatnonzero(marked(len(view.keys), np.array(places, dtype=np.int64))[view.trajectory])
    samples: dict[tuple[int, str], list[int]] = {}
    for row in rows[np.argsort(table.sample[rows], kind="stable")].tolist():
        cell = int(view.trajectory[row]), table.judges[table.judge[row]]
        samples.setdefault(cell, []).append(row)
    for place in places:
        said = [samples.get((place, name), []) for name in judges]
        hashes = [
            evidence_hash(shown[combined.place(each[0])[0]], table, each[0]) if each else None
            for each in said
        ]
        there = [one for one, each in zip(hashes, said, strict=True) if each]
        expert = int(view.expert[place])
        yield ComparedRow(
            id=place,
            key=view.keys.key(place),
            goal=workspace.goal(view.keys.key(place)),
            expert="unsure" if expert == UNSURE else truth(expert),
            rule=truth(view.rule[place]),
            cells=tuple(
                _cell(view, each, mark, truth(expert)) if each else None
                for each, mark in zip(said, letters(hashes), strict=True)
            ),
            same=None if None in there or len(there) < 2 else len(set(there)) == 1,
        )


def _cell(
    view: JudgmentView, samples: Sequence[int], evidence: str, expert: bool | None
) -> ComparedCell:
    said = [truth(code) for code in view.success[samples].tolist()]
    codes = view.judgments.status[samples]
    ended_well = (codes == STATUS_CODE[Status.OK]).tolist()
    votes = [each for each, ok in zip(said, ended_well, strict=True) if ok and each is not None]
    success = 2 * sum(votes) > len(votes) if votes else None
    wrong = ""
    if success is not None and expert is not None and success != expert:
        wrong = MISTAKES[1 if success else 2]
    row = samples[said.index(success) if success in said else 0]
    return ComparedCell(
        id=row,
        success=success,
        status="" if success is not None else str(STATUSES[view.judgments.status[row]]),
        score=defined(view.judgments.score[row]),
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


def routes() -> list[Route]:
    """Route the table of trajectories by judges."""
    return [Route("/compare", _Comparison().show)]


class _Comparison:
    def __init__(self) -> None:
        self._tables = PairedTables()

    async def show(self, request: Request) -> Response:
        workspace = workspace_of(request)
        if not workspace.runs:
            raise PageError(404, "No run is open here: start again with the folders of runs.")
        query = read_compare(dict(request.query_params), request.query_params.getlist("runs"))
        view = await in_thread(compare, workspace, query, self._tables)
        if wants_json(request):
            if view.query.problem:
                raise PageError(422, view.query.problem)
            return json_page(_as_json(view))
        status = 422 if view.query.problem else 200
        shown = {"view": view, "presets": PRESETS, "fields": FIELDS}
        return page(request, "compare/table.html", status, **shown)


def _as_json(view: ComparePage) -> dict[str, object]:
    return {
        "judges": view.judges,
        "total": view.total,
        "rows": [
            {
                "key": vars(row.key),
                "expert": row.expert,
                "rule": row.rule,
                "same_evidence": row.same,
                "cells": [cell and cell._asdict() for cell in row.cells],
            }
            for row in view.rows
        ],
        "pair": view.paired
        and {
            **view.paired.counts._asdict(),
            "n": view.paired.counts.n,
            "missing": view.paired.missing,
            "a": view.query.first,
            "b": view.query.second,
        },
        "next": view.query.link(after=view.after) if view.after is not None else None,
    }
