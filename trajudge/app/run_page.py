"""The overview of a run: every figure with the address of the rows behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trajudge.app.figures import JudgeRow, judge_rows, run_card
from trajudge.app.scoring import PATIENCE, KeptState, ScoredRun, run_scores
from trajudge.app.web import (
    address,
    in_thread,
    page,
    wants_json,
)
from trajudge.app.workspace import OpenedRun, workspace_of
from trajudge.eval.reporting.results import results_json
from trajudge.eval.reporting.sentences import (
    benchmark_name,
    cost_sentence,
    finding,
    notes,
    precision_cell,
    warnings_of,
)
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    LABEL_TITLES,
    OVERALL,
    Coverage,
    Score,
    ScoreReport,
)
from trajudge.eval.store.filters import (
    Filter,
    FilterTerm,
    JudgmentView,
)
from trajudge.eval.store.table import UNKNOWN
from trajudge.judges.model import Status
from trajudge.stats.intervals import Bools, Floats

_SHADES = 5


class CountLink(NamedTuple):
    """A number and the address of the judgments that it counts."""

    number: int
    link: str


class GroupCell(NamedTuple):
    """A judge's precision on one benchmark and agent; ``shade`` from 0 (low) to 4, "" for none."""

    precision: str
    n: int
    shade: str
    link: str


class GroupRow(NamedTuple):
    """A row of the heat table."""

    judge: str
    agent: str
    cells: tuple[GroupCell | None, ...]


class EndingRow(NamedTuple):
    """How a judge's judgments ended."""

    judge: str
    judged: CountLink
    endings: tuple[tuple[str, CountLink], ...]
    shortened: CountLink
    unjudged: int
    unlabelled: int


def table_link(
    run: str, *terms: tuple[str, str, str] | tuple[str, str, str, bool], sort: str = ""
) -> str:
    """Return the address of the table of judgments under a filter of these terms."""
    chosen = Filter(tuple(FilterTerm(*term) for term in terms))
    return address("run", run, "judgments", f=str(chosen), sort=sort)


def headline(run: str, scored: ScoredRun) -> list[tuple[JudgeRow, list[CountLink]]]:
    """List the judges, best first, and the rule-based baseline; each of their counts with its
    rows."""
    # A failed judgment counts as not accepted, unless the protocol leaves it out.
    fails = scored.scores.missing == "negative"
    rows = []
    for row in judge_rows(scored.scores, scored.question):
        field = "success" if row.kind == "judge" else "rule"
        yes = (field, ":", "yes")
        no = (*yes, True) if fails and row.kind == "judge" else (field, ":", "no")
        links = []
        for place, count in enumerate(row.counts):
            truth = ("expert", ":", "no" if place in (1, 3) else "yes")
            terms = ("judge", ":", row.judge), yes if place < 2 else no, truth
            shown = scored.question == "success"
            links.append(CountLink(count, table_link(run, *terms) if shown else ""))
        rows.append((row, links))
    return rows


def group_table(run: str, scored: ScoredRun) -> tuple[list[str], list[GroupRow]]:
    """Set judge and agent against benchmark; the names of the benchmarks, and a row an agent."""
    rows = [
        s
        for s in scored.scores.scores
        if s.label == scored.question and not s.baseline and s.n and s.benchmark != OVERALL
    ]
    benchmarks = sorted({s.benchmark for s in rows})
    places = {(s.judge, s.agent, s.benchmark): s for s in rows if s.agent != ALL_AGENTS}
    found = [
        GroupRow(
            judge,
            agent,
            tuple(_group_cell(run, places.get((judge, agent, each))) for each in benchmarks),
        )
        for judge, agent in sorted({(judge, agent) for judge, agent, _ in places})
    ]
    return [benchmark_name(each) for each in benchmarks], found


def _group_cell(run: str, score: Score | None) -> GroupCell | None:
    if score is None:
        return None
    shade = ""
    if score.precision is not None and score.counts.accepted:
        shade = str(min(int(score.precision * _SHADES), _SHADES - 1))
    link = table_link(
        run,
        ("judge", ":", score.judge),
        ("benchmark", ":", score.benchmark),
        ("agent", ":", score.agent),
    )
    return GroupCell(precision_cell(score), score.n, shade, link)


def ending_table(run: str, scores: ScoreReport) -> list[EndingRow]:
    """Count how each judge's judgments ended."""
    whole = [c for c in scores.coverage if (c.benchmark, c.agent) == (OVERALL, ALL_AGENTS)]
    return [_ending_row(run, coverage) for coverage in whole]


def _ending_row(run: str, coverage: Coverage) -> EndingRow:
    judge = ("judge", ":", coverage.judge)
    return EndingRow(
        coverage.judge,
        CountLink(coverage.judged, table_link(run, judge)),
        tuple(
            (str(status), CountLink(count, table_link(run, judge, ("status", ":", str(status)))))
            for status in Status
            if (count := coverage.statuses.get(status))
        ),
        CountLink(
            sum(coverage.shortened.values()), table_link(run, judge, ("flag", ":", "elided"))
        ),
        coverage.unjudged,
        coverage.unlabelled,
    )


_SHOWN = 5


