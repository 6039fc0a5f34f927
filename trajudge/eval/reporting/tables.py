"""The scores as tables: per judge, several judges on one page, judges compared, and
AgentRewardBench's Tables 1, 2, 3, 6, 7 and 8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from trajudge.eval.reporting.sentences import (
    NO_LABELS,
    UNDEFINED,
    agent_name,
    baseline_rows,
    benchmark_name,
    design_effect_cell,
    estimated_rate_tables,
    is_labelled,
    is_not_told,
    notes,
    paid_dollars,
    percent,
    precision_cell,
    probability,
    ranking_sentences,
    rate_cell,
    shown_benchmarks,
    signed_cell,
    with_limits,
)
from trajudge.eval.scoring.comparison import COMPARED
from trajudge.eval.scoring.metrics import METRICS
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    ALPHA,
    LABEL_TITLES,
    LABELS,
    OVERALL,
    Comparison,
    Coverage,
    EqualRecall,
    FaultRate,
    FaultScore,
    JudgeUsage,
    LabelName,
    McNemarResult,
    MetricDifference,
    Ranking,
    Score,
    ScoreReport,
    SuccessRate,
    UsageTotals,
)
from trajudge.util.errors import UserError
from trajudge.util.tables import (
    WARNINGS,
    Columns,
    Table,
    all_folded,
    columns,
    first_screen,
    first_warnings,
    fitted,
    render,
    screen_width,
    table_of,
    without_limits,
    wrapped,
)
from trajudge.util.terminal import LINES, count_of

_FEW_JUDGES = 4

_BENCHMARK_HEAD = ("benchmark", "ranking by precision", "ties (Holm, α = .05)")

_BENCHMARK_ROWS, _RANKING_LINES, _MOST_NAMES = 8, 2, 6

_REST = "Every difference: to_frame(); exact tests of accuracy: .discordances; orders: .rankings"

_DIFFERENCE: Columns[MetricDifference] = {
    "first": lambda d: d.first,
    "second": lambda d: d.second,
    "difference [95 %]": lambda d: signed_cell(d.difference, d.low, d.high),
    "p (Holm)": lambda d: UNDEFINED if d.p_holm is None else probability(d.p_holm),
    "n": lambda d: str(d.n),
}


def _improvement(test: McNemarResult) -> str:
    if test.improvement is None:
        return UNDEFINED
    low, high = test.improvement_low, test.improvement_high
    limits = "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"
    return f"{test.improvement:.2f}{limits}"


_MCNEMAR: Columns[McNemarResult] = {
    "first": lambda t: t.first,
    "second": lambda t: t.second,
    "only first right": lambda t: str(t.only_first_right),
    "only second right": lambda t: str(t.only_second_right),
    "p (Holm)": lambda t: probability(t.p_holm),
    "P(first > second) [95 %]": _improvement,
    "n": lambda t: str(t.n),
}

_RANKING: Columns[Ranking] = {
    "label": lambda r: LABEL_TITLES[r.label],
    "benchmark": lambda r: benchmark_name(r.benchmark),
    "metric": lambda r: METRICS[r.metric].title,
    "ranking": lambda r: r.order(),
    "ties (Holm, α = .05)": lambda r: r.tied() or "none",
}

_EQUAL_RECALL: Columns[EqualRecall] = {
    "judge": lambda e: e.judge,
    "baseline": lambda e: e.baseline,
    "recall of both": lambda e: percent(e.recall),
    "judge's precision": lambda e: percent(e.precision),
    "baseline's precision": lambda e: percent(e.baseline_precision),
    "difference [95 %]": lambda e: signed_cell(e.difference, e.low, e.high),
    "n": lambda e: str(e.n),
}


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Differences with intervals for every pair, and the judges in order with their ties.

    Of success over all benchmarks every pair is shown; elsewhere, where there are many, those
    that are told apart.
    """
    sections: list[Table] = []
    for ranking in comparison.rankings:
        place = (ranking.benchmark, ranking.label)
        rows = [
            d
            for d in comparison.differences
            if (d.benchmark, d.label, d.metric) == (*place, ranking.metric)
            and _shown(*place, comparison, (d.first, d.second) in ranking.apart)
        ]
        title = f"Difference in {METRICS[ranking.metric].title}{_where(*place)}"
        sections += [table_of(title, _DIFFERENCE, rows)] if rows else []
    for place in dict.fromkeys((test.benchmark, test.label) for test in comparison.discordances):
        tests = [
            test
            for test in comparison.discordances
            if (test.benchmark, test.label) == place
            and _shown(*place, comparison, test.p_holm <= ALPHA)
        ]
        title = f"Accuracy (McNemar's exact test){_where(*place)}"
        sections += [table_of(title, _MCNEMAR, tests)] if tests else []
    if comparison.rankings:
        sections.append(table_of("Pairwise significance", _RANKING, comparison.rankings, names=5))
    return sections


