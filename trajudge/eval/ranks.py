"""Judges ranked with ties: ``trajudge score --ranks``, as a screen, CSV, JSON and one HTML page.

Ranks come from the paired differences of the score report: judges whose difference is not
significant share a rank.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import Field

from trajudge.annotations.agentrewardbench import benchmark_of
from trajudge.annotations.model import Labels
from trajudge.annotations.published import SUFFIX
from trajudge.eval.page import save_page
from trajudge.eval.reporting.sentences import (
    UNDEFINED,
    benchmark_name,
    percent,
    precision_cell,
    rate_cell,
    unit_of,
    warnings_of,
)
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    ALPHA,
    OVERALL,
    RULE_BASED,
    Comparison,
    LabelName,
    Score,
    ScoreReport,
)
from trajudge.eval.sources import Source
from trajudge.eval.store.manifest import RecordedPrompts
from trajudge.eval.store.table import JudgmentTable, concatenate
from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.model import Record
from trajudge.util.tables import Table, first_screen, fitted, screen_width
from trajudge.util.terminal import count_of, listed, one_line

RANKED: tuple[str, ...] = ("precision", "f1")
METHOD = (
    "Ranks: two judges are compared on the trajectories that both judged, by the difference of the "
    "metric with an interval over tasks; p-values are corrected by Holm over all pairs of a table "
    "(α = .05). The first number is 1 plus the judges that are significantly better, the second "
    "the number of judges less those that are significantly worse: judges whose difference is not "
    "significant share a rank."
)
COST_NOTE = "$/1k: US dollars per 1,000 judgments; ? where a price is not known"
_TIES = (
    "Ranks by precision (F1 rank: by F1) on the trajectories that two judges share, Holm over all "
    "pairs, α = .05; not significant: a shared rank"
)
_HEAD = (
    *("rank", "judge", "precision [95 %]", "recall", "F1", "F1 rank", "κ"),
    *("$/1k", "n", "covered"),
)
_WHOSE = {"": "not recorded", "own": "our own", "published": "the source's own"}
_MINOR, _WIDE = ("F1 rank", "κ"), 96
"""Columns that a screen below so many columns leaves out."""
_LIMITED: tuple[str, ...] = ("precision", "recall", "f1", "kappa")
_COLUMNS = (
    *("label", "benchmark", "judge", "rank", "rank_to", "f1_rank", "f1_rank_to"),
    *(f"{rate}{end}" for rate in _LIMITED for end in ("", "_low", "_high")),
    *("cost_per_1000", "n", "labelled", "coverage", "failed", "positives", "tasks", "common"),
    *("prompts", "published_prompts", "asks_with"),
)


class RankRange(Record):
    """Ranks that a judge may hold, 1 the best: ``best`` is 1 plus the judges that are significantly
    better, ``worst`` the number of ranked judges less those that are significantly worse."""

    best: int
    worst: int

    def __str__(self) -> str:
        return f"{self.best}" if self.best == self.worst else f"{self.best}–{self.worst}"


class RankedJudge(Record):
    """One judge on one benchmark.

    ``score`` counts failed judgments as the report does; ``labelled`` is the number of trajectories
    that any judge could have been scored on; ``cost`` in US dollars per 1,000 judgments of the
    whole run, None if a price is not known. ``ranks`` lacks a metric that is undefined; ``common``
    is the smallest number of trajectories that the judge shares with another one, None where it
    stands alone. ``prompts`` and ``published_prompts`` are hashes of what it asked with and of what
    its source published (``manifest.RecordedPrompts``), ``asks_with`` says which of the two it was,
    "" where that is not recorded; ``card`` is the judge's name on its card.
    """

    judge: str
    score: Score
    labelled: int
    cost: float | None
    ranks: dict[str, RankRange] = Field(default_factory=dict)
    common: int | None = None
    card: str = ""
    prompts: str = ""
    published_prompts: str = ""
    asks_with: Literal["", "own", "published"] = ""

    @property
    def coverage(self) -> float:
        """Share of the labelled trajectories that the judge gave a verdict on."""
        return (self.score.n - self.score.missing) / self.labelled if self.labelled else 0.0

    @property
    def order(self) -> tuple[float | str, ...]:
        """Sort key: rank and value of each metric in turn, precision first, then the name; judges
        without a rank are last."""
        last = RankRange(best=10**9, worst=10**9)
        ranks = [(self.ranks.get(metric, last), metric) for metric in RANKED]
        parts = [(r.best, r.worst, -(getattr(self.score, metric) or 0.0)) for r, metric in ranks]
        return (*(value for part in parts for value in part), self.judge)


class RankTable(Record):
    """The judges on one benchmark, or on all (``OVERALL``), the best first; ``label`` is what they
    were asked."""

    benchmark: str
    label: LabelName
    labelled: int
    rows: tuple[RankedJudge, ...]


def with_rule_based(source: Source) -> Source:
    """Add the official rewards as a judge, if any is known and no run holds that judge already."""
    known = {key: reward for key, reward in source.rewards.items() if reward is not None}
    if known and RULE_BASED not in source.judgments.judges:
        made = [
            Judgment(key=key, judge=RULE_BASED, status=Status.OK, success=reward > 0.5)
            for key, reward in sorted(known.items(), key=lambda each: each[0].order)
        ]
        source.judgments = concatenate([source.judgments, JudgmentTable.of(made)])
    return source


def rank_judges(
    report: ScoreReport, labels: Labels, prompts: Mapping[str, RecordedPrompts]
) -> list[RankTable]:
    """Rank the judges of a report that compares them on each benchmark: the table over all
    benchmarks, then one per benchmark; a single benchmark has one. Trivial baselines stand below
    the judges, without a rank. ``prompts`` are those that each judge asked with."""
    scores: dict[str, list[Score]] = {}
    for each in report.scores:
        if each.agent == ALL_AGENTS and not each.baseline and each.n:
            scores.setdefault(each.benchmark, []).append(each)
    if not scores:
        return []
    asked = {each.label for of_one in scores.values() for each in of_one}
    label: LabelName = "success" if "success" in asked else "process"
    benchmarks = sorted(scores.keys() - {OVERALL})
    costs = _costs(report)
    tables = []
    for name in [OVERALL, *(benchmarks if len(benchmarks) > 1 else ())]:
        rows = [each for each in scores[name] if each.label == label]
        trivial = [
            each
            for each in report.baselines
            if (each.benchmark, each.label, each.agent) == (name, label, ALL_AGENTS) and each.n
        ]
        ranks = {
            metric: rank_ranges(report.comparison, name, label, metric, _defined(rows, metric))
            for metric in RANKED
        }
        overlaps = smallest_overlap(report.comparison, name, label)
        judged = benchmarks if name == OVERALL else [name]
        due = sum(
            benchmark_of(key) in judged and getattr(expert, label) is not None
            for key, expert in labels.items()
        )
        table = [
            RankedJudge(
                judge=each.judge,
                score=each,
                labelled=due,
                cost=0.0 if each in trivial else costs.get(each.judge),
                ranks={metric: r[each.judge] for metric, r in ranks.items() if each.judge in r},
                common=overlaps.get(each.judge),
                **_prompts(prompts.get(each.judge)),
            )
            for each in (*rows, *trivial)
        ]
        table.sort(key=lambda row: row.order)
        shown = benchmarks[0] if len(benchmarks) == 1 else name
        tables.append(RankTable(benchmark=shown, label=label, labelled=due, rows=tuple(table)))
    return tables


def _prompts(recorded: RecordedPrompts | None) -> dict[str, Any]:
    """Return the fields of a row that say what its judge asked with."""
    if recorded is None or not recorded.prompts:
        return {}
    return {
        "card": recorded.judge,
        "prompts": recorded.prompts,
        "published_prompts": recorded.published,
        "asks_with": "published" if recorded.is_published else "own",
    }


def different_prompts(rows: Sequence[RankedJudge]) -> list[str]:
    """Say of which judges the rows asked with different prompts, which makes them different
    judges."""
    by_card: dict[str, list[RankedJudge]] = {}
    for row in rows:
        if row.prompts and row.card:
            by_card.setdefault(row.card, []).append(row)
    return [
        f"the rows of {card} asked with different prompts, which makes them different judges: "
        + ", ".join(f"{row.judge} {row.prompts} ({_WHOSE[row.asks_with]})" for row in several)
        for card, several in sorted(by_card.items())
        if len({row.prompts for row in several}) > 1
    ]


def _defined(scores: Iterable[Score], metric: str) -> list[str]:
    """List the judges whose metric is defined: without an accepted trajectory precision is not."""
    return [
        each.judge
        for each in scores
        if getattr(each, metric) is not None and (metric != "precision" or each.counts.accepted)
    ]


def _costs(report: ScoreReport) -> dict[str, float | None]:
    """Compute US dollars per 1,000 judgments; None where a call's price, or whether there were
    calls, is not known."""
    judged = {each.judge: each.judged for each in report.coverage if each.benchmark == OVERALL}
    costs: dict[str, float | None] = {}
    for spent in report.spending:
        if not spent.calls:
            costs[spent.judge] = None if SUFFIX in spent.judge else 0.0
        elif spent.cost is not None and not spent.unpriced and judged.get(spent.judge):
            costs[spent.judge] = 1000 * spent.cost / judged[spent.judge]
    return costs


def rank_ranges(
    comparison: Comparison, benchmark: str, label: LabelName, metric: str, judges: Collection[str]
) -> dict[str, RankRange]:
    """Rank ``judges``, those whose metric is defined, by their differences."""
    better, worse = dict.fromkeys(judges, 0), dict.fromkeys(judges, 0)
    for each in comparison.differences:
        if (each.benchmark, each.label, each.metric) != (benchmark, label, metric):
            continue
        if not {each.first, each.second} <= better.keys() or not each.difference:
            continue
        if each.p_holm is not None and each.p_holm <= ALPHA:
            pair = (each.first, each.second)
            winner, loser = pair if each.difference > 0 else pair[::-1]
            better[loser] += 1
            worse[winner] += 1
    return {
        judge: RankRange(best=1 + better[judge], worst=len(better) - worse[judge])
        for judge in better
    }


def smallest_overlap(comparison: Comparison, benchmark: str, label: LabelName) -> dict[str, int]:
    """Return, per judge, the smallest number of trajectories that it shares with another one."""
    overlaps: dict[str, int] = {}
    for each in comparison.differences:
        if (each.benchmark, each.label) == (benchmark, label):
            for judge in (each.first, each.second):
                overlaps[judge] = min(each.n, overlaps.get(judge, each.n))
    return overlaps


def cost_text(cost: float | None) -> str:
    """Format US dollars per 1,000 judgments with three significant digits at least."""
    if cost is None:
        return "?"
    return "0" if not cost else f"{cost:.2f}" if cost >= 0.1 else f"{cost:.2g}"


def coverage_text(row: RankedJudge) -> str:
    """Format the share in percent, rounded down: 100 % is everything."""
    return f"{int(100 * row.coverage)} %"


def _kappa(row: RankedJudge) -> str:
    return UNDEFINED if row.score.kappa is None else f"{row.score.kappa:z.2f}"


def _rank(row: RankedJudge, metric: str) -> str:
    return str(row.ranks[metric]) if metric in row.ranks else UNDEFINED


def ranks_screen(
    tables: Sequence[RankTable], report: ScoreReport, left_out: Sequence[str], page: Path | None
) -> str:
    """Lay out the first screen: the best judges, the table over all benchmarks, warnings.

    ``left_out`` are runs that may not be compared, with the reason; ``page`` has the other tables.
    """
    width = screen_width()
    first = tables[0]
    kept = [place for place, name in enumerate(_HEAD) if width >= _WIDE or name not in _MINOR]
    rows = [
        (
            _rank(row, "precision"),
            row.judge,
            precision_cell(row.score),
            percent(row.score.recall),
            percent(row.score.f1),
            _rank(row, "f1"),
            _kappa(row),
            cost_text(row.cost),
            str(row.score.n),
            coverage_text(row),
        )
        for row in first.rows
    ]
    table = Table(
        f"{_where(first)}: {first.labelled:,} labelled trajectories"
        + (f" of {len(tables) - 1} benchmarks" if len(tables) > 1 else ""),
        tuple(_HEAD[place] for place in kept),
        [tuple(row[place] for place in kept) for row in rows],
        names=2,
    )
    warnings = [f"warning: left out: {reason}" for reason in left_out]
    warnings += [f"warning: {line}" for line in different_prompts(first.rows)]
    warnings += warnings_of(report)
    above = fitted(lambda most: [_finding(first, most)], width)
    more = str(page) if page else "--csv, --html FILE"
    every = "every benchmark, " if len(tables) > 1 else ""
    rest = f"All columns, {every}{count_of(len(warnings), 'warning')}: {more}"
    return first_screen(above, [table], [_TIES, COST_NOTE], warnings, rest=rest, more=more)


def _where(table: RankTable) -> str:
    question = "" if table.label == "success" else ", soundness of the process"
    return f"{benchmark_name(table.benchmark)}{question}"


def _finding(table: RankTable, most: int | None) -> str:
    """Name the judges of rank 1 by precision: one that leads, or all that are not told apart, of
    more than ``most`` the first."""
    rows, where = table.rows, _where(table)
    first = [row for row in rows if "precision" in row.ranks and row.ranks["precision"].best == 1]
    if not first:
        return f"{where}: no judge accepted a trajectory, therefore none is ranked"
    if len(first) > 1:
        return (
            f"{where}: {len(first)} of {len(rows)} judges share the first rank by precision: "
            f"{listed([row.judge for row in first], most)}"
        )
    cell = precision_cell(first[0].score)
    if len(rows) == 1:
        return f"{where}: {rows[0].judge} alone, precision {cell}{unit_of(cell)}"
    return (
        f"{where}: {first[0].judge} is first of {len(rows)} judges by precision, "
        f"{cell}{unit_of(cell)}"
    )


def ranks_csv(tables: Sequence[RankTable]) -> str:
    """Write all tables as CSV; equal tables give equal text."""
    text = StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for table in tables:
        for row in table.rows:
            writer.writerow({"label": table.label, "benchmark": table.benchmark, **_line(row)})
    return text.getvalue()


def _line(row: RankedJudge) -> dict[str, Any]:
    score = row.score
    line: dict[str, Any] = {
        "judge": one_line(row.judge),
        "cost_per_1000": row.cost,
        "n": score.n,
        "labelled": row.labelled,
        "coverage": row.coverage,
        "failed": score.missing,
        "positives": score.positives,
        "tasks": score.tasks,
        "common": row.common,
        "prompts": row.prompts,
        "published_prompts": row.published_prompts,
        "asks_with": row.asks_with,
    }
    for column, rank in (("rank", row.ranks.get("precision")), ("f1_rank", row.ranks.get("f1"))):
        line[column] = rank and rank.best
        line[f"{column}_to"] = rank and rank.worst
    for rate in _LIMITED:
        defined = rate != "precision" or score.counts.accepted
        line[rate] = getattr(score, rate) if defined else None
        line[f"{rate}_low"], line[f"{rate}_high"] = score.intervals.get(rate, (None, None))
    return line


def ranks_json(tables: Sequence[RankTable]) -> str:
    """Write all tables as JSON."""
    listed = [table.model_dump(mode="json") for table in tables]
    return orjson.dumps(listed, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def write_page(
    file: Path, tables: Sequence[RankTable], report: ScoreReport, left_out: Sequence[str]
) -> None:
    """Write the page, which needs no network; equal tables give equal bytes, every text is
    escaped. Raises UserError where it cannot be written."""
    filters: dict[str, Callable[..., str]] = {
        "benchmark": benchmark_name,
        "coverage": coverage_text,
        "dollars": cost_text,
        "kappa_limits": lambda row: rate_cell(row.score, "kappa"),
        "f1_limits": lambda row: rate_cell(row.score, "f1"),
        "kappa": _kappa,
        "line": one_line,
        "percent": percent,
        "precision": lambda row: precision_cell(row.score),
        "rank": _rank,
    }
    save_page(
        file,
        "ranks.html",
        filters,
        tables=tables,
        cells=[{row.judge: row for row in table.rows} for table in tables],
        question="success" if tables[0].label == "success" else "soundness of the process",
        left_out=[one_line(reason) for reason in left_out],
        warnings=[
            one_line(line) for line in (*different_prompts(tables[0].rows), *warnings_of(report))
        ],
        method=METHOD,
        cost_note=COST_NOTE,
    )
