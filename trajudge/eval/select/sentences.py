"""What a decision says, sentence by sentence: what to do first, what was shown, what to mind."""

from __future__ import annotations

from collections.abc import Iterator

from trajudge.eval.reporting.sentences import benchmark_name, percent
from trajudge.eval.select.decision import CandidateResult, Decision
from trajudge.eval.select.measures.selection_data import required_rate
from trajudge.eval.select.measures.transport import Transport
from trajudge.eval.select.measures.under_attack import THREATS
from trajudge.eval.select.plan import SelectionPlan
from trajudge.util.terminal import count_of, listed

_CORRECTIONS = {
    "fixed-sequence": "fixed-sequence Learn-then-Test",
    "max-t": "a max-T bootstrap of whole tasks",
}
_OPEN = ("undecided", "too few")
_NAMED = 4  # candidates in a sentence


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
    best = "that is undecided" if leader.verdict in _OPEN else "that failed"
    return [*lines, f"Best {best}: {leader.name}.", *under_attack(plan, leader)]


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
    if decision.chosen is not None:
        return list(_other_scope(decision.plan, leader))
    return [*_missing(decision.plan, leader), *_left_open(decision, leader)]


def _left_open(decision: Decision, leader: CandidateResult) -> Iterator[str]:
    """Name what more labels may decide, where they would not help the one that came nearest."""
    names = [one.name for one in decision.findings if one.verdict in _OPEN and one.rate.trials]
    if leader.verdict not in _OPEN and names:
        yield f"Undecided, with too few labels to qualify: {listed(names, _NAMED)}."


def _target(plan: SelectionPlan) -> str:
    if plan.target.kind == "precision":
        criterion = f"at least {percent(plan.target.rate)} % of what it accepts are true successes"
    else:
        criterion = f"it accepts at most {percent(plan.target.rate)} % of the failures"
    return criterion + (" on every benchmark" if plan.scope == "every-benchmark" else "")


def _assurance(plan: SelectionPlan) -> str:
    return (
        f"with {level_percent(plan.confidence)} % confidence, corrected for {counted(plan)} "
        f"({_CORRECTIONS[plan.correction]})"
    )


def counted(plan: SelectionPlan) -> str:
    """Say how many candidates a plan holds."""
    candidates = count_of(len(plan.candidates), "candidate")
    return f"{candidates} in {count_of(len(plan.families), 'family')}"


def level_percent(confidence: float) -> str:
    return f"{100 * confidence:.4g}"


def _other_scope(plan: SelectionPlan, finding: CandidateResult) -> Iterator[str]:
    """Say what was shown beyond, or short of, the scope that the plan asked for."""
    if plan.scope == "every-benchmark":
        return
    if finding.qualifies_everywhere:
        yield "The target is met on every benchmark tested, too, with the same confidence."
    else:
        yield (
            "The target is met over this mix of benchmarks; on each of them separately this was "
            "not shown."
        )


def _missing(plan: SelectionPlan, finding: CandidateResult) -> Iterator[str]:
    rate, accepted = finding.rate, plan.target.kind == "precision"
    if finding.verdict == "below the target":
        yield "It was shown to miss the target: more labels would not help."
    elif finding.more_labels == 0:
        yield (
            "The labels are enough in number, but of too few tasks or too uneven among them: label "
            "trajectories of other tasks."
        )
    elif finding.more_labels is not None:
        needed = "accepted trajectories" if accepted else "failed trajectories"
        meets = (rate.estimate or 0.0) > required_rate(plan.target)
        shown = f"show that it {'meets' if meets else 'misses'} the target"
        rates = f"the rate truly {percent(rate.estimate)} %"
        if plan.scope == "every-benchmark":
            shown, rates = "decide it", "the rates truly those seen"
            needed += " on the benchmarks that are open"
        elif accepted and finding.accepted_share:
            needed += f" (about {finding.more_labels / finding.accepted_share:,.0f} rollouts)"
        yield (
            f"About {finding.more_labels:,} more labels of {needed} would {shown} with probability "
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


def ties(decision: Decision) -> Iterator[str]:
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
        each = ", ".join(f"{benchmark_name(name)} {k:,}/{n:,}" for name, (k, n) in rates.items())
        yield f"Failures accepted: {each or 'none known'}."
    if transport.accepted_to_label is not None:
        yield (
            f"Label {transport.accepted_to_label:,} accepted trajectories on the new benchmark to "
            "re-validate."
        )


def notes(decision: Decision) -> list[str]:
    """Return the warnings and notes, each marked as what it is, in the decision's order."""
    return [note if note.startswith("warning: ") else f"note: {note}" for note in decision.notes]