def benchmark_rankings(comparison: Comparison, width: int) -> list[str]:
    """Lay out the order of the judges by precision on each benchmark, in a few lines: the first of
    them where all would need more, their names shortened where one does. Nothing where they were
    not compared there."""
    rankings = [r for r in comparison.rankings if r.metric == "precision"]
    first = next((r.label for r in rankings), None)
    places = [r for r in rankings if r.label == first and r.benchmark != OVERALL]
    if len({r.benchmark for r in rankings}) < 2 or not places:
        return []
    shown, left_out = places[:_BENCHMARK_ROWS], len(places) - _BENCHMARK_ROWS
    for most in (None, *range(_MOST_NAMES, 0, -1)):
        rows = [(benchmark_name(r.benchmark), r.order(most), r.tied(most) or "none") for r in shown]
        lines = wrapped(_BENCHMARK_HEAD, rows, width)
        if len(lines) <= _RANKING_LINES * (1 + len(shown)):
            break
    else:
        lines = columns(_BENCHMARK_HEAD, rows, width, names=len(_BENCHMARK_HEAD))
    return [*lines, *([f"and {left_out} more: --full"] if left_out > 0 else [])]


def equal_recall_tables(recalls: Sequence[EqualRecall]) -> list[Table]:
    """Make the table of every judge's precision beside a trivial baseline's at the judge's recall,
    where there are any."""
    title = "Trivial baselines at the judge's recall"
    return [table_of(title, _EQUAL_RECALL, recalls)] if recalls else []


def comparison_screen(comparison: Comparison, warnings: Sequence[str], *, option: str) -> str:
    """Lay out the first screen: the order of the judges, and of the first label every pair's
    differences over all benchmarks; ``option`` names labels."""
    if all(ranking.undefined == ranking.judges for ranking in comparison.rankings):
        return first_screen([NO_LABELS + option], [], warnings=warnings, rest=_REST)
    first = comparison.rankings[0].label
    above = fitted(lambda most: _sentences(comparison, first, most), screen_width())
    whole = Comparison(
        differences=tuple(d for d in comparison.differences if _is_whole(d, first)),
        discordances=tuple(d for d in comparison.discordances if _is_whole(d, first)),
        rankings=tuple(r for r in comparison.rankings if _is_whole(r, first)),
    )
    *tables, _ = comparison_tables(whole)
    return first_screen(above, tables, warnings=warnings, rest=_REST, more="to_frame()")


def _sentences(comparison: Comparison, first: LabelName, most: int | None) -> list[str]:
    """Write the order by every label, with at most so many names; ``first`` needs no name."""
    return [
        line if label == first else f"{LABEL_TITLES[label]}: {line[0].lower()}{line[1:]}"
        for label in LABELS
        for line in ranking_sentences(comparison, label, most)
    ]


def _is_whole(one: MetricDifference | McNemarResult | Ranking, label: LabelName) -> bool:
    return (one.benchmark, one.label) == (OVERALL, label)


def fault_tables(scores: Sequence[FaultScore], *, short: bool = False) -> list[Table]:
    """Make the table of how judges find and place faults, where there is one to make; ``short``:
    without intervals and the columns of the second rank."""
    if not scores:
        return []

    def rate(name: FaultRate) -> Callable[[FaultScore], str]:
        if short:
            return lambda one: percent(getattr(one, name))
        return lambda one: with_limits(getattr(one, name), one.intervals.get(name))

    first: Columns[FaultScore] = {
        "F1": rate("f1"),
        "silent": rate("silent_recall"),
        "loud": rate("loud_recall"),
        "false alarms": rate("false_alarms"),
        "step": rate("step_exact"),
        "±1": rate("step_within_one"),
    }
    second: Columns[FaultScore] = {
        "found at its step": rate("step_found"),
        "type F1": lambda one: percent(one.type_f1),
        "steps named": lambda one: str(one.named),
    }
    more: Columns[FaultScore] = {"precision": rate("precision"), "recall": rate("recall")}
    shown = first if short else {**more, **first, **second}
    head: Columns[FaultScore] = {"judge": lambda one: one.judge}
    columns = {**head, **shown, "n": lambda one: str(one.n)}
    return [table_of("Faults" if short else "Faults [95 %]", columns, scores)]


