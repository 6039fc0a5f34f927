"""A decision in words, on one screen, and as a plot: what to do, what was shown, what to mind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from trajudge.eval.reporting.sentences import UNDEFINED, benchmark_name, percent, threshold_text
from trajudge.eval.select.decision import (
    JSON_FILE,
    CandidateRate,
    CandidateResult,
    Decision,
    Transport,
)
from trajudge.eval.select.evidence import THREATS, required_rate
from trajudge.eval.select.plan import FILE, SelectionPlan
from trajudge.util.errors import MissingExtra, UserError
from trajudge.util.tables import (
    Table,
    aligned,
    all_folded,
    first_screen,
    length_of,
    screen_width,
    stacked,
    widths_of,
)
from trajudge.util.terminal import broken, count_of, listed, loosened, one_line, stiff

TEXT_FILE = "decision.txt"
TEXT_WIDTH = 110
PLOT_SUFFIXES = (".png", ".svg", ".pdf")

_OPEN = ("undecided", "too few")
_NAMED = 4  # candidates in a sentence
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
_SCREEN_HEAD = ("candidate", "verdict", "threshold", "accepted", "precision [≥]", "recall [≥]")
_ATTACKED = "under attack [≥]"
_ROWS, _CANDIDATE_ROWS = 10, 5  # of the screen: candidates, then benchmarks
_WIDE = 0.6  # a limit that is further from its rate says nothing
_ARROW = "  <- worst"


def printed(decision: Decision, folder: Path, *, as_json: bool, full: bool) -> str:
    """Write what the command prints: one file of ``folder``, that for people folded to the screen,
    or the first screen."""
    if as_json:
        return decision.to_json()
    written = f"written to {folder}: {FILE}, {JSON_FILE}, {TEXT_FILE}"
    if full:
        return "\n".join([text(decision, screen_width()), *all_folded([written])]) + "\n"
    return screen(decision, rest=f"All candidates and how to read them: --full; {written}")


def screen(decision: Decision, *, rest: str, width: int | None = None) -> str:
    """Lay out the decision in at most 40 lines of ``width`` columns, with a newline at the end.

    The finding stands first, in a sentence; then the chosen candidate, or the nearest, with those
    tied with it, those that qualify, and the others in the plan's order; then its rates by
    benchmark: ten rows in all. ``rest`` says where everything else stands.
    """
    leader = decision.leader
    order = sorted(
        decision.findings,
        key=lambda one: (one is not leader, not one.tied, one.verdict != "qualifies"),
    )
    folded: list[str] = []
    if len(order) > _CANDIDATE_ROWS:
        folded.append(f"and {count_of(len(order) - _CANDIDATE_ROWS, 'more candidate')}: --full")
    name, verdict, threshold, *more = _SCREEN_HEAD
    attacked = decision.plan.threat is not None  # verdicts have no thresholds
    head = (name, verdict, *more, _ATTACKED) if attacked else (name, verdict, threshold, *more)
    rows = [_screen_row(one, attacked) for one in order[:_CANDIDATE_ROWS]]
    tables = [Table("", head, rows)]
    if leader is not None and len(leader.by_benchmark) > 1:
        shown, hidden = _benchmark_rows(leader, _ROWS - len(rows))
        if shown:
            title = "precision" if decision.plan.target.kind == "precision" else "failures rejected"
            names = (f"{leader.name}, on", "labelled", f"{title} [≥]")
            tables.append(Table("", names, shown, names=1))
        folded += hidden
    return first_screen(
        _finding(decision),
        tables,
        [*folded, *_under_attack(decision.plan, leader), *_transfer(decision)[:1]],
        sorted(_notes(decision), key=lambda note: not note.startswith("warning: ")),
        rest=rest,
        width=width,
    )


def _benchmark_rows(finding: CandidateResult, most: int) -> tuple[list[tuple[str, ...]], list[str]]:
    """Return a row for each benchmark whose limit is within 60 points of its rate, at most
    ``most``, the lowest first; and a line on the others."""
    clear = [part for part in finding.by_benchmark if not _says_little(part.rate)]
    clear.sort(key=lambda part: (part.rate.low or 0.0, part.benchmark))
    rows: list[tuple[str, ...]] = [
        (benchmark_name(part.benchmark), f"{part.labelled:,}", _cell(part.rate)) for part in clear
    ]
    lines = []
    if len(rows) > most:
        lines.append(f"and {count_of(len(rows) - most, 'more benchmark')}: --full")
    if few := len(finding.by_benchmark) - len(clear):
        lines.append(f"and {count_of(few, 'benchmark')} with too few labels to say: --full")
    return rows[:most], lines


def _says_little(rate: CandidateRate) -> bool:
    if rate.estimate is None or rate.low is None or (rate.hits and not rate.low):
        return True
    return rate.estimate - rate.low > _WIDE


def _finding(decision: Decision) -> list[str]:
    """Say what to do, with the figures that a reader acts on, and how sure that is."""
    plan, leader = decision.plan, decision.leader
    if leader is None:
        lines = [
            "No judge can be chosen: none of the candidates accepted a labelled run, so there is "
            "nothing to decide on."
        ]
    elif decision.chosen is not None:
        met = "met on every benchmark" if plan.scope == "every-benchmark" else "met"
        lines = [
            f"Filter with {leader.name}: {_acts(plan, leader)}; the target, {goal(plan)}, is {met}."
        ]
        recall = leader.recall
        if recall.estimate is not None:
            lines.append(
                f"It keeps {recall.hits:,} of the {recall.trials:,} true successes "
                f"({percent(recall.estimate)} %)."
            )
        if plan.scope == "overall" and len(leader.by_benchmark) > 1:
            lines += _other_scope(plan, leader)
    else:
        lines = [
            f"No judge is shown to meet the target: {_target(plan)}. The nearest is "
            f"{leader.name}: {_acts(plan, leader)}.",
            *_advice(decision),
        ]
    return [*lines, f"Confidence {_level(plan.confidence)} %, corrected for {counted(plan)}."]


def _acts(plan: SelectionPlan, finding: CandidateResult) -> str:
    """Say in words what the candidate shows of the rate that the target bounds."""
    rate = finding.rate
    if plan.target.kind == "precision":
        if rate.estimate is None:
            return "it accepts none of the labelled runs"
        least = f", at least {percent(rate.low)} % of new ones" if rate.low else ""
        return (
            f"{rate.hits:,} of the {rate.trials:,} runs that it accepts are true successes "
            f"({percent(rate.estimate)} %{'' if least else _interval(finding, 'precision')}){least}"
        )
    if rate.estimate is None:
        return "no labelled run failed"
    most = f", at most {percent(1 - rate.low)} % of new ones" if rate.low else ""
    return (
        f"it accepts {rate.trials - rate.hits:,} of the {rate.trials:,} failed runs "
        f"({percent(1 - rate.estimate)} %{'' if most else _interval(finding, 'failures')}){most}"
    )


def _interval(finding: CandidateResult, kind: str) -> str:
    """Show the interval that scores have of the rate, for a rate of which the test shows no
    limit; "" where it has none either."""
    if finding.interval is None:
        return ""
    low, high = finding.interval
    low, high = (low, high) if kind == "precision" else (1 - high, 1 - low)
    return f"; 95 % interval {percent(low)} to {percent(high)}"


def _advice(decision: Decision) -> Iterator[str]:
    """Say how many labels would decide, and which target these labels meet."""
    plan, leader = decision.plan, decision.leader
    if leader is not None:
        yield from _missing(plan, leader)
        yield from _left_open(decision, leader)
    if plan.threat is not None:
        return
    held = decision.holding_target
    if held is None:
        yield "No weaker target would hold on these labels."
        return
    most = "" if plan.target.kind == "precision" else "at most "
    yield (
        f"With these labels a target of {most}{percent(held.rate)} % would hold, with "
        f"{decision.findings[held.candidate].name}."
    )


def goal(plan: SelectionPlan) -> str:
    """Return the target's rate in words."""
    bound = "at least" if plan.target.kind == "precision" else "at most"
    return f"{bound} {percent(plan.target.rate)} %"


