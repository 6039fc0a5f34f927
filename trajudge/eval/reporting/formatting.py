"""How figures are written in tables: percent with one digit, precision with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_DOWN, Context, Decimal

from trajudge.annotations.agentrewardbench import BENCHMARKS
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    OVERALL,
    RULE_BASED,
    Limits,
    Rate,
    Score,
    ScoreRate,
)

UNDEFINED = "–"
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


def rate_cell(score: Score, rate: Rate | ScoreRate) -> str:
    """Write a rate with its interval, where it has one, in percent."""
    return with_limits(getattr(score, rate), score.intervals.get(rate))


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


def coefficient_cell(score: Score, rate: Rate | ScoreRate) -> str:
    """Write a coefficient, which is no share, with its interval."""
    value, limits = getattr(score, rate), score.intervals.get(rate)
    if value is None:
        return UNDEFINED
    return f"{value:z.2f}" + (f" [{limits[0]:z.2f}, {limits[1]:z.2f}]" if limits else "")


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