class Distribution(NamedTuple):
    """Costs in dollars or seconds of a judge's judgments; ``unknown`` have no figure."""

    judge: str
    known: int
    unknown: int
    total: float
    median: float
    p95: float
    most: float


class Group(NamedTuple):
    """A benchmark and agent, its number of judgments and what they sum up to."""

    benchmark: str
    agent: str
    judgments: int
    value: float
    link: str


class Spending(NamedTuple):
    """What was spent, by judge, and the groups at the top."""

    cost: list[Distribution]
    seconds: list[Distribution]
    dearest: list[Group]
    worst: list[Group]

    @property
    def has_cost(self) -> bool:
        """Whether the cost of any judgment is known to be more than nothing."""
        return any(each.most > 0 for each in self.cost)

    @property
    def has_seconds(self) -> bool:
        """Whether it is known how long any judgment took."""
        return any(each.known for each in self.seconds)


_NOTHING = Spending([], [], [], [])


def spending_of(run: OpenedRun) -> Spending:
    """Read what a run spent. Raises UserError as its view."""
    view = run.view()
    answered = (view.success != UNKNOWN) & (view.expert[view.trajectory] >= 0)
    every, wrong = np.ones(len(view.judgments), dtype=bool), (view.wrong > 0).astype(float)
    return Spending(
        _distributions(view, view.cost),
        _distributions(view, view.seconds),
        _groups(view, every, np.nan_to_num(view.cost), run.name, ()),
        _groups(view, answered, wrong, run.name, (("wrong", ":", "any"),)),
    )


def _distributions(view: JudgmentView, values: Floats) -> list[Distribution]:
    judges = sorted(view.judgments.judges)
    return [_distribution(name, values[view.judgments.of_judge(name)]) for name in judges]


def _distribution(judge: str, values: Floats) -> Distribution:
    known = values[~np.isnan(values)]
    if not len(known):
        return Distribution(judge, 0, len(values), 0.0, 0.0, 0.0, 0.0)
    median, p95 = np.quantile(known, [0.5, 0.95]).tolist()
    unknown = len(values) - len(known)
    return Distribution(
        judge, len(known), unknown, float(known.sum()), median, p95, float(known.max())
    )


def _groups(
    view: JudgmentView,
    counted: Bools,
    values: Floats,
    run: str,
    terms: Sequence[tuple[str, str, str]],
) -> list[Group]:
    """List the benchmarks and agents with the largest sums of values, (N,)."""
    keys = view.keys
    pair = (keys.benchmark.astype(np.int64) * len(keys.agents) + keys.agent)[view.trajectory]
    known, which = np.unique(pair[counted], return_inverse=True)
    sizes, sums = np.bincount(which), np.bincount(which, weights=values[counted])
    groups = []
    for place in np.argsort(-sums, kind="stable")[:_SHOWN].tolist():
        benchmark, agent = divmod(int(known[place]), len(keys.agents))
        names = keys.benchmarks[benchmark], keys.agents[agent]
        link = table_link(run, ("benchmark", ":", names[0]), ("agent", ":", names[1]), *terms)
        if sums[place] > 0:
            groups.append(Group(*names, int(sizes[place]), float(sums[place]), link))
    return groups


def overview_route() -> Route:
    """Route the overview of a run."""
    scores = run_scores()

    async def show(request: Request) -> Response:
        workspace = workspace_of(request)
        run = workspace.run(request.path_params["run"])
        wait = None if wants_json(request) else PATIENCE
        state = await in_thread(scores.of, run, workspace.annotations, wait=wait)
        if wants_json(request) and state.value:
            return Response(results_json(state.value.scores), media_type="application/json")
        # Until there are figures nothing waits for the judgments, which take as long to read.
        spending = await in_thread(spending_of, run) if state.value else _NOTHING
        shown = await in_thread(_overview, run, state, spending)
        return page(request, "runs/overview.html", **shown)

    return Route("/run/{run}", show)


def _overview(run: OpenedRun, state: KeptState[ScoredRun], spending: Spending) -> dict[str, Any]:
    shown = {
        "run": run,
        "is_current": state.is_current,
        "spending": spending,
        "facts": run_card(run.folder).facts,
        "scored": None,
    }
    return shown | (_figures(run.name, state.value) if state.value else {})


def _figures(run: str, scored: ScoredRun) -> dict[str, Any]:
    scores, question, labelled, _ = scored
    benchmarks, group_rows = group_table(run, scored)
    return {
        "scored": scored,
        "finding": finding(scores, question if labelled else None),
        "warnings": [line.removeprefix("warning: ") for line in warnings_of(scores)],
        "notes": notes(scores),
        "cost": cost_sentence(scores),
        "title": scores.titled(LABEL_TITLES[question]),
        "headline": headline(run, scored) if labelled else [],
        "linked": question == "success" and labelled,
        "false_positives": table_link(run, ("wrong", ":", "fp"), sort="-agree"),
        "false_negatives": table_link(run, ("wrong", ":", "fn"), sort="-agree"),
        "coverage": ending_table(run, scores),
        "benchmarks": benchmarks,
        "group_rows": group_rows if labelled else [],
    }
