"""The audit as tables: what the rule gets wrong, where, and whether it matters."""

from __future__ import annotations

from collections.abc import Sequence

from trajudge.annotations.agentrewardbench import BENCHMARKS
from trajudge.eval.audit.cases import Disagreement
from trajudge.eval.audit.errors import ClusteredRate, RuleErrors
from trajudge.eval.audit.ranking import AgentRanking
from trajudge.eval.reporting.finding import unfinished
from trajudge.eval.reporting.formatting import unit_of
from trajudge.eval.scoring.records import OVERALL, UnfinishedRun
from trajudge.trajectories.model import Record
from trajudge.trajectories.util.layout.screen import LINES
from trajudge.trajectories.util.tables import (
    Table,
    cut_columns,
    fitted,
    folded,
    screen_width,
)
from trajudge.trajectories.util.terminal import count_of, listed

WEIGHTED = (
    "labels drawn with unequal probabilities: every rate weights them, the counts behind it do not"
)
_SHOWN_VALUES = 15
_SHOWN_ORDERS = 3
_NOTES = 3  # lines left for what the command says of the labels, and of where the audit is
_ERRORS_HEAD = ("group", "value", "n", "precision [95 %]", "successes denied", "failures passed")
_SHORT_HEAD = ("group", "n", "precision [95 %]", "successes denied", "failures passed")
_RANKING_HEAD = ("benchmark", "evaluator", "agent", "n", "expert [95 %]", "evaluator [95 %]")


class Audit(Record):
    """Everything that the audit found; ``rule`` names the evaluator that is audited, ``unfinished``
    the runs that lack judgments, ``weighted`` whether labels were drawn with unequal
    probabilities; ``shared_goals`` says which task ids have one goal."""

    rule: str
    n: int
    without_verdict: int
    errors: tuple[RuleErrors, ...]
    rankings: tuple[AgentRanking, ...]
    cases: tuple[Disagreement, ...]
    unfinished: tuple[UnfinishedRun, ...] = ()
    weighted: bool = False
    shared_goals: str = ""


def tables(audit: Audit) -> list[Table]:
    """Lay out errors and success rates; of a facet with many values those with most denied
    successes."""
    errors = [_errors_row(entry) for entry in _worst(audit.errors)]
    ranking = [row for entry in audit.rankings for row in _ranking_rows(entry)]
    return [
        Table(f"Errors of {audit.rule}", _ERRORS_HEAD, errors),
        Table("Success rates", _RANKING_HEAD, ranking, names=3),
    ]


def summary(audit: Audit, *, rest: str, full: str = "--full", width: int | None = None) -> str:
    """Lay out the first screen, at most 40 lines of ``width`` columns, with a newline at the end:
    the evaluator's errors, overall and by as many facets as fit, and what they change overall.

    ``rest`` says where everything else stands, ``full`` where the groups that are cut do.
    """
    width = width or screen_width()
    above = [line for text in _finding(audit) for line in folded(text, width, most=3)]
    overall = [ranking for ranking in audit.rankings if ranking.benchmark == OVERALL]
    ranked = [ranking for ranking in overall if len(ranking.agents) > 1][:_SHOWN_ORDERS]
    orders = fitted(lambda most: [_order(ranking, most) for ranking in ranked], width)
    below = [line for text in orders for line in folded(text, width, most=3)]
    below += [line for text in _counts(audit) for line in folded(text, width)]
    below += folded(rest, width)
    rows = [_short_row(entry) for entry in _worst(audit.errors)]
    lines = cut_columns(
        *(_SHORT_HEAD, rows, width, LINES - len(above) - len(below) - 2 - _NOTES),
        names=1,
        more=lambda left: f"and {count_of(left, 'more group')}: {full}",
    )
    return "\n".join([*above, "", *lines, "", *below]) + "\n"


def _short_row(errors: RuleErrors) -> tuple[str, ...]:
    """Show one group without the counts behind its rates."""
    value = BENCHMARKS.get(errors.value, errors.value)
    own = errors.facet in ("all", "benchmark", "agent")
    rates = (errors.precision, errors.missed, errors.passed_failures)
    shown = (_shown(rate).rsplit(" ", 1)[0] for rate in rates)
    return (value if own else f"{errors.facet} {value}", str(errors.n), *shown)


