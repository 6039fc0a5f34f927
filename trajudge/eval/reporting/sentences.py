"""Figures and sentences: how numbers are written, the finding above every table, costs, and the
caveats below.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import ROUND_DOWN, Context, Decimal
from typing import NamedTuple

from trajudge.annotations.agentrewardbench import BENCHMARKS
from trajudge.annotations.published import SUFFIX
from trajudge.eval.scoring.metrics import METRICS
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    LABEL_TITLES,
    OVERALL,
    RULE_BASED,
    WEIGHTED,
    Comparison,
    Coverage,
    EqualRecall,
    EstimatedRate,
    JudgeUsage,
    LabelName,
    Limits,
    Ranking,
    Score,
    ScoreReport,
    UnattributedCost,
    UnfinishedRun,
    UsageTotals,
)
from trajudge.eval.store.task_goals import TaskGoals, goal_note
from trajudge.judges.model import Status
from trajudge.trajectories.model import Record
from trajudge.util.tables import Columns, Table, table_of
from trajudge.util.terminal import count_of, listed, one_line

UNDEFINED = "–"

NO_BETTER = "No better than baselines that never see the page"
UNCLEAR = "Not significantly better than baselines that never see the page"
BETTER = "Better than baselines that never see the page"

_FOUR_DIGITS = Context(prec=4, rounding=ROUND_DOWN)


def benchmark_name(benchmark: str) -> str:
    """As the paper's tables name it."""
    return "Overall" if benchmark == OVERALL else BENCHMARKS.get(benchmark, benchmark)


def evaluator_name(score: Score) -> str:
    """Name whose figures the row holds."""
    return RULE_BASED if score.baseline else score.judge


def baseline_rows(
    cells: Mapping[str, tuple[str, ...]], name: str = RULE_BASED
) -> list[tuple[str, ...]]:
    """Make the rows of the rule-based baseline from its ``cells`` on each judge's trajectories,
    equal ones once. Where they differ, each names the judges beside whom it was scored."""
    beside: dict[tuple[str, ...], list[str]] = {}
    for judge, row in cells.items():
        beside.setdefault(row, []).append(judge)
    if len(beside) == 1:
        return [(name, *row) for row in beside]
    return [(f"{RULE_BASED} beside {_first_of(judges)}", *row) for row, judges in beside.items()]


def _first_of(judges: Sequence[str]) -> str:
    if len(judges) <= 2:
        return " and ".join(judges)
    return f"{judges[0]} and {len(judges) - 1} more"


def percent(rate: float | None) -> str:
    return UNDEFINED if rate is None else f"{100 * rate:z.1f}"


def threshold_text(value: float) -> str:
    """Write a threshold, or a score beside one, with four digits and never above its value: who
    copies 0.6666 accepts two votes of three, with 0.6667 none of them."""
    return f"{float(_FOUR_DIGITS.create_decimal(Decimal(repr(float(value))))):g}"


def precision_cell(score: Score) -> str:
    """Without an accepted trajectory there is neither precision nor interval."""
    return rate_cell(score, "precision") if score.counts.accepted else UNDEFINED


def design_effect_cell(score: Score) -> str:
    """Precision's."""
    effect = score.design_effects.get("precision")
    return UNDEFINED if effect is None else f"{effect:.1f}"


def rate_cell(score: Score, name: str) -> str:
    """Write a metric with its interval, where it has one: in percent, or a coefficient as it is."""
    value, limits = score.rates[name], score.intervals.get(name)
    if METRICS[name].in_percent:
        return with_limits(value, limits)
    if value is None:
        return UNDEFINED
    return f"{value:z.2f}" + (f" [{limits[0]:z.2f}, {limits[1]:z.2f}]" if limits else "")


def with_limits(value: float | None, limits: Limits | None) -> str:
    if limits is None:
        return percent(value)
    return f"{percent(value)} [{100 * limits[0]:z.1f}, {100 * limits[1]:z.1f}]"


def unit_of(*cells: str) -> str:
    """Say what rates of cells are, behind them: percent, with an interval where one has it."""
    if any("[" in cell for cell in cells):
        return " (%, 95 % interval)"
    return " (%)" if set(cells) - {UNDEFINED} else ""


def agent_name(agent: str) -> str:
    return "All" if agent == ALL_AGENTS else agent


def signed_cell(value: float | None, low: float | None, high: float | None) -> str:
    """Write a difference in percentage points, with its limits."""
    if value is None:
        return UNDEFINED
    shown = f"{100 * value:+z.1f}"
    return (
        shown if low is None or high is None else f"{shown} [{100 * low:+z.1f}, {100 * high:+z.1f}]"
    )


