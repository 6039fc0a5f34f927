"""The scores in the layout of AgentRewardBench's Tables 1, 2, 3, 6, 7 and 8.

Precision and success rates stand with their intervals, which the paper does not give.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

from trajudge.eval.reporting.formatting import (
    UNDEFINED,
    agent_name,
    baseline_rows,
    benchmark_name,
    percent,
    precision_cell,
    with_limits,
)
from trajudge.eval.reporting.overview import overview
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    LABEL_TITLES,
    OVERALL,
    Label,
    Score,
    ScoreReport,
    SuccessRate,
)
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.tables import Table

OFFICIAL, EXISTING, OTHER = "Official", "Existing", "Other"
Representation = tuple[bool, bool]
"""Whether the judge saw the final accessibility tree, and the final screenshot."""

_SIMPLIFIED: dict[Representation, str] = {
    (True, False): "Simplified (A)",
    (False, True): "Simplified (S)",
    (True, True): "Simplified (A+S)",
    (False, False): "Simplified (neither)",
}
CATEGORIES = (OFFICIAL, EXISTING, *_SIMPLIFIED.values(), OTHER)
# Judges of other papers by how their ids begin, ours and those of published judgments.
_EXISTING = re.compile(r"(aer|nnetnav|webvoyager|webjudge|insta)(?![a-z])|aer[cv](?![a-z])", re.I)
_OURS = re.compile(
    r"(logprob|rubric|claims-first|panel|cascade|heuristic|telemetry)(?![a-z])", re.I
)
_SHOWN = re.compile(r"simplified-(axtree|screenshot|both|none)(?![a-z])")
_BY_ID: dict[str, Representation] = {
    "axtree": (True, False),
    "screenshot": (False, True),
    "both": (True, True),
    "none": (False, False),
}


def category(judge: str, representations: Mapping[str, Representation]) -> str:
    """Which of CATEGORIES a judge's id belongs to.

    The rule-based evaluation is the official one, a judge of another paper an existing one. What
    is left are simplified judges, as the paper calls its own, told apart by what they saw of the
    final page; others where that is not known.
    """
    if judge.startswith("rule-based"):
        return OFFICIAL
    if _EXISTING.match(judge):
        return EXISTING
    if _OURS.match(judge):
        return OTHER
    shown = _SHOWN.match(judge)
    representation = _BY_ID[shown[1]] if shown else representations.get(judge)
    return OTHER if representation is None else _SIMPLIFIED[representation]


_RATES = ("precision [95 %]", "recall", "F1")
_LABELS: tuple[Label, ...] = ("success", "side_effect", "repetition")  # what the paper asks
_LABEL_HEAD = tuple(f"{LABEL_TITLES[label].lower()} {rate}" for label in _LABELS for rate in _RATES)
Sides = Literal["expert", "judge_rate", "rule_based"]
_SIDES: dict[Sides, str] = {
    "expert": "by expert",
    "judge_rate": "by judge",
    "rule_based": "by rule",
}


def paper_table(
    number: int, scores: ScoreReport, representations: Mapping[str, Representation]
) -> Table:
    """Table ``number`` of the paper. Raises UserError where there is nothing to put into it."""
    table = {
        3: _agents,
        6: _success_rates,
        7: _overall,
        8: _by_benchmark,
    }
    if number == 1:
        return _success(scores, representations)
    if number == 2:
        return _by_representation(scores, representations)
    return table[number](scores)


def _success(scores: ScoreReport, representations: Mapping[str, Representation]) -> Table:
    """Category by category, the official evaluation first, as in the paper."""
    head, judges = overview(scores)
    rows = [(category(row[0], representations), *row) for row in judges]
    rows.sort(key=lambda row: CATEGORIES.index(row[0]))
    title = "Success: precision, recall, F1, and precision by benchmark"
    return Table(title, ("category", *head), rows, names=2)


def _by_representation(scores: ScoreReport, representations: Mapping[str, Representation]) -> Table:
    """Judges by what they saw of the final page; both first, as in the paper."""
    known = [judge for judge in _judges(scores) if judge in representations]
    if not known:
        raise UserError(
            "Table 2 compares what judges saw of the final page, which none of these runs tells: "
            "score runs made with --representation, or published judgments"
        )
    order = [(True, True), (True, False), (False, True), (False, False)]
    rows = [
        (*map(_mark, representations[judge]), judge, *_labels(scores, judge, OVERALL))
        for judge in sorted(known, key=lambda name: (order.index(representations[name]), name))
    ]
    head = ("axtree", "screenshot", "judge", *_LABEL_HEAD)
    return Table("Input representation", head, rows, names=3)


def _agents(scores: ScoreReport) -> Table:
    """Make a row per agent and judge: expert, judge and rule, each by benchmark."""
    rates = {(r.judge, r.agent, r.benchmark): r for r in scores.success_rates}
    benchmarks = [b for b in _benchmarks(scores) if b != OVERALL]
    pairs = dict.fromkeys((j, a) for j, a, _ in rates if a != ALL_AGENTS)
    rows = [
        (
            agent,
            judge,
            *(_rate(rates.get((judge, agent, b)), side) for side in _SIDES for b in benchmarks),
        )
        for judge, agent in pairs
    ]
    head = (f"{name} {benchmark_name(b)} [95 %]" for name in _SIDES.values() for b in benchmarks)
    return Table("Success rate by agent", ("agent", "judge", *head), rows)


def _success_rates(scores: ScoreReport) -> Table:
    rows = [
        (
            benchmark_name(r.benchmark),
            agent_name(r.agent),
            r.judge,
            *(_rate(r, side) for side in _SIDES),
            str(r.n),
        )
        for r in scores.success_rates
    ]
    head = (*("benchmark", "agent", "judge"), *(f"{n} [95 %]" for n in _SIDES.values()), "n")
    return Table("Success rate by benchmark and agent", head, rows, names=3)


def _overall(scores: ScoreReport) -> Table:
    rows = [(judge, *_labels(scores, judge, OVERALL)) for judge in _judges(scores)]
    rows += _rule_rows(scores, OVERALL)
    return Table("All labels, overall", ("judge", *_LABEL_HEAD), _unique(rows), names=1)


def _by_benchmark(scores: ScoreReport) -> Table:
    rows: list[tuple[str, ...]] = []
    for benchmark in _benchmarks(scores):
        if benchmark == OVERALL:
            continue
        judges = [(j, *_labels(scores, j, benchmark)) for j in _judges(scores)]
        name = benchmark_name(benchmark)
        both = [*judges, *_rule_rows(scores, benchmark)]
        rows += [(name, *row) for row in _unique(both)]
    return Table("All labels, by benchmark", ("benchmark", "judge", *_LABEL_HEAD), rows)


def _rule_rows(scores: ScoreReport, benchmark: str) -> list[tuple[str, ...]]:
    """Make the baseline's rows on the trajectories of every judge, equal ones once."""
    nothing = (UNDEFINED,) * (len(_LABEL_HEAD) - len(_RATES))
    cells = {
        s.judge: _cells(s)
        for s in scores.scores
        if s.baseline and s.benchmark == benchmark and s.agent == ALL_AGENTS
    }
    return [(*row, *nothing) for row in baseline_rows(cells)]


def _labels(scores: ScoreReport, judge: str, benchmark: str) -> tuple[str, ...]:
    """Precision, recall and F1 of the three labels."""
    by_label = {
        s.label: s
        for s in scores.scores
        if (s.judge, s.benchmark, s.agent, s.baseline) == (judge, benchmark, ALL_AGENTS, False)
    }
    return tuple(
        text
        for label in _LABELS
        for text in (_cells(by_label[label]) if label in by_label else (UNDEFINED,) * len(_RATES))
    )


def _cells(score: Score) -> tuple[str, ...]:
    return precision_cell(score), percent(score.recall), percent(score.f1)


def _rate(rate: SuccessRate | None, side: Sides) -> str:
    if rate is None:
        return UNDEFINED
    return with_limits(getattr(rate, side), rate.intervals.get(side))


def _judges(scores: ScoreReport) -> list[str]:
    return list(dict.fromkeys(c.judge for c in scores.coverage))


def _benchmarks(scores: ScoreReport) -> list[str]:
    return list(dict.fromkeys(c.benchmark for c in scores.coverage))


def _unique(rows: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(rows))


def _mark(yes: bool) -> str:
    return "yes" if yes else "no"