def _finding(audit: Audit) -> list[str]:
    cut = unfinished(audit.unfinished, _SHOWN_ORDERS)
    title = f"{audit.rule} against the experts on {audit.n:,} trajectories"
    lines = [f"{title}; {cut}" if cut else title]
    whole = next((entry for entry in audit.errors if entry.facet == "all"), None)
    if whole is not None:
        precision, missed, passed = map(
            _shown, (whole.precision, whole.missed, whole.passed_failures)
        )
        lines.append(
            f"Precision {precision}; denies {missed} of the successes and passes {passed} of the "
            f"failures{unit_of(precision, missed, passed)}"
        )
    return lines


def sentences(audit: Audit) -> list[str]:
    """Say what follows from the tables, in words."""
    lines = [f"warning: {cut}"] if (cut := unfinished(audit.unfinished)) else []
    lines += [_order(ranking) for ranking in audit.rankings if len(ranking.agents) > 1]
    return lines + _counts(audit)


def _counts(audit: Audit) -> list[str]:
    """Say how many trajectories deserve a look, and how many had no verdict."""
    lines = []
    for kind, name in (("rule", audit.rule), ("annotation", "the annotation")):
        count = sum(case.suspect == kind for case in audit.cases)
        lines.append(f"{count} trajectories on which all others disagree with {name}")
    if audit.shared_goals:
        lines.append(f"warning: {audit.shared_goals}: count goals with --task-id goal")
    if audit.weighted:
        lines.append(WEIGHTED)
    if audit.without_verdict:
        lines.append(f"{audit.without_verdict} labelled trajectories without a verdict: left out")
    return lines


def _worst(errors: Sequence[RuleErrors]) -> list[RuleErrors]:
    kept: list[RuleErrors] = []
    for facet in dict.fromkeys(entry.facet for entry in errors):
        values = [entry for entry in errors if entry.facet == facet]
        if len(values) > _SHOWN_VALUES:
            values = sorted(values, key=lambda entry: -entry.missed.hits)[:_SHOWN_VALUES]
        kept += values
    return kept


def _errors_row(errors: RuleErrors) -> tuple[str, ...]:
    value = BENCHMARKS.get(errors.value, errors.value)
    rates = (errors.precision, errors.missed, errors.passed_failures)
    return (errors.facet, value, str(errors.n), *(_shown(rate) for rate in rates))


def _ranking_rows(ranking: AgentRanking) -> list[tuple[str, ...]]:
    benchmark = BENCHMARKS.get(ranking.benchmark, ranking.benchmark)
    return [
        (
            benchmark,
            ranking.evaluator,
            row.agent,
            str(row.expert.trials),
            _shown(row.expert),
            _shown(row.evaluator),
        )
        for row in ranking.agents
    ]


def _order(ranking: AgentRanking, most: int | None = None) -> str:
    """Say how the evaluator shifts and orders the agents' success rates; of more than ``most``
    reversed pairs the first."""
    where = BENCHMARKS.get(ranking.benchmark, ranking.benchmark)
    tau = "undefined" if ranking.tau is None else f"{ranking.tau:z.2f}"
    if ranking.low is not None and ranking.high is not None:
        tau += f" [{ranking.low:z.2f}, {ranking.high:z.2f}]"
    flips = [
        f"{flip.better} {100 * flip.expert[0]:.1f} over {flip.worse} {100 * flip.expert[1]:.1f} by "
        f"the expert, {100 * flip.evaluator[0]:.1f} under {100 * flip.evaluator[1]:.1f}"
        for flip in ranking.flips
        if flip.shown
    ]
    open_pairs = [f"{flip.better} and {flip.worse}" for flip in ranking.flips if not flip.shown]
    swapped = f"reversed pairs: {listed(flips, most, sign='; ')}" if flips else "no pair reversed"
    if open_pairs:
        swapped += f"; not told apart on the tasks of both: {listed(open_pairs, most, sign='; ')}"
    shift = f"success rate {100 * ranking.shift:+z.1f} points against the expert"
    return f"{where}, {ranking.evaluator}: {shift}, tau {tau}; {swapped}"


def _shown(rate: ClusteredRate) -> str:
    if rate.rate is None:
        return "–"
    limits = ""
    if rate.low is not None and rate.high is not None:
        limits = f" [{100 * rate.low:.1f}, {100 * rate.high:.1f}]"
    return f"{100 * rate.rate:.1f}{limits} {rate.hits}/{rate.trials}"