def _screen_row(one: CandidateResult, attacked: bool) -> tuple[str, ...]:
    start = (one.family, one.verdict + (", tied" if one.tied else ""))
    rates = (f"{one.precision.trials:,}/{one.labelled:,}", _cell(one.precision), _cell(one.recall))
    if attacked:
        return (*start, *rates, _attacked_cell(one))
    return (*start, threshold_text(one.threshold), *rates)


def text(decision: Decision, width: int = TEXT_WIDTH) -> str:
    """Word everything, as plain text with a newline at the end, in lines of at most ``width``
    columns."""
    conclusion = _headline(decision)
    if decision.leader:
        conclusion += [*_facts(decision.leader), *_next_step(decision), *_ties(decision)]
    sentences = [part for part in (conclusion, _transfer(decision)) if part]
    parts = [_wrapped(part, width) for part in sentences]
    columns = len(_HEAD) - (decision.plan.threat is None)
    head = _HEAD[:columns]
    rows = [[*map(one_line, _row(finding)[:columns])] for finding in decision.findings]
    sizes = widths_of([head, *rows])
    fits = length_of(sizes) <= width
    lines = aligned([head, *rows], sizes, columns) if fits else stacked(head, rows, width, names=2)
    parts.append("Candidates\n" + "\n".join(lines))
    parts.append(_wrapped([" ".join(_how_to_read(decision))], width))
    if decision.notes:
        parts.append(_wrapped(_notes(decision), width))
    return "\n\n".join(parts) + "\n"