def _shown(benchmark: str, label: LabelName, comparison: Comparison, apart: bool) -> bool:
    first = comparison.rankings[0]
    few = len(first.judges) <= _FEW_JUDGES
    return apart or few or (benchmark, label) == (first.benchmark, first.label)


def _where(benchmark: str, label: LabelName) -> str:
    place = "" if benchmark == OVERALL else f", {benchmark_name(benchmark)}"
    return f", {LABEL_TITLES[label].lower()}{place}"


_HEAD = ("judge", "precision [95 %]", "recall", "F1 [95 %]", "n")

_AGENTS: Columns[Score] = {
    "agent": lambda s: s.agent,
    "judge": lambda s: s.judge,
    "precision [95 %]": precision_cell,
    "recall": lambda s: percent(s.recall),
    "F1": lambda s: percent(s.f1),
    "n": lambda s: str(s.n),
}

_AGENT_ROWS = 5


def overview(scores: ScoreReport) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows for success, judges in the order of the scores.

    The rule-based baseline, which is the same beside all judges of the same trajectories, comes
    once after them, and the trivial baselines at the end.
    """
    judges = _by_place(scores.scores)
    benchmarks = list(dict.fromkeys(name for _, _, name in judges if name != OVERALL))
    if len(benchmarks) == 1:
        benchmarks = []
    places = (f"{benchmark_name(benchmark)} [95 %]" for benchmark in benchmarks)
    rows = [*_rows(judges, benchmarks), *_rows(_by_place(scores.baselines), benchmarks)]
    return (*_HEAD, *places), rows


def agents(scores: ScoreReport, width: int) -> list[str]:
    """Lay out the judges agent by agent, over all benchmarks, in a few lines: the agents with the
    most trajectories. Nothing where they were not scored so."""
    label = _first_label(scores.scores)
    rows = [
        s
        for s in scores.scores
        if (s.label, s.benchmark, s.baseline) == (label, OVERALL, False)
        and s.agent != ALL_AGENTS
        and s.n
    ]
    if not rows:
        return []
    rows.sort(key=lambda s: -s.n)
    table = table_of("", _AGENTS, rows[:_AGENT_ROWS])
    left_out = len(rows) - _AGENT_ROWS
    more = [f"and {left_out:,} more: --full"] if left_out > 0 else []
    return [*columns(table.head, table.rows, width, names=table.names), *more]


def _first_label(scores: Iterable[Score]) -> LabelName:
    """Success, or the process where that alone is scored."""
    return "success" if any(s.label == "success" for s in scores) else "process"


def _by_place(scores: Iterable[Score]) -> dict[tuple[str, bool, str], Score]:
    """Judge, whether it is the rule beside it, and benchmark -> its score of success, or of the
    process where that alone is scored."""
    whole = [s for s in scores if s.agent == ALL_AGENTS]
    label = _first_label(whole)
    return {(s.judge, s.baseline, s.benchmark): s for s in whole if s.label == label}


def _rows(
    scores: Mapping[tuple[str, bool, str], Score], benchmarks: Sequence[str]
) -> list[tuple[str, ...]]:
    cells: dict[bool, dict[str, tuple[str, ...]]] = {False: {}, True: {}}
    for judge, baseline in dict.fromkeys((j, b) for j, b, _ in scores):
        places = [scores.get((judge, baseline, benchmark)) for benchmark in benchmarks]
        whole = _whole(scores[judge, baseline, OVERALL])
        cells[baseline][judge] = (*whole, *map(_place, places))
    judges = [(judge, *row) for judge, row in cells[False].items()]
    return judges + baseline_rows(cells[True], "rule-based baseline")


def _whole(score: Score) -> tuple[str, ...]:
    return precision_cell(score), percent(score.recall), rate_cell(score, "f1"), str(score.n)


def _place(score: Score | None) -> str:
    return UNDEFINED if score is None else precision_cell(score)


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

_LABELS: tuple[LabelName, ...] = ("success", "side_effect", "repetition")  # what the paper asks

_LABEL_HEAD = tuple(f"{LABEL_TITLES[label].lower()} {rate}" for label in _LABELS for rate in _RATES)

_SIDES = {
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
    columns: dict[str, Callable[[SuccessRate], str]] = {
        "benchmark": lambda r: benchmark_name(r.benchmark),
        "agent": lambda r: agent_name(r.agent),
        "judge": lambda r: r.judge,
        **{f"{name} [95 %]": partial(_rate, side=side) for side, name in _SIDES.items()},
        "n": lambda r: str(r.n),
    }
    title = "Success rate by benchmark and agent"
    return table_of(title, columns, scores.success_rates, names=3)


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


def _rate(rate: SuccessRate | None, side: str) -> str:
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


_TABLES_HEAD = ("judge", "precision [95 %]", "recall", "F1 [95 %]", "n", "positives")


def tables(scores: ScoreReport) -> list[Table]:
    """Make all tables: the judges, if there are several, and their significance; each label that
    experts gave, and its further metrics; coverage; usage and cost."""
    sections: list[Table] = []
    shown = shown_benchmarks(scores)
    if len(scores.spending) > 1 and any(map(is_labelled, scores.scores)):
        sections.append(Table(scores.titled("Judges"), *overview(scores), names=1))
        sections += comparison_tables(scores.comparison)
    by_agent = any(s.agent != ALL_AGENTS for s in scores.scores)
    for label in LABELS:
        rows = [s for s in scores.scores if s.label == label and s.benchmark in shown]
        if any(map(is_labelled, rows)):
            differences = scores.against_baseline if label == "success" else ()
            rows += [s for s in scores.baselines if s.label == label and s.benchmark in shown]
            title = scores.titled(LABEL_TITLES[label])
            sections.append(_label_table(title, rows, by_agent, differences))
            sections += _metric_tables(title, rows)
    sections += fault_tables(scores.faults)
    sections += equal_recall_tables(scores.equal_recall)
    sections += estimated_rate_tables(scores)
    coverage = [c for c in scores.coverage if c.benchmark in shown and c.agent == ALL_AGENTS]
    spending = [row for spent in scores.spending for row in _with_stages(spent)]
    return [
        *sections,
        table_of("Coverage", _COVERAGE, coverage),
        table_of("Usage and cost", _SPENDING, spending, names=1),
    ]


def plain(scores: ScoreReport, wall_seconds: float | None = None) -> str:
    """Render all tables and notes as text with aligned columns."""
    return with_notes(tables(scores), notes(scores, wall_seconds))


def with_notes(shown: Sequence[Table], sentences: Sequence[str], *, rest: str | None = None) -> str:
    """Render tables as text, and sentences below them. Where ``rest`` says where everything stands,
    on one screen: fewer sentences, then no intervals, then the first rows alone."""
    if rest is None:
        return _text(shown, all_folded(sentences))
    estimates = list(map(without_limits, shown))
    below = f"Whole, with intervals: {rest}"
    for made, last in ((shown, []), (estimates, [below])):
        for most in range(WARNINGS, 0, -1):
            lines = first_warnings(sentences, screen_width(), rest=rest, most=most)
            text = _text(made, [*lines, *last])
            if text.count("\n") <= LINES:
                return text
    return first_screen([], estimates, (), sentences, rest=below, more=rest, most=1).lstrip("\n")


def _text(shown: Sequence[Table], lines: Sequence[str]) -> str:
    return "\n".join([render(shown, "table"), *lines]).rstrip("\n") + "\n"


def _label_table(
    title: str, rows: list[Score], by_agent: bool, differences: Sequence[MetricDifference]
) -> Table:
    """Below a baseline its judge's difference from it, where there is one."""
    paired = {(d.benchmark, d.first, d.metric): d for d in differences}
    cells: list[tuple[str, ...]] = []
    for s in rows:
        shown = [_score_row(s)]
        if s.baseline and s.agent == ALL_AGENTS and (s.benchmark, s.judge, "f1") in paired:
            shown.append(_baseline_row(s, paired))
        cells += [(row[0], agent_name(s.agent), *row[1:]) for row in shown]
    if not by_agent:
        short = [(row[0], *row[2:]) for row in cells]
        return Table(title, ("benchmark", *_TABLES_HEAD), short)
    return Table(title, ("benchmark", "agent", *_TABLES_HEAD), cells, names=3)


