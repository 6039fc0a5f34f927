"""What the overview of a run shows: every figure with the address of the rows behind it."""

from __future__ import annotations

from typing import NamedTuple

from trajudge.app.pages.figures import IntervalBar, interval_bar
from trajudge.app.runs.scoring import ScoredRun
from trajudge.app.server.links import address
from trajudge.eval.reporting.sentences import (
    benchmark_name,
    ordered_judges,
    percent,
    precision_cell,
    rate_cell,
)
from trajudge.eval.scoring.records import ALL_AGENTS, OVERALL, Coverage, Score, ScoreReport
from trajudge.eval.store.filters import Filter, FilterTerm
from trajudge.judges.model import Status

RULE = "rule-based"
_SHADES = 5


class CountLink(NamedTuple):
    """A number and the address of the judgments that it counts."""

    number: int
    link: str


class HeadlineRow(NamedTuple):
    """An evaluator's figures over all benchmarks; ``cells`` are true and false positives, false
    and true negatives, of a judge with their rows."""

    name: str
    kind: str
    bar: IntervalBar | None
    precision: str
    recall: str
    f1: str
    npv: str
    kappa: str
    n: int
    cells: tuple[CountLink, CountLink, CountLink, CountLink]


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


def headline(run: str, scored: ScoredRun) -> list[HeadlineRow]:
    """Make a row a judge, best first, each with the rule-based baseline behind it where they differ
    in what they were scored on."""
    rows = _overall(scored)
    judges = [s for s in rows if not s.baseline]
    order = {judge: place for place, judge in enumerate(ordered_judges(scored.scores))}
    judges.sort(key=lambda score: order.get(score.judge, 0))
    rules = [s for s in rows if s.baseline and s.n]
    same = len({(s.n, s.counts) for s in rules}) == 1
    shown = [_headline_row(run, score, scored, score.judge) for score in judges]
    for rule in rules[:1] if same else rules:
        name = RULE if same else f"{RULE} beside {rule.judge}"
        shown.append(_headline_row(run, rule, scored, name))
    return shown


def _headline_row(run: str, score: Score, scored: ScoredRun, name: str) -> HeadlineRow:
    counts = score.counts
    said = ("rule" if score.baseline else "success", ":", "yes")
    judge = ("judge", ":", score.judge)
    # A failed judgment counts as not accepted, unless the protocol leaves it out.
    counted = scored.scores.missing == "negative" and not score.baseline
    refused = (*said, True) if counted else (said[0], ":", "no")
    linked = scored.question == "success"

    def cell(count: int, *terms: tuple[str, str, str] | tuple[str, str, str, bool]) -> CountLink:
        return CountLink(count, table_link(run, judge, *terms) if linked else "")

    yes, no = ("expert", ":", "yes"), ("expert", ":", "no")
    return HeadlineRow(
        name=name,
        kind=RULE if score.baseline else "judge",
        bar=interval_bar(score),
        precision=precision_cell(score),
        recall=rate_cell(score, "recall"),
        f1=rate_cell(score, "f1"),
        npv=percent(score.npv),
        kappa=rate_cell(score, "kappa"),
        n=score.n,
        cells=(
            cell(counts.tp, said, yes),
            cell(counts.fp, said, no),
            cell(counts.fn, refused, yes),
            cell(counts.tn, refused, no),
        ),
    )


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


def _overall(scored: ScoredRun) -> list[Score]:
    place = (OVERALL, ALL_AGENTS, scored.question)
    return [s for s in scored.scores.scores if (s.benchmark, s.agent, s.label) == place]