def _wrapped(lines: Sequence[str], width: int) -> str:
    """Wrap sentences, a number with its unit; indented facts as they are where they fit."""
    made: list[str] = []
    for line in map(one_line, lines):
        if line.startswith(" "):
            made += broken(stiff(line, " of "), width, indent="      ")
        else:
            made += broken(stiff(line), width, whole=True)
    return loosened("\n".join(made))


def _facts(finding: CandidateResult) -> Iterator[str]:
    """Yield the candidate's rates, one aligned line each, those on each benchmark last."""
    yield f"  precision                            {_rate_text(finding.precision)}"
    if finding.rate != finding.precision:
        failures = finding.rate
        accepted = failures.trials - failures.hits
        most = UNDEFINED if failures.low is None else percent(1 - failures.low)
        shown = f"{accepted:,} of {failures.trials:,}, at most {most} %"
        yield f"  failures accepted                    {shown}"
    yield f"  recall                               {_rate_text(finding.recall)}"
    clean, least = finding.clean_per_rollout, finding.clean_per_rollout_low
    if clean is not None and least is not None:
        shown = f"{100 * clean:.1f}, at least {100 * least:.1f}"
        yield f"  true positives per 100 rollouts      {shown}"
    clean, least = finding.clean_per_dollar, finding.clean_per_dollar_low
    if clean is not None and least is not None:
        yield f"  true positives per dollar            {clean:.3g}, at least {least:.3g}"
    several = len(finding.by_benchmark) > 1
    for part in finding.by_benchmark:
        worst = _ARROW if several and part.benchmark == finding.worst else ""
        yield f"  on {benchmark_name(part.benchmark):<34}{_rate_text(part.rate)}{worst}"


def _row(finding: CandidateResult) -> tuple[str, ...]:
    worst = next((p for p in finding.by_benchmark if p.benchmark == finding.worst), None)
    place = f"{benchmark_name(worst.benchmark)} {_cell(worst.rate)}" if worst else UNDEFINED
    clean, dollars = finding.clean_per_rollout, finding.clean_per_dollar
    return (
        finding.family,
        threshold_text(finding.threshold),
        f"{finding.precision.trials:,}/{finding.labelled:,}",
        _cell(finding.precision),
        _cell(finding.recall),
        UNDEFINED if clean is None else f"{100 * clean:.1f}",
        UNDEFINED if dollars is None else f"{dollars:.3g}",
        place,
        finding.verdict + (", tied" if finding.tied else ""),
        _attacked_cell(finding),
    )


