"""How figures are written in tables: percent with one digit, precision with its interval."""

from __future__ import annotations

from annotations.agentrewardbench import BENCHMARKS
from eval.scoring import OVERALL, Score

UNDEFINED = "–"


def benchmark_name(benchmark: str) -> str:
    """As the paper's tables name it."""
    return "Overall" if benchmark == OVERALL else BENCHMARKS.get(benchmark, benchmark)


def percent(rate: float | None) -> str:
    return UNDEFINED if rate is None else f"{100 * rate:.1f}"


def precision_cell(found: Score) -> str:
    """Without an accepted trajectory there is neither precision nor interval."""
    if found.precision_low is None or found.precision_high is None:
        return UNDEFINED
    limits = f"[{100 * found.precision_low:.1f}, {100 * found.precision_high:.1f}]"
    return f"{percent(found.precision)} {limits}"