def probability(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


NO_LABELS = (
    "No expert labels belong to these trajectories, so nothing says how far these verdicts hold: "
    "name labels with "
)

LABELS_OPTION = "--annotations labels.csv, a row a run, or KIND:PATH"

# As many judges are named beside the note that there are no labels.
_UNLABELLED_JUDGES = 12


def finding(
    scores: ScoreReport,
    label: LabelName | None,
    *,
    option: str = LABELS_OPTION,
    most: int | None = None,
) -> list[str]:
    """Say what was judged, and the one figure to take away; ``option`` names labels. Of more than
    ``most`` names a list holds the first."""
    judges, whole = ordered_judges(scores), _whole(scores)
    benchmarks = _benchmarks(scores)
    named = judges[0] if len(judges) == 1 else f"{len(judges)} judges"
    places = f"{len(benchmarks)} benchmarks" if len(benchmarks) != 1 else _only(benchmarks)
    title = scores.titled(f"{named} on {_judged(whole)} of {places}")
    lines = [title + _unfinished(scores, judges, most)]
    failed = failed_judges(scores)
    if failed:
        lines.append(f"Every judgment of {listed(failed, most)} failed: no rate is known")
    if failed and len(failed) == len(judges):
        return lines
    if label is None:
        lines += [*map(_verdicts, whole[:_UNLABELLED_JUDGES]), unscored(scores, option=option)]
        return [*lines, *constant_sentences(scores, "success", most)]
    lines.append(_first_judge(scores, label))
    lines += _without_judging(scores, label)
    lines += ranking_sentences(scores.comparison, label, most)
    return [*lines, *constant_sentences(scores, label, most), *baseline_sentences(scores, most)]


def failed_judges(scores: ScoreReport) -> list[str]:
    """Name the judges of which no judgment ended well."""
    return [c.judge for c in _whole(scores) if c.judged and not c.statuses.get(Status.OK)]


def _unfinished(scores: ScoreReport, judges: list[str], most: int | None) -> str:
    """Say which runs the figures hold a part of, and how large a part; "" where all are whole."""
    if [run.judge for run in scores.unfinished] == judges and len(judges) == 1:
        (run,) = scores.unfinished
        return f"; the run is not finished: {run.judged:,} of {run.due:,} judgments"
    return f"; {named}" if (named := unfinished(scores.unfinished, most)) else ""


def unfinished(runs: Sequence[UnfinishedRun], most: int | None = None) -> str:
    """Name the runs that lack judgments, of more than ``most`` the first; "" where none does."""
    named = [f"{run.judge} ({run.judged:,} of {run.due:,} judgments)" for run in runs]
    return f"not finished: {listed(named, most)}" if named else ""


def unscored(scores: ScoreReport, *, option: str = LABELS_OPTION) -> str:
    """Say why no judge has a rate: nothing was judged, its training set was, or no labels are
    there, which ``option`` names."""
    whole = _whole(scores)
    if any(c.judged for c in whole):
        unsure = max((s.unsure for s in score_rows(scores, "success", OVERALL)), default=0)
        return _open_labels(unsure) if unsure else NO_LABELS + option
    if trained := [c for c in whole if c.training]:
        return (
            f"All {count_of(trained[0].training, 'trajectory')} are the training set of "
            f"{trained[0].judge}, "
            "so nothing is left to score it on: judge others"
        )
    return "Nothing was judged yet"


def _open_labels(unsure: int) -> str:
    labels = "The expert label" if unsure == 1 else f"All {unsure:,} expert labels"
    return f"{labels} of these trajectories leave{'s' * (unsure == 1)} success open: none is scored"


def _verdicts(coverage: Coverage) -> str:
    """Say how often a judge said yes, by label."""
    shares = [
        f"{LABEL_TITLES[label].lower()} {coverage.positive[label]:,} of {count:,}"
        for label, count in coverage.verdicts.items()
    ]
    return f"Verdicts of {coverage.judge}: {', '.join(shares)}"


def _whole(scores: ScoreReport) -> list[Coverage]:
    """Select every judge's coverage of all benchmarks and agents together."""
    return [c for c in scores.coverage if (c.benchmark, c.agent) == (OVERALL, ALL_AGENTS)]


def _judged(whole: list[Coverage]) -> str:
    """Count the trajectories that were judged, from the fewest of a judge to the most."""
    counts = [c.judged for c in whole] or [0]
    least = f"{min(counts):,} to " if min(counts) < max(counts) else ""
    return least + count_of(max(counts), "trajectory")


def _benchmarks(scores: ScoreReport) -> set[str]:
    """Name the benchmarks of which a trajectory was judged; where none was, those of the run."""
    judged = {c.benchmark for c in scores.coverage if c.judged}
    return (judged or {c.benchmark for c in scores.coverage}) - {OVERALL}


def _only(benchmarks: set[str]) -> str:
    return benchmark_name(next(iter(benchmarks)))


class _Wording(NamedTuple):
    """How a label's yes is written: what the judge does, what is so, and what is counted."""

    accepts: str
    are_so: str
    ones: str


_WORDINGS: dict[LabelName, _Wording] = {
    "success": _Wording("accepts", "right", "right ones"),
    "process": _Wording("accepts", "sound", "sound ones"),
    "side_effect": _Wording("marks", "with a side effect", "ones with a side effect"),
    "repetition": _Wording("marks", "repetitive", "repetitive ones"),
}


def _first_score(scores: ScoreReport, label: LabelName) -> Score | None:
    """Return the overall score of the first judge that accepts a run, else of the first judge; None
    where no labelled trajectory was judged."""
    rows = {s.judge: s for s in score_rows(scores, label, OVERALL) if not s.baseline}
    mine = [rows[judge] for judge in ordered_judges(scores) if judge in rows]
    return min(filter(is_labelled, mine), key=lambda s: not s.counts.accepted, default=None)


def _first_judge(scores: ScoreReport, label: LabelName) -> str:
    """Write of the runs that the first judge accepts how many are right, and of the right ones how
    many it accepts."""
    first, judges = _first_score(scores, label), ordered_judges(scores)
    if first is None:
        return f"{LABEL_TITLES[label]}: no labelled trajectory was judged"
    accepts, are_so, ones = _WORDINGS[label]
    head = "" if len(judges) == 1 else f"First of {len(judges)} by precision is {first.judge}: "
    alike = WEIGHTED not in scores.remarks
    if not first.counts.accepted:
        runs = f"{count_of(first.n, 'run')}, {first.positives:,} of them {are_so}"
        text = f"of {runs}, it {accepts} none"
    else:
        precision, recall = (_share(first, name, alike) for name in ("precision", "recall"))
        text = f"of the runs that it {accepts} {precision} are {are_so}; "
        text += f"of the {ones} it {accepts} {recall}"
    return head + text if head else f"O{text[1:]}"


def _share(score: Score, name: str, is_counted: bool) -> str:
    """Write a rate in percent, hits of trials where it ``is_counted``, and precision's interval."""
    parts = []
    if is_counted:
        counts = score.counts
        parts = [
            f"{counts.tp:,} of {counts.accepted if name == 'precision' else counts.positives:,}"
        ]
    if name == "precision" and (limits := score.intervals.get(name)):
        parts.append(f"95 % interval {percent(limits[0])} to {percent(limits[1])}")
    elif name == "precision" and (reason := score.no_interval.get(name)):
        parts.append(f"no interval: {reason}")
    return f"{percent(score.rates[name])} %" + (f" ({'; '.join(parts)})" if parts else "")


def _without_judging(scores: ScoreReport, label: LabelName) -> list[str]:
    """Write what accepting every run and the rule reach on the first judge's trajectories."""
    first = _first_score(scores, label)
    if first is None or not first.n:
        return []
    parts, are_so = list[str](), _WORDINGS[label].are_so
    if WEIGHTED not in scores.remarks:
        share = f"{percent(first.positives / first.n)} % ({first.positives:,} of {first.n:,})"
        parts.append(f"always yes: {share} are {are_so}, the base rate")
    for rule in score_rows(scores, label, OVERALL):
        if rule.baseline and rule.judge == first.judge and rule.n:
            text = (
                f"{precision_cell(rule)} % are right, {percent(rule.recall)} % of the right ones "
            )
            text = text + "accepted" if rule.counts.accepted else "accepts none"
            parts.append(f"rule-based: {text}{_less_rule(scores, first, rule)}")
    text = "; ".join(parts)
    return [text[0].upper() + text[1:]] if text else []


def _less_rule(scores: ScoreReport, first: Score, rule: Score) -> str:
    """Write the judge's precision less the rule's, where it has an interval."""
    for d in scores.against_baseline:
        place = (d.benchmark, d.label, d.metric, d.first)
        if place != (OVERALL, first.label, "precision", first.judge):
            continue
        if d.low is not None and d.high is not None:
            clear = "significant" if d.low > 0 or d.high < 0 else "not significant"
            # A judge or the rule without a verdict on some: the figures above are of others too.
            both = "" if {first.n, rule.n} == {d.n} else f" on the {d.n:,} with both"
            points = signed_cell(d.difference, d.low, d.high)
            return f"; difference {points} points{both}, {clear}"
    return ""


def constant_sentences(scores: ScoreReport, label: LabelName, most: int | None) -> list[str]:
    """Name the judges that say the same of every run, which tells nothing of one."""
    constant: dict[str, list[str]] = {"yes": [], "no": []}
    for c in _whole(scores):
        verdicts, yes = c.verdicts.get(label, 0), c.positive.get(label, 0)
        if verdicts > 1 and yes in (0, verdicts):
            constant["yes" if yes else "no"].append(c.judge)
    return [
        f"The same verdict on every run, {verdict}: {listed(judges, most)}"
        for verdict, judges in constant.items()
        if judges
    ]


def baseline_sentences(scores: ScoreReport, most: int | None = None) -> list[str]:
    """Sort the judges by whether they are more precise at equal recall than every baseline that
    never sees the page: no better, not significantly better, better. Each is named beside the
    baseline that is hardest to beat; of more than ``most`` judges the first."""
    hardest: dict[str, EqualRecall] = {}
    for one in scores.equal_recall:
        if one.judge not in hardest or one.difference < hardest[one.judge].difference:
            hardest[one.judge] = one
    sorted_judges: dict[str, list[str]] = {head: [] for head in (NO_BETTER, UNCLEAR, BETTER)}
    for judge, one in hardest.items():
        head = NO_BETTER if one.difference <= 0 else BETTER if (one.low or 0) > 0 else UNCLEAR
        theirs = f"{one.baseline} {percent(one.baseline_precision)} %"
        sorted_judges[head].append(f"{judge} {percent(one.precision)} %, {theirs}")
    return [
        f"{head} (precision at equal recall): {listed(named, most, sign='; ')}"
        for head, named in sorted_judges.items()
        if named
    ]


def ranking_sentences(
    comparison: Comparison, label: LabelName, most: int | None = None
) -> list[str]:
    """Write the order by precision, where the judges were compared, and which of them differ; of
    more than ``most`` names the first."""
    for ranking in comparison.rankings:
        if (ranking.benchmark, ranking.label, ranking.metric) == (OVERALL, label, "precision"):
            lines = [f"Precision: {ranking.order(most)}"]
            if ranking.are_all_tied:  # a sign between them would say that one is better
                lines = [f"Precision, the highest first: {ranking.order(most, sign=', ')}"]
            if len(ranking.judges) - len(ranking.undefined) > 1:
                lines.append(_significance(comparison, ranking, most))
            return lines
    return []


def _significance(comparison: Comparison, ranking: Ranking, most: int | None) -> str:
    """Say which judges are not told apart, and which differ the other way round where both judged:
    the order is by what each was scored on."""
    text = "Every difference in precision is significant (Holm, α = .05)"
    if ranking.are_all_tied:
        text = "No difference in precision is significant (Holm, α = .05)"
    elif ranking.ties:
        text = f"Not significantly different (Holm, α = .05): {ranking.tied(most)}"
    reverse = [
        f"{better} > {worse}"
        for better, worse in _significantly_better(comparison, ranking)
        if not ranking.puts_above(better, worse)
    ]
    where = "on the trajectories that both judged, significantly"
    return f"{text}; but {where}: {listed(reverse, most)}" if reverse else text


def _significantly_better(comparison: Comparison, ranking: Ranking) -> Iterator[tuple[str, str]]:
    """Yield the pairs that are told apart, the better judge first."""
    place = (ranking.benchmark, ranking.label, ranking.metric)
    for d in comparison.differences:
        if (d.benchmark, d.label, d.metric) == place and (d.first, d.second) in ranking.apart:
            yield (d.first, d.second) if (d.difference or 0) > 0 else (d.second, d.first)


def ordered_judges(scores: ScoreReport) -> list[str]:
    """Best first where the judges were ranked, else in the scores' order."""
    names = list(dict.fromkeys(c.judge for c in scores.coverage))
    for ranking in scores.comparison.rankings:
        if (ranking.benchmark, ranking.metric) == (OVERALL, "precision"):
            ranked = [judge for judge in ranking.judges if judge in names]
            return [*ranked, *(judge for judge in names if judge not in ranked)]
    return names


def score_rows(scores: ScoreReport, label: LabelName, benchmark: str) -> list[Score]:
    """Select every evaluator's score on one benchmark, agents together."""
    return [
        s
        for s in scores.scores
        if (s.label, s.benchmark, s.agent) == (label, benchmark, ALL_AGENTS)
    ]


LEAST_SHOWN = 0.00005  # dollars, of which four decimals are printed


class RunCost(Record):
    """What a run paid, as its first screen tells it: ``dollars`` for the calls of its judgments,
    None where the price of one is not known, and ``more`` beside them."""

    dollars: float | None
    more: float
    sentence: str


def run_cost(scores: ScoreReport) -> RunCost:
    """Return what the runs of the scores paid."""
    dollars = known_dollars(scores.spending, scores.unattributed_cost)
    return RunCost(
        dollars=dollars, more=scores.unattributed_cost.dollars, sentence=cost_sentence(scores)
    )


def known_dollars(spent: Sequence[JudgeUsage], unattributed: UnattributedCost) -> float | None:
    """Add up what was paid for the calls of judgments; None where the price of one is not known."""
    published = any(not s.calls and is_not_told(s.judge) for s in spent)
    unpriced = sum(s.unpriced - s.cached_unpriced for s in spent)
    return None if published or unpriced else paid_dollars(spent, unattributed.rebate)


def paid_more(unattributed: UnattributedCost) -> str:
    """Say what was paid for what no judgment holds; "" for less than is printed."""
    prices = [_dollars(unattributed.dollars)] if unattributed.dollars >= LEAST_SHOWN else []
    prices += [_unpriced(unattributed.unpriced)] if unattributed.unpriced else []
    if not prices:
        return ""
    for_these = "failed attempts, repeated requests and replies that no judgment holds"
    return f"{' and '.join(prices)} more for {for_these}"


def unattributed_sentence(unattributed: UnattributedCost) -> str:
    """Say how far the run paid more, and less, than the tables of its judgments' calls tell."""
    is_less = unattributed.rebate >= LEAST_SHOWN
    less = f"{_dollars(unattributed.rebate)} less for calls that were cheaper in batches"
    return "; ".join(
        filter(None, [less if is_less else "", presumed(unattributed), paid_more(unattributed)])
    )


def presumed(unattributed: UnattributedCost) -> str:
    """Say what counts for calls of unknown cost; "" where nothing was reserved for them."""
    if unattributed.presumed < LEAST_SHOWN:
        return ""
    return f"{_dollars(unattributed.presumed)} counts towards --max-cost for calls of unknown cost"


def cost_sentence(scores: ScoreReport, seconds: float | None = None) -> str:
    """Say what the judgments' calls cost, what was paid on top, and how long this session of
    the runs took: earlier ones have paid, too."""
    spent, unattributed = scores.spending, scores.unattributed_cost
    published = [s for s in spent if not s.calls and is_not_told(s.judge)]
    if any(s.calls for s in spent):
        text = f"Cost: {paid_for(spent, unattributed.rebate)}, {_calls(spent)}, {_tokens(spent)}"
        if published:
            text += f"; unknown for {count_of(len(published), 'published judge')}"
    elif published:
        text = "Cost: unknown (published verdicts do not tell their calls)"
    elif any(c.statuses.get(Status.PROVIDER_ERROR) for c in scores.coverage):
        text = "Cost: $0 (no call was answered)"
    else:
        text = "Cost: $0 (no model was called)"
    for more in filter(None, (presumed(unattributed), paid_more(unattributed))):
        text += f"; {more}"
    return text if seconds is None else f"{text}; wall time of this session: {seconds:.1f} s"


def is_not_told(judge: str) -> bool:
    """Tell whether others ran the judge and published its verdicts, which do not tell its
    calls."""
    return SUFFIX in judge


def paid_for(spent: Sequence[UsageTotals], rebate: float = 0.0) -> str:
    """Say what was paid for calls, less a ``rebate`` in dollars: those that the cache answered
    cost nothing."""
    dollars = paid_dollars(spent, rebate)
    unpriced = sum(s.unpriced - s.cached_unpriced for s in spent)
    if dollars is None:
        return "unknown"
    return _dollars(dollars) + (f" and {_unpriced(unpriced)}" if unpriced else "")


def paid_dollars(spent: Sequence[UsageTotals], rebate: float = 0.0) -> float | None:
    """Add up what was paid for calls whose cost is known, less a ``rebate``; None if calls were
    paid and the cost of none is known."""
    sent = sum(s.calls - s.cached for s in spent)
    unpriced = sum(s.unpriced - s.cached_unpriced for s in spent)
    if unpriced and unpriced == sent:
        return None
    return sum((s.cost or 0.0) - s.cached_cost for s in spent) - rebate


def _calls(spent: Sequence[JudgeUsage]) -> str:
    """Count the calls, those without usage, and those that the cache answered with what they would
    have cost."""
    text = count_of(sum(s.calls for s in spent), "call")
    if unreported := sum(s.unreported for s in spent):
        text += f" ({unreported:,} without the usage, which the server does not report)"
    if not (cached := sum(s.cached for s in spent)):
        return text
    worth = sum(s.cached_cost for s in spent)
    unpriced = sum(s.cached_unpriced for s in spent)
    of_these = "" if unpriced == cached else f"{unpriced:,} "
    parts = [f"{cached:,} from the cache"]
    parts += [f"worth {_dollars(worth)}"] if worth else []
    parts += [f"{of_these}of unknown cost"] if unpriced else []
    return f"{text} ({', '.join(parts)})"


def _tokens(spent: Sequence[JudgeUsage]) -> str:
    """Count the tokens of the calls whose usage is known."""
    usages = [s.usage for s in spent]
    reported = sum(s.calls - s.unreported for s in spent)
    if not reported:
        return "unknown tokens"
    tokens = f"{sum(u.prompt for u in usages):,} input and {sum(u.output for u in usages):,} output"
    if any(s.unreported for s in spent):
        return f"{tokens} tokens of the other {count_of(reported, 'call')}"
    return f"{tokens} tokens"


def _dollars(value: float) -> str:
    # What was added and taken away again may be a hair less than nothing.
    return f"${max(value, 0.0):.4f}"


def _unpriced(count: int) -> str:
    return f"{count_of(count, 'call')} of unknown cost"


def goal_notes(
    scores: Sequence[Score], goals: TaskGoals, by_goal: Callable[[], Sequence[Score]]
) -> Iterator[str]:
    """Say which task ids of ``scores`` share a goal, with the interval of the first judge's
    precision by task ids and as ``by_goal``, which scores the same again, has it by goals."""
    attempts = iter((lambda: scores, by_goal))

    def measure() -> tuple[str, str, int] | None:
        score = _precision(next(attempts)())
        return None if score is None else (f"{score.judge}: precision", _shown(score), score.tasks)

    if note := goal_note(goals, measure):
        yield note


def _precision(scores: Sequence[Score]) -> Score | None:
    rows = [each for each in scores if not each.baseline and each.agent == ALL_AGENTS]
    whole = [each for each in rows if each.benchmark == OVERALL and each.precision is not None]
    return whole[0] if whole else None


def _shown(score: Score) -> str:
    limits = score.intervals.get("precision")
    ends = f" [{percent(limits[0])}, {percent(limits[1])}]" if limits else ""
    return f"{percent(score.precision)}{ends}"


_ESTIMATES: Columns[EstimatedRate] = {
    "benchmark": lambda r: benchmark_name(r.benchmark),
    "agent": lambda r: agent_name(r.agent),
    "judge": lambda r: r.judge,
    "estimate [95 %]": lambda r: with_limits(r.estimate, r.intervals.get("estimate")),
    "labels alone [95 %]": lambda r: with_limits(r.expert_only, r.intervals.get("expert_only")),
    "judge alone": lambda r: percent(r.judge_only),
    "labelled": lambda r: str(r.labelled),
    "unlabelled": lambda r: str(r.unlabelled),
    "effective labels": lambda r: (
        UNDEFINED if r.effective_labels is None else f"{r.effective_labels:.0f}"
    ),
}


def estimated_rate_tables(scores: ScoreReport) -> list[Table]:
    """Lay out the estimates; no table where every run is labelled, or none."""
    title = "Success rates from verdicts on all runs and labels of some (tasks labelled at random)"
    rates = scores.estimated_rates
    return [table_of(title, _ESTIMATES, rates, names=3)] if rates else []


def without_estimate(scores: ScoreReport) -> list[str]:
    """Say where all agents together have no estimate, and why."""
    missing: dict[tuple[str, str], list[str]] = {}
    for rate in scores.estimated_rates:
        if rate.estimate is None and rate.agent == ALL_AGENTS:
            missing.setdefault((benchmark_name(rate.benchmark), rate.note), []).append(rate.judge)
    return [
        f"Success rates, {place}: no estimate by {', '.join(judges)}: {note}"
        for (place, note), judges in missing.items()
    ]


FEW_POSITIVES = 20

SHOWN = 4  # warnings or names of one kind

FAILED = {
    "negative": "counted as not accepted",
    "exclude": "left out",
    "agentrewardbench": "counted as AgentRewardBench does",
}

"""What is said of failed judgments, by what they count as."""


def notes(scores: ScoreReport, wall_seconds: float | None = None) -> list[str]:
    """Say what is not finished or was left out, where positives are too few, judgments failed or
    comparisons are undefined, what was paid beside the tables' cost, and the wall time."""
    lines = [f"warning: {cut}"] if (cut := unfinished(scores.unfinished)) else []
    lines += [*baseline_sentences(scores), *_few_positives(scores), *scores.remarks]
    for score in scores.scores:
        if score.benchmark == OVERALL and score.agent == ALL_AGENTS:
            lines += _left_out(score, scores)
    lines += [*without_estimate(scores), *_without_interval(scores)]
    if paid := unattributed_sentence(scores.unattributed_cost):
        lines.append(f"cost: {paid}")
    if wall_seconds is not None:
        lines.append(f"wall time of this session: {wall_seconds:.1f} s")
    return [one_line(line) for line in lines]


def warnings_of(scores: ScoreReport, most: int | None = None) -> list[str]:
    """List what weakens the first screen's figures, one line a kind, the gravest first: failed
    judgments, few positives, precision without an interval, what else is to be said, judges on
    different trajectories. Of more than ``most`` names a list holds the first."""
    whole = [s for s in scores.scores if s.benchmark == OVERALL and s.agent == ALL_AGENTS]
    lines = _missing_judgments(scores, whole, SHOWN if most is None else min(most, SHOWN))
    lines += [*_few_overall(scores, whole, most), *_precision_without_interval(whole, most)]
    lines += sorted(scores.remarks, key=lambda line: not line.startswith("warning: "))
    lines += [f"warning: {line}" for line in _different_trajectories(scores)]
    unrewarded = max((s.without_reward for s in whole if s.baseline), default=0)
    if unrewarded:
        runs = count_of(unrewarded, "trajectory")
        lines.append(f"rule-based: {runs} without official reward left out")
    return lines


def _missing_judgments(scores: ScoreReport, whole: Sequence[Score], most: int) -> list[str]:
    """Say in one line what judges left without a prediction, and what that counts as; labels are
    named where they differ in it."""
    missing: dict[str, dict[str, list[str]]] = {}
    labels_of = Counter(s.judge for s in whole if not s.baseline and is_labelled(s))
    failed = {*failed_judges(scores)}  # whose rates are not known
    for s in whole:
        if s.missing and not s.baseline and s.judge not in failed:
            labels = missing.setdefault(s.judge, {}).setdefault(_missing(s, scores), [])
            labels.append(LABEL_TITLES[s.label].lower())
    if not missing:
        return []
    named = [
        " and ".join(
            count + (f" ({', '.join(labels)})" if len(labels) < labels_of[judge] else "")
            for count, labels in counts.items()
        )
        + f" of {judge}"
        for judge, counts in missing.items()
    ]
    if len(named) > most:
        named[most:] = [f"of {count_of(len(named) - most, 'more judge')}"]
    return [f"warning: {', '.join(named)} {FAILED[scores.missing]}"]


def _missing(score: Score, scores: ScoreReport) -> str:
    """Count the labelled trajectories without a prediction: their judgments failed, or ended well
    and left the label open."""
    (judged,) = (
        c
        for c in scores.coverage
        if (c.judge, c.benchmark, c.agent) == (score.judge, score.benchmark, score.agent)
    )
    ok = judged.statuses.get(Status.OK, 0)
    kinds = {"failed": judged.judged > ok, "undecided": judged.verdicts.get(score.label, 0) < ok}
    kind = " or ".join(name for name, some in kinds.items() if some)
    return count_of(score.missing, f"{kind} judgment")


def _few_overall(scores: ScoreReport, whole: Sequence[Score], most: int | None) -> list[str]:
    """Warn once of the labels with too few positives overall, of each the fewest of a judge."""
    few: dict[str, int] = {}
    for s in whole:
        if s.positives < FEW_POSITIVES and not s.baseline and is_labelled(s):
            name = LABEL_TITLES[s.label].lower()
            few[name] = min(few.get(name, s.positives), s.positives)
    if not few:
        return []
    counts = listed([f"{name} {count:,}" for name, count in few.items()], most)
    return [f"warning: few positive labels ({counts}): estimates are unreliable"]


def _precision_without_interval(whole: Sequence[Score], most: int | None) -> list[str]:
    """Warn once of overall rows whose precision has no interval, judges by reason."""
    names: dict[str, list[str]] = {}
    for s in whole:
        if reason := s.no_interval.get("precision"):
            label = "" if s.label == "success" else f" ({LABEL_TITLES[s.label].lower()})"
            names.setdefault(reason, []).append(evaluator_name(s) + label)
    if not names:
        return []
    reasons = "; ".join(
        f"{listed(list(dict.fromkeys(who)), most)}: {reason}" for reason, who in names.items()
    )
    return [f"warning: precision without an interval: {reasons}"]


def is_labelled(score: Score) -> bool:
    """Tell whether an expert's answer stands behind the row, judged or not: where none is known,
    the labels do not hold the question at all."""
    return bool(score.n or score.missing)


def shown_benchmarks(scores: ScoreReport) -> set[str]:
    """One benchmark alone is shown once, not as overall a second time."""
    benchmarks = {coverage.benchmark for coverage in scores.coverage}
    return benchmarks - {OVERALL} if len(benchmarks) == 2 else benchmarks


def _few_positives(scores: ScoreReport) -> list[str]:
    """Warn once per label of the benchmarks and agents with too few positives; judges are named
    where not all were scored on the same trajectories."""
    few: dict[LabelName, dict[str, dict[str, int]]] = {}
    shown = shown_benchmarks(scores)
    for score in scores.scores:
        low = score.positives < FEW_POSITIVES and score.benchmark in shown
        if low and not score.baseline and is_labelled(score):
            place = benchmark_name(score.benchmark)
            place += "" if score.agent == ALL_AGENTS else f" by {score.agent}"
            few.setdefault(score.label, {}).setdefault(score.judge, {})[place] = score.positives
    lines = []
    for label, by_judge in few.items():
        same: dict[tuple[tuple[str, int], ...], list[str]] = {}
        for judge, places in by_judge.items():
            same.setdefault(tuple(places.items()), []).append(judge)
        scored = {s.judge for s in scores.scores if s.label == label and not s.baseline}
        for counts, judges in same.items():
            alike = len(same) == 1 and len(judges) == len(scored)
            names = "" if alike else f" for {', '.join(judges)}"
            lines.append(_few_sentence(LABEL_TITLES[label].lower() + names, counts))
    return lines


def _few_sentence(label: str, places: tuple[tuple[str, int], ...]) -> str:
    if len(places) == 1:
        place, count = places[0]
        few = f"only {count_of(count, 'positive label')}" if count else "no positive label"
        return f"warning: {few} ({label}, {place}); estimates are unreliable"
    counts = ", ".join(f"{place} {count}" for place, count in places)
    return f"warning: few positive labels ({label}): {counts}; estimates are unreliable"


def _without_interval(scores: ScoreReport) -> list[str]:
    """Why metrics, or differences between judges, have no interval."""
    if not any(map(is_labelled, scores.scores)):
        return []
    lines = _reasons(scores, shown_benchmarks(scores))
    if not scores.compared:
        return [*lines, "judges are not compared"]
    return [*lines, *_different_trajectories(scores), *_undefined_differences(scores)]


def _different_trajectories(scores: ScoreReport) -> list[str]:
    """Where the judges' order and their differences are not on the same trajectories."""
    failed = {*failed_judges(scores)}
    whole = score_rows(scores, "success", OVERALL)
    sizes = {s.n for s in whole if not s.baseline and s.judge not in failed}
    compared = {
        d.n
        for d in scores.comparison.differences
        if (d.benchmark, d.label) == (OVERALL, "success") and failed.isdisjoint((d.first, d.second))
    }
    if len(sizes | compared) < 2:
        return []
    return ["judges are scored on different trajectories, differences on common ones"]


def _undefined_differences(scores: ScoreReport) -> list[str]:
    reasons = Counter(d.note for d in scores.comparison.differences if d.note)
    return [
        f"no interval of {count_of(count, 'difference')} between judges: {reason}"
        for reason, count in reasons.items()
    ]


def _reasons(scores: ScoreReport, shown: set[str]) -> list[str]:
    """Which metrics have no interval and why, judges with the same ones together."""
    cells: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for s in scores.scores:
        if s.benchmark not in shown:
            continue
        by = "" if s.agent == ALL_AGENTS else f" by {s.agent}"
        place = f"{LABEL_TITLES[s.label]}, {benchmark_name(s.benchmark)}{by}"
        name = f"rule-based beside {s.judge}" if s.baseline else s.judge
        for reason in dict.fromkeys(s.no_interval.values()):
            names = tuple(METRICS[r].title for r, why in s.no_interval.items() if why == reason)
            cells.setdefault((place, reason, names), []).append(name)
    lines = [
        f"{place}: no interval of {', '.join(names)} for {', '.join(judges)}: {reason}"
        for (place, reason, names), judges in cells.items()
    ]
    return _first(lines, "reasons for no interval", "no_interval")


def _first(lines: list[str], kind: str, column: str) -> list[str]:
    """Keep the first few of many alike; every row of the results holds what they say."""
    if len(lines) <= SHOWN + 1:
        return lines
    rest = len(lines) - SHOWN
    return [*lines[:SHOWN], f"and {rest} more {kind}: see {column} in results.csv"]


def _left_out(score: Score, scores: ScoreReport) -> list[str]:
    """Say what one overall row does not count, or counts by policy."""
    name, where = score.judge, LABEL_TITLES[score.label]
    if score.baseline:
        runs = count_of(score.without_reward, "trajectory")
        sentence = f"{runs} without official reward left out"
        return [f"rule-based beside {name}: {sentence}"] if score.without_reward else []
    lines = []
    if score.missing:
        lines.append(f"{name}, {where}: {_missing(score, scores)} {FAILED[scores.missing]}")
    if score.unsure and is_labelled(score):
        lines.append(f"{name}, {where}: {count_of(score.unsure, 'unsure label')} left out")
    return lines