def _attacked_cell(finding: CandidateResult) -> str:
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
        f"those of the rate under test at {_level(1 - level)} %, as the correction has it "
        "(the rates that the test does not reject), "
        f"the others at {_level(plan.confidence)} % "
        "(Wilson's on the effective number of trials)."
    )
    for finding in findings:
        if finding.untested:
            names = ", ".join(map(benchmark_name, finding.untested))
            yield f"{finding.name} accepts nothing on {names}: nothing is shown there."


def _of_agents(decision: Decision) -> str:
    agents = sorted(decision.binding.agents)
    return f", of {', '.join(agents)}" if agents else ""


def _rate_text(rate: CandidateRate) -> str:
    counted = f"({rate.hits:,} of {rate.trials:,})"
    if rate.estimate is None:
        return f"{UNDEFINED}  {counted}"
    if rate.hits and not rate.low:
        return f"{percent(rate.estimate)} %, too few tasks for a limit  {counted}"
    return f"{percent(rate.estimate)} %, at least {percent(rate.low)} %  {counted}"


def _cell(rate: CandidateRate) -> str:
    """Show an estimate with its lower limit, in percent."""
    if rate.estimate is None:
        return UNDEFINED
    low = UNDEFINED if rate.hits and not rate.low else percent(rate.low)
    return f"{percent(rate.estimate)} [{low}]"


def _headline(decision: Decision) -> list[str]:
    """Say which candidate was chosen for which target, or that none was."""
    plan, leader = decision.plan, decision.leader
    if decision.chosen is not None and leader is not None:
        return [
            f"Decision: filter with {leader.name}.",
            f"It meets the target, {_target(plan)}, {_assurance(plan)}.",
            *_under_attack(plan, leader),
        ]
    lines = [
        "Decision: no judge qualifies.",
        f"None was shown to meet the target, {_target(plan)}, {_assurance(plan)}.",
    ]
    if leader is None:
        return [*lines, "None accepted a labelled trajectory, so there is nothing to decide on."]
    best = "that is undecided" if leader.verdict in _OPEN else "that failed"
    return [*lines, f"Best {best}: {leader.name}.", *_under_attack(plan, leader)]


def _under_attack(plan: SelectionPlan, finding: CandidateResult | None) -> Iterator[str]:
    """Say what the plan's threat leaves of the candidate's precision."""
    known = None if finding is None else finding.under_attack
    if plan.threat is None or known is None:
        return
    low = "no limit" if known.low is None else f"at least {percent(known.low)} %"
    failed = known.low is None or known.low < plan.target.rate
    yield (
        f"Under the worst of {known.attacks} attacks by the {THREATS[plan.threat]} "
        f"({known.attack}) its precision is {percent(known.precision)} %, {low}"
        f"{': the target is not met there' if failed else ''}."
    )


def _next_step(decision: Decision) -> list[str]:
    """Say what else was shown of the chosen candidate, or what the nearest one lacks."""
    leader = decision.leader
    if leader is None:
        return []
    if decision.chosen is not None:
        return list(_other_scope(decision.plan, leader))
    return list(_advice(decision))


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
        f"with {_level(plan.confidence)} % confidence, corrected for {counted(plan)} "
        "(fixed-sequence Learn-then-Test)"
    )


def counted(plan: SelectionPlan) -> str:
    """Say how many candidates a plan holds."""
    candidates = count_of(len(plan.candidates), "candidate")
    return f"{candidates} in {count_of(len(plan.families), 'family')}"


