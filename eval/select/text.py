"""The decision in words: what to do first, then what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill

from trajudge.eval.reporting.formatting import UNDEFINED, benchmark_name, percent
from trajudge.eval.select.decision import CandidateRate, CandidateResult, Decision
from trajudge.eval.select.measures.selection_data import required_rate
from trajudge.eval.select.measures.transport import Transport
from trajudge.eval.select.measures.under_attack import THREATS
from trajudge.eval.select.plan import SelectionPlan
from trajudge.trajectories.util.terminal import count_of

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
_CORRECTIONS = {
    "fixed-sequence": "fixed-sequence Learn-then-Test",
    "max-t": "a max-T bootstrap of whole tasks",
}


def text(decision: Decision) -> str:
    """Word everything, as plain text with a newline at the end."""
    parts = [_wrapped(part) for part in (_conclusion(decision), transfer(decision)) if part]
    columns = len(_HEAD) - (decision.plan.threat is None)
    rows = [_row(finding)[:columns] for finding in decision.findings]
    parts.append("Candidates\n" + "\n".join(_aligned([_HEAD[:columns], *rows])))
    parts.append(_wrapped([" ".join(_how_to_read(decision))]))
    if decision.notes:
        parts.append(_wrapped(notes(decision)))
    return "\n\n".join(parts) + "\n"


def notes(decision: Decision) -> list[str]:
    """Return the warnings and notes, each marked as what it is, in the decision's order."""
    return [note if note.startswith("warning: ") else f"note: {note}" for note in decision.notes]


def _wrapped(lines: Sequence[str]) -> str:
    """Wrap sentences within 100 columns, a number with its unit; indented facts as they are."""
    return "\n".join(
        line
        if line.startswith(" ")
        else fill(line.replace(" %", "\0%"), 100, break_long_words=False).replace("\0", " ")
        for line in lines
    )


def _conclusion(decision: Decision) -> list[str]:
    lines, leader = headline(decision), leading(decision)
    if leader is None:
        return [*lines, "None accepted a labelled trajectory, so there is nothing to decide on."]
    lines += [*facts(leader), *next_step(decision)]
    return [*lines, *_ties(decision)]


def leading(decision: Decision) -> CandidateResult | None:
    """Return the candidate chosen, else the one that came nearest, None if none accepts."""
    at = decision.nearest if decision.chosen is None else decision.chosen
    return None if at is None else decision.findings[at]


def headline(decision: Decision) -> list[str]:
    """Say which candidate was chosen for which target, or that none was."""
    plan, leader = decision.plan, leading(decision)
    if decision.chosen is not None and leader is not None:
        return [
            f"Decision: filter with {leader.name}.",
            f"It meets the target, {_target(plan)}, {_assurance(plan)}.",
            *under_attack(plan, leader),
        ]
    lines = [
        "Decision: no judge qualifies.",
        f"None was shown to meet the target, {_target(plan)}, {_assurance(plan)}.",
    ]
    if leader is None:
        return lines
    return [*lines, f"Best that failed: {leader.name}.", *under_attack(plan, leader)]


def under_attack(plan: SelectionPlan, finding: CandidateResult) -> Iterator[str]:
    """Say what the plan's threat leaves of the candidate's precision."""
    known = finding.under_attack
    if plan.threat is None or known is None:
        return
    low = "no limit" if known.low is None else f"at least {percent(known.low)} %"
    failed = known.low is None or known.low < plan.target.rate
    yield (
        f"Under the worst of {known.attacks} attacks by the {THREATS[plan.threat]} "
        f"({known.attack}) its precision is {percent(known.precision)} %, {low}"
        f"{': the target is not met there' if failed else ''}."
    )


def next_step(decision: Decision) -> list[str]:
    """Say what else was shown of the chosen candidate, or what the nearest one lacks."""
    leader = leading(decision)
    if leader is None:
        return []
    say = _missing if decision.chosen is None else _other_scope
    return list(say(decision.plan, leader))


def _target(plan: SelectionPlan) -> str:
    if plan.target.kind == "precision":
        criterion = f"at least {percent(plan.target.rate)} % of what it accepts are true successes"
    else:
        criterion = f"it accepts at most {percent(plan.target.rate)} % of the failures"
    return criterion + (" on every benchmark" if plan.scope == "every-benchmark" else "")


def _assurance(plan: SelectionPlan) -> str:
    return (
        f"with {_level(plan.confidence)} % confidence, corrected for {counted(plan)} "
        f"({_CORRECTIONS[plan.correction]})"
    )


def counted(plan: SelectionPlan) -> str:
    """Say how many candidates a plan holds."""
    candidates = count_of(len(plan.candidates), "candidate")
    return f"{candidates} in {count_of(len(plan.families), 'family')}"


def facts(finding: CandidateResult) -> Iterator[str]:
    """Yield the candidate's rates, one aligned line each, those on each benchmark last."""
    yield f"  precision                            {_said(finding.precision)}"
    if finding.rate != finding.precision:
        failures = finding.rate
        accepted = failures.trials - failures.hits
        most = UNDEFINED if failures.low is None else percent(1 - failures.low)
        shown = f"{accepted} of {failures.trials}, at most {most} %"
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