def _score_row(score: Score) -> tuple[str, ...]:
    """Make one row; the baseline's is indented below its judge's."""
    return (
        benchmark_name(score.benchmark),
        "  rule-based" if score.baseline else score.judge,
        precision_cell(score),
        percent(score.recall),
        rate_cell(score, "f1"),
        str(score.n),
        str(score.positives),
    )


def _baseline_row(
    score: Score, paired: Mapping[tuple[str, str, str], MetricDifference]
) -> tuple[str, ...]:
    """Subtract the baseline from the judge, in percentage points, on the same trajectories."""
    precision, recall, f1 = (paired[score.benchmark, score.judge, name] for name in COMPARED)
    points = UNDEFINED if recall.difference is None else f"{100 * recall.difference:+z.1f}"
    return (
        benchmark_name(score.benchmark),
        "  difference",
        signed_cell(precision.difference, precision.low, precision.high),
        points,
        signed_cell(f1.difference, f1.low, f1.high),
        str(precision.n),
        "",
    )


def _metric_tables(title: str, rows: list[Score]) -> list[Table]:
    """Make tables of the other metrics, overall: of verdicts, of errors, and of scores."""
    last = rows[-1].benchmark
    whole = [s for s in rows if s.benchmark == last and s.agent == ALL_AGENTS]
    beside: dict[str, tuple[str, str, Callable[[Score], str]]] = {
        "further": ("further metrics", "design effect of precision", design_effect_cell),
        "errors": ("errors", "errors", lambda s: str(s.counts.fp + s.counts.fn)),
        "scores": ("scores", "n", lambda s: str(s.scored)),
    }
    made: list[Table] = []
    for kind, (name, column, cell) in beside.items():
        metrics = [metric for metric in METRICS.values() if metric.table == kind]
        shown = [s for s in whole if s.scored] if kind == "scores" else whole
        cells = [
            (*_score_row(s)[:2], *(rate_cell(s, metric.name) for metric in metrics), cell(s))
            for s in shown
        ]
        head = ("benchmark", "judge", *(metric.title for metric in metrics), column)
        made += [Table(f"{title}, {name} [95 %]", head, cells)] if cells else []
    return made


