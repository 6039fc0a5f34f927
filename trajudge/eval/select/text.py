"""The decision in words: what to do first, then what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trajudge.eval.reporting.sentences import UNDEFINED, benchmark_name, percent, threshold_text
from trajudge.eval.select.decision import CandidateRate, CandidateResult, Decision
from trajudge.eval.select.sentences import (
    headline,
    leading,
    level_percent,
    next_step,
    notes,
    ties,
    transfer,
)
from trajudge.util.tables import aligned, length_of, stacked, widths_of
from trajudge.util.terminal import broken, loosened, one_line, stiff

_HEAD = (
    "judge",
    "threshold",
    "accepted",
    "precision [at least]",
    "recall [at least]",
    "TP/100 rollouts",
    "TP/$",
    "worst benchmark [at least]",
    "verdict",
    "under attack [at least]",
)


def text(decision: Decision, width: int | None = None) -> str:
    """Word everything, as plain text with a newline at the end, in lines of at most ``width``
    columns; without it sentences have 100, and the table what it needs."""
    sentences = [part for part in (_conclusion(decision), transfer(decision)) if part]
    parts = [_wrapped(part, width) for part in sentences]
    columns = len(_HEAD) - (decision.plan.threat is None)
    rows = [[*map(one_line, _row(finding)[:columns])] for finding in decision.findings]
    parts.append("Candidates\n" + "\n".join(_candidates(_HEAD[:columns], rows, width)))
    parts.append(_wrapped([" ".join(_how_to_read(decision))], width))
    if decision.notes:
        parts.append(_wrapped(notes(decision), width))
    return "\n\n".join(parts) + "\n"


def _wrapped(lines: Sequence[str], width: int | None) -> str:
    """Wrap sentences, a number with its unit; indented facts as they are where they fit."""
    made: list[str] = []
    for line in map(one_line, lines):
        if not line.startswith(" "):
            made += broken(stiff(line), width or 100, whole=True)
        elif width is None:
            made.append(line)
        else:
            made += broken(stiff(line, " of "), width, indent="      ")
    return loosened("\n".join(made))


def _candidates(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """Align the candidates, all cells left where there is room for all."""
    sizes = widths_of([head, *rows])
    if width is None or length_of(sizes) <= width:
        return aligned([head, *rows], sizes, len(head))
    return stacked(head, rows, width, names=2)


def _conclusion(decision: Decision) -> list[str]:
    lines, leader = headline(decision), leading(decision)
    if leader is None:
        return [*lines, "None accepted a labelled trajectory, so there is nothing to decide on."]
    lines += [*facts(leader), *next_step(decision)]
    return [*lines, *ties(decision)]


def facts(finding: CandidateResult) -> Iterator[str]:
    """Yield the candidate's rates, one aligned line each, those on each benchmark last."""
    yield f"  precision                            {_said(finding.precision)}"
    if finding.rate != finding.precision:
        failures = finding.rate
        accepted = failures.trials - failures.hits
        most = UNDEFINED if failures.low is None else percent(1 - failures.low)
        shown = f"{accepted:,} of {failures.trials:,}, at most {most} %"
        yield f"  failures accepted                    {shown}"
    yield f"  recall                               {_said(finding.recall)}"
    clean, least = finding.clean_per_rollout, finding.clean_per_rollout_low
    if clean is not None and least is not None:
        shown = f"{100 * clean:.1f}, at least {100 * least:.1f}"
        yield f"  true positives per 100 rollouts      {shown}"
    clean, least = finding.clean_per_dollar, finding.clean_per_dollar_low
    if clean is not None and least is not None:
        yield f"  true positives per dollar            {clean:.3g}, at least {least:.3g}"
    for place in finding.places:
        worst = "  <- worst" if place.benchmark == finding.worst and len(finding.places) > 1 else ""
        yield f"  on {benchmark_name(place.benchmark):<34}{_said(place.rate)}{worst}"


def _row(finding: CandidateResult) -> tuple[str, ...]:
    worst = next((p for p in finding.places if p.benchmark == finding.worst), None)
    place = f"{benchmark_name(worst.benchmark)} {cell(worst.rate)}" if worst else UNDEFINED
    clean, dollars = finding.clean_per_rollout, finding.clean_per_dollar
    return (
        finding.family,
        threshold_text(finding.threshold),
        f"{finding.precision.trials:,}/{finding.labelled:,}",
        cell(finding.precision),
        cell(finding.recall),
        UNDEFINED if clean is None else f"{100 * clean:.1f}",
        UNDEFINED if dollars is None else f"{dollars:.3g}",
        place,
        finding.verdict + (", tied" if finding.tied else ""),
        attacked_cell(finding),
    )


def attacked_cell(finding: CandidateResult) -> str:
    """Show precision under the worst attack with its lower limit, in percent; empty without one."""
    known = finding.under_attack
    if known is None:
        return ""
    low = UNDEFINED if known.low is None else percent(known.low)
    return f"{percent(known.precision)} [{low}]"


def _how_to_read(decision: Decision) -> Iterator[str]:
    plan, findings = decision.plan, decision.findings
    level = findings[0].rate.level
    yield (
        f"{decision.trajectories:,} labelled trajectories, {decision.successes:,} true successes"
        f"{_of_agents(decision)}. What is shown holds for new tasks of this mix of benchmarks, for "
        "these judges as they were configured, and for these agents. "
        "Limits are one-sided, each for its candidate alone, tasks as clusters:"
    )
    yield (
        f"those of the rate under test at {level_percent(1 - level)} %, as the correction has it "
        "(the rates that the test does not reject), "
        f"the others at {level_percent(plan.confidence)} % "
        "(Wilson's on the effective number of trials)."
    )
    for finding in findings:
        if finding.untested:
            names = ", ".join(map(benchmark_name, finding.untested))
            yield f"{finding.name} accepts nothing on {names}: nothing is shown there."


def _of_agents(decision: Decision) -> str:
    agents = sorted(decision.binding.agents) if decision.binding else []
    return f", of {', '.join(agents)}" if agents else ""


def _said(rate: CandidateRate) -> str:
    counted = f"({rate.hits:,} of {rate.trials:,})"
    if rate.estimate is None:
        return f"{UNDEFINED}  {counted}"
    if rate.hits and not rate.low:
        return f"{percent(rate.estimate)} %, too few tasks for a limit  {counted}"
    return f"{percent(rate.estimate)} %, at least {percent(rate.low)} %  {counted}"


def cell(rate: CandidateRate) -> str:
    """Show an estimate with its lower limit, in percent."""
    if rate.estimate is None:
        return UNDEFINED
    low = UNDEFINED if rate.hits and not rate.low else percent(rate.low)
    return f"{percent(rate.estimate)} [{low}]"