def _level(confidence: float) -> str:
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
            f"The labels are enough in number, but of too few tasks ({finding.tasks:,}) or too "
            f"uneven among them for a test that may err in {_level(rate.level)} %: label "
            "trajectories of other tasks."
        )
        if finding.interval is not None and plan.scope == "overall":
            low, high = finding.interval
            if high < required_rate(plan.target):
                yield "The interval lies below the target, which is unlikely to be met."
            elif low >= required_rate(plan.target):
                yield "The interval lies above the target, which may well be met."
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
            "Its labels would suffice, but a judge's thresholds are tested from the strictest on, "
            "and one before it failed, which ends the test of that judge: freeze a plan with fewer "
            "thresholds and decide it on other labels."
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


def _transfer(decision: Decision) -> list[str]:
    """Say whether the decision holds on another benchmark, and on what that rests."""
    return list(_transport(decision.transport, decision.chosen is not None))


def _transport(transport: Transport | None, chosen: bool) -> Iterator[str]:
    if transport is None:
        return
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


def _notes(decision: Decision) -> list[str]:
    """Return the warnings and notes, each marked as what it is, in the decision's order."""
    return [note if note.startswith("warning: ") else f"note: {note}" for note in decision.notes]


def check_plot(file: Path) -> None:
    """Check the suffix and the library. Raises UserError, before anything is computed, if the plot
    could not be drawn."""
    if file.suffix.lower() not in PLOT_SUFFIXES:
        raise UserError(f"--plot {file}: no such kind of picture: use {', '.join(PLOT_SUFFIXES)}")
    _matplotlib()


def plot(decision: Decision, file: Path) -> None:
    """Draw recall (x) against precision (y) with its lower limit; filled: qualifies, ringed:
    chosen. Raises UserError if the file cannot be written."""
    figure = _matplotlib().figure.Figure(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    for number, family in enumerate(decision.plan.families):
        mine = [f for f in decision.findings if f.family == family.name and _drawn(f)]
        _draw_family(axes, family.name, mine, f"C{number % 10}")
    if decision.chosen is not None:
        finding = decision.findings[decision.chosen]
        ring = {"s": 220, "facecolors": "none", "edgecolors": "black", "label": "chosen"}
        axes.scatter([finding.recall.estimate], [finding.precision.estimate], **ring)
    target = decision.plan.target
    if target.kind == "precision":
        label = f"target {target.rate:.2f}"
        axes.axhline(target.rate, color="grey", linestyle="--", linewidth=1, label=label)
    axes.set(xlim=(0, 1.02), ylim=(0, 1.02))
    axes.set_xlabel("recall")
    axes.set_ylabel("precision, down to its lower limit")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower left", fontsize="small")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # No date in the file: the same decision gives the same bytes.
        metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
        with _matplotlib().rc_context({"svg.hashsalt": "trajudge"}):
            figure.savefig(file, dpi=150, metadata=metadata.get(file.suffix.lower()))
    except OSError as error:
        raise UserError(f"--plot {file}: cannot be written ({error.strerror})") from error


def _drawn(finding: CandidateResult) -> bool:
    return finding.precision.estimate is not None and finding.recall.estimate is not None


def _draw_family(axes: Any, name: str, findings: list[CandidateResult], colour: str) -> None:
    if not findings:
        return
    x = [f.recall.estimate or 0.0 for f in findings]
    y = [f.precision.estimate or 0.0 for f in findings]
    axes.plot(x, y, color=colour, linewidth=1, alpha=0.6)
    down = [b - (f.precision.low or 0.0) for b, f in zip(y, findings, strict=True)]
    limits = [down, [0.0] * len(down)]
    axes.errorbar(x, y, yerr=limits, fmt="none", color=colour, capsize=3, linewidth=1)
    fill = [colour if f.verdict == "qualifies" else "white" for f in findings]
    axes.scatter(x, y, c=fill, edgecolors=colour, zorder=3, label=name)


def _matplotlib() -> Any:
    try:
        import_module("matplotlib.figure")
        return import_module("matplotlib")
    except ImportError as error:
        raise MissingExtra("matplotlib", "plots", "--plot") from error