def _endings(coverage: Coverage) -> str:
    ended = [f"{status} {n}" for status, n in coverage.statuses.items()]
    trained = [f"training set {coverage.training} (left out)"] if coverage.training else []
    return ", ".join([*ended, *trained]) or UNDEFINED


_COVERAGE: Columns[Coverage] = {
    "benchmark": lambda c: benchmark_name(c.benchmark),
    "judge": lambda c: c.judge,
    "judged": lambda c: str(c.judged),
    "status": _endings,
    "shortened": lambda c: ", ".join(f"{r} {n}" for r, n in c.shortened.items()) or "none",
    "not judged": lambda c: str(c.unjudged),
    "unlabelled": lambda c: str(c.unlabelled),
}


def _with_stages(spent: JudgeUsage) -> Iterator[tuple[str, UsageTotals]]:
    """Name the judge's totals, and below them those of its stages if there are several."""
    yield spent.judge, spent
    for stage in spent.stages if len(spent.stages) > 1 else ():
        yield f"  {stage.stage}", stage


def _cost(row: tuple[str, UsageTotals]) -> str:
    name, spent = row
    if not spent.calls:
        return "unknown" if is_not_told(name) else "$0"
    dollars, unpriced = paid_dollars([spent]), spent.unpriced - spent.cached_unpriced
    cost = "unknown" if dollars is None else f"${dollars:.4f}"
    if spent.cached_cost:
        cost += f" + ${spent.cached_cost:.4f} cached"
    if dollars is not None and unpriced:
        cost += f" + {count_of(unpriced, 'call')} of unknown cost"
    return cost


_SPENDING: Columns[tuple[str, UsageTotals]] = {
    "judge": lambda row: row[0],
    "calls": lambda row: str(row[1].calls),
    # Cached and image tokens are parts of the input, reasoning of the output.
    "input tokens": lambda row: f"{row[1].usage.prompt:,}",
    "cached": lambda row: f"{row[1].usage.cache_read:,}",
    "images": lambda row: f"{row[1].usage.image:,}",
    "output tokens": lambda row: f"{row[1].usage.output:,}",
    "reasoning": lambda row: f"{row[1].usage.reasoning:,}",
    "cost": _cost,
    "seconds": lambda row: f"{row[1].seconds:.1f}",
}