def _other_scope(plan: SelectionPlan, finding: CandidateResult) -> Iterator[str]:
    """Say what was shown beyond, or short of, the scope that the plan asked for."""
    if plan.scope == "every-benchmark":
        return
    if finding.qualifies_everywhere:
        yield "The target is met on every benchmark tested, too, with the same confidence."
    else:
        yield (
            "Overall means over this mix of benchmarks: that the target is met on each of them "
            "was not shown."
        )


def _missing(plan: SelectionPlan, finding: CandidateResult) -> Iterator[str]:
    rate, accepted = finding.rate, plan.target.kind == "precision"
    if finding.verdict == "below the target":
        yield "It was shown to miss the target: more labels would not help."
    elif finding.more_labels is not None:
        needed = "accepted trajectories" if accepted else "failed trajectories"
        meets = (rate.estimate or 0.0) > required_rate(plan.target)
        shown = f"show that it {'meets' if meets else 'misses'} the target"
        rates = f"the rate truly {percent(rate.estimate)} %"
        if plan.scope == "every-benchmark":
            shown, rates = "decide it", "the rates truly those seen"
            needed += " on the benchmarks that are open"
        elif accepted and finding.accepted_share:
            needed += f" (about {finding.more_labels / finding.accepted_share:.0f} rollouts)"
        yield (
            f"About {finding.more_labels} more labels of {needed} would {shown} with probability "
            f"0.8, were {rates}."
        )
    elif finding.p_value <= rate.level and plan.scope == "overall":
        yield (
            "It was not tested, for a stricter threshold of the same judge failed first: name "
            "fewer thresholds in another plan, on other labels."
        )
    else:
        yield (
            "No reasonable number of labels would decide it: the rate is too close to the target, "
            "or nothing is accepted on a benchmark."
        )


def _ties(decision: Decision) -> Iterator[str]:
    tied = [finding.name for finding in decision.findings if finding.tied]
    compared = decision.compared.replace("clean trajectories", "true positives")
    compared = "the rate under test" if decision.compared == "rate" else compared
    if tied:
        yield f"Tied with it, not distinguishable in {compared}: {', '.join(tied)}."
    elif len(decision.findings) > 1 and decision.chosen is not None:
        yield f"No other candidate that qualifies is tied with it in {compared}."


def transfer(decision: Decision) -> list[str]:
    """Say whether the decision holds on another benchmark, and on what that rests."""
    transport = decision.transport
    if transport is None:
        return []
    return list(_transport(transport, decision.chosen is not None))


def _transport(transport: Transport, chosen: bool) -> Iterator[str]:
    if transport.allowed:
        yield f"Transferable to another benchmark: {transport.reason}."
        if chosen and transport.least_success_rate is not None:
            yield (
                f"The target holds there only where at least "
                f"{percent(transport.least_success_rate)} % of the rollouts succeed: trajudge "
                "accept leaves out benchmarks on which the judge's verdicts do not show as much."
            )
    else:
        yield f"Not transferable to another benchmark: {transport.reason}."
        rates = transport.false_positive_rate.rates
        each = ", ".join(f"{benchmark_name(name)} {k}/{n}" for name, (k, n) in rates.items())
        yield f"Failures accepted: {each or 'none known'}."
    if transport.accepted_to_label is not None:
        yield (
            f"Label {transport.accepted_to_label} accepted trajectories on the new benchmark to "
            "re-validate."
        )


def _row(finding: CandidateResult) -> tuple[str, ...]:
    worst = next((p for p in finding.places if p.benchmark == finding.worst), None)
    place = f"{benchmark_name(worst.benchmark)} {cell(worst.rate)}" if worst else UNDEFINED
    clean, dollars = finding.clean_per_rollout, finding.clean_per_dollar
    return (
        finding.family,
        f"{finding.threshold:.4g}",
        f"{finding.precision.trials}/{finding.labelled}",
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
        f"{decision.trajectories} labelled trajectories, {decision.successes} true successes"
        f"{_of_agents(decision)}. What is shown holds for new tasks of this mix of benchmarks, for "
        "these judges as they were configured, and for these agents. "
        "Limits are one-sided, each for its candidate alone, tasks as clusters:"
    )
    yield (
        f"those of the rate under test at {_level(1 - level)} %, as the correction has it (the "
        "rates that the test does not reject), "
        f"the others at {_level(plan.confidence)} % (Wilson's on the effective number of trials)."
    )
    for finding in findings:
        if finding.untested:
            names = ", ".join(map(benchmark_name, finding.untested))
            yield f"{finding.name} accepts nothing on {names}: nothing is shown there."


def _of_agents(decision: Decision) -> str:
    agents = sorted(decision.binding.agents) if decision.binding else []
    return f", of {', '.join(agents)}" if agents else ""


def _said(rate: CandidateRate) -> str:
    counted = f"({rate.hits} of {rate.trials})"
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


def _level(confidence: float) -> str:
    return f"{100 * confidence:.4g}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
