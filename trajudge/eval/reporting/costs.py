"""Say what a run paid: for the calls of its judgments, and beside them."""

from __future__ import annotations

from collections.abc import Sequence

from trajudge.annotations.published import SUFFIX
from trajudge.eval.scoring.records import JudgeUsage, PaidBeside, ScoreReport, UsageTotals
from trajudge.judges.model import Status
from trajudge.trajectories.model import Record
from trajudge.trajectories.util.terminal import count_of

LEAST_SHOWN = 0.00005  # dollars, of which four decimals are printed


class RunCost(Record):
    """What a run paid, as its first screen tells it: ``dollars`` for the calls of its judgments,
    None where the price of one is not known, and ``more`` beside them."""

    dollars: float | None
    more: float
    sentence: str


def run_cost(scores: ScoreReport) -> RunCost:
    """Return what the runs of the scores paid."""
    dollars = known_dollars(scores.spending, scores.beside)
    return RunCost(dollars=dollars, more=scores.beside.dollars, sentence=cost_sentence(scores))


def known_dollars(spent: Sequence[JudgeUsage], beside: PaidBeside) -> float | None:
    """Add up what was paid for the calls of judgments; None where the price of one is not known."""
    published = any(not s.calls and is_not_told(s.judge) for s in spent)
    unpriced = sum(s.unpriced - s.cached_unpriced for s in spent)
    return None if published or unpriced else paid_dollars(spent, beside.rebate)


def paid_more(beside: PaidBeside) -> str:
    """Say what was paid for what no judgment holds; "" for less than is printed."""
    prices = [_dollars(beside.dollars)] if beside.dollars >= LEAST_SHOWN else []
    prices += [_unpriced(beside.unpriced)] if beside.unpriced else []
    if not prices:
        return ""
    for_these = "failed attempts, repeated requests and replies that no judgment holds"
    return f"{' and '.join(prices)} more for {for_these}"


def beside_sentence(beside: PaidBeside) -> str:
    """Say how far the run paid more, and less, than the tables of its judgments' calls tell."""
    is_less = beside.rebate >= LEAST_SHOWN
    less = f"{_dollars(beside.rebate)} less for calls that were cheaper in batches"
    return "; ".join(filter(None, [less if is_less else "", presumed(beside), paid_more(beside)]))


def presumed(beside: PaidBeside) -> str:
    """Say what counts for calls of unknown cost; "" where nothing was reserved for them."""
    if beside.presumed < LEAST_SHOWN:
        return ""
    return f"{_dollars(beside.presumed)} counts towards --max-cost for calls of unknown cost"


def cost_sentence(scores: ScoreReport, seconds: float | None = None) -> str:
    """Say what the judgments' calls cost, what was paid beside them, and how long this session of
    the runs took: earlier ones have paid, too."""
    spent, beside = scores.spending, scores.beside
    published = [s for s in spent if not s.calls and is_not_told(s.judge)]
    if any(s.calls for s in spent):
        text = f"Cost: {paid_for(spent, beside.rebate)}, {_calls(spent)}, {_tokens(spent)}"
        if published:
            text += f"; unknown for {count_of(len(published), 'published judge')}"
    elif published:
        text = "Cost: unknown (published verdicts do not tell their calls)"
    elif any(c.statuses.get(Status.PROVIDER_ERROR) for c in scores.coverage):
        text = "Cost: $0 (no call was answered)"
    else:
        text = "Cost: $0 (no model was called)"
    for more in filter(None, (presumed(beside), paid_more(beside))):
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
    told = sum(s.calls - s.unreported for s in spent)
    if not told:
        return "unknown tokens"
    tokens = f"{sum(u.prompt for u in usages):,} input and {sum(u.output for u in usages):,} output"
    if any(s.unreported for s in spent):
        return f"{tokens} tokens of the other {count_of(told, 'call')}"
    return f"{tokens} tokens"


def _dollars(value: float) -> str:
    # What was added and taken away again may be a hair less than nothing.
    return f"${max(value, 0.0):.4f}"


def _unpriced(count: int) -> str:
    return f"{count_of(count, 'call')} of unknown cost"
