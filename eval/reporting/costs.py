"""Say what a run paid: for the calls of its judgments, and beside them."""

from __future__ import annotations

from collections.abc import Sequence

from trajudge.eval.scoring.records import JudgeUsage, ScoreReport
from trajudge.judges.model import Status
from trajudge.trajectories.util.terminal import count_of

_LEAST_SHOWN = 0.00005  # dollars, of which four decimals are printed


def paid_more(beside: float) -> str:
    """Say what was paid for what no judgment holds; "" for less than is printed."""
    if beside < _LEAST_SHOWN:
        return ""
    return f"${beside:.4f} more for failed attempts and replies that no judgment holds"


def cost_sentence(scores: ScoreReport, seconds: float | None, beside: float = 0.0) -> str:
    """Say what the judgments' calls cost, what was paid ``beside`` them, and how long this
    session of the runs took: earlier ones have paid, too."""
    spent = scores.spending
    if any(s.calls for s in spent):
        text = f"Cost: {_paid(spent)}, {_calls(spent)}, {_tokens(spent)}"
    elif any(c.statuses.get(Status.PROVIDER_ERROR) for c in scores.coverage):
        text = "Cost: $0 (no call was answered)"
    else:
        text = "Cost: $0 (no model was called)"
    if more := paid_more(beside):
        text += f"; {more}"
    return text if seconds is None else f"{text}; wall time of this session: {seconds:.1f} s"


def _paid(spent: Sequence[JudgeUsage]) -> str:
    """Say what the runs paid for their calls: those that the cache answered cost nothing."""
    known = [s.cost - s.cached_cost for s in spent if s.cost is not None]
    unpriced = sum(s.unpriced for s in spent)
    price = f"${sum(known):.4f}" if known else "unknown"
    more = f" and {count_of(unpriced, 'call')} of unknown price"
    return price + (more if known and unpriced else "")


def _calls(spent: Sequence[JudgeUsage]) -> str:
    """Count the calls, and those that the cache answered with what they would have cost."""
    text = count_of(sum(s.calls for s in spent), "call")
    if not (cached := sum(s.cached for s in spent)):
        return text
    worth = sum(s.cached_cost for s in spent)
    return f"{text} ({cached:,} from the cache" + (f", worth ${worth:.4f})" if worth else ")")


def _tokens(spent: Sequence[JudgeUsage]) -> str:
    usages = [s.usage for s in spent]
    tokens_in = sum(u.input + u.cache_read + u.cache_write for u in usages)
    return f"{tokens_in:,} input and {sum(u.output for u in usages):,} output tokens"
