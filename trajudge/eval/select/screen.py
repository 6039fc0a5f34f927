"""The first screen of ``trajudge select``: the decision, the leading candidates, what to mind."""

from __future__ import annotations

from collections.abc import Sequence

from trajudge.eval.reporting.sentences import threshold_text
from trajudge.eval.select.decision import CandidateResult, Decision
from trajudge.eval.select.sentences import headline, leading, next_step, notes, transfer
from trajudge.eval.select.text import attacked_cell, cell, facts
from trajudge.util.tables import Table, first_screen

_HEAD = ("candidate", "verdict", "threshold", "accepted", "precision [≥]", "recall [≥]")
_ATTACKED = "under attack [≥]"
_FACTS = 9  # lines: the rates overall, then the benchmarks that fit
_ARROW, _WORST = "  <- worst", ", worst"


def screen(decision: Decision, *, rest: str, width: int | None = None) -> str:
    """Lay out the decision in at most 40 lines of ``width`` columns, with a newline at the end.

    The chosen candidate, or the nearest, stands first in the table; then those tied with it, those
    that qualify, and the others in the plan's order. ``rest`` says where everything else stands.
    """
    leader = leading(decision)
    above = headline(decision)
    if leader is None:
        above.append("None accepted a labelled trajectory, so there is nothing to decide on.")
    rates = _rates(leader) if leader else []
    order = sorted(decision.findings, key=lambda one: _rank(one, leader))
    marked = sorted(notes(decision), key=lambda note: not note.startswith("warning: "))
    table = _attacked_table(order) if decision.plan.threat else _table(order)
    return first_screen(
        [*above, *rates],
        [table],
        [*next_step(decision), *transfer(decision)[:1]],
        marked,
        rest=rest,
        width=width,
    )


def _table(order: Sequence[CandidateResult]) -> Table:
    return Table("", _HEAD, [_row(one) for one in order])


def _attacked_table(order: Sequence[CandidateResult]) -> Table:
    """Leave out thresholds, of which verdicts have none."""
    name, verdict, _, *rest = _HEAD
    rows = []
    for one in order:
        candidate, decided, _, *rates = _row(one)
        rows.append((candidate, decided, *rates, attacked_cell(one)))
    return Table("", (name, verdict, *rest, _ATTACKED), rows)


def _rank(one: CandidateResult, leader: CandidateResult | None) -> tuple[bool, bool, bool]:
    return (one is not leader, not one.tied, one.verdict != "qualifies")


def _rates(finding: CandidateResult) -> list[str]:
    """Return the rates that fit; of many benchmarks the worst is among those kept."""
    lines = [_narrower(line) for line in facts(finding)]
    if len(lines) <= _FACTS:
        return lines
    overall = len(lines) - len(finding.places)
    places = sorted(lines[overall:], key=lambda line: _WORST not in line)
    kept = [*lines[:overall], *places[: _FACTS - overall - 1]]
    return [*kept, f"  and {len(lines) - len(kept)} more benchmarks: --full"]


def _narrower(line: str) -> str:
    """Name the worst benchmark as such before its rate, so that the line fits in 80 columns."""
    name, value = line[:39].rstrip(), line[39:]
    if value.endswith(_ARROW):
        name, value = name + _WORST, value.removesuffix(_ARROW)
    return f"{name:<34}{value}"


def _row(one: CandidateResult) -> tuple[str, ...]:
    return (
        one.family,
        one.verdict + (", tied" if one.tied else ""),
        threshold_text(one.threshold),
        f"{one.precision.trials:,}/{one.labelled:,}",
        cell(one.precision),
        cell(one.recall),
    )
