"""Choose a judge: freeze the plan, then read the labels, then test every candidate and decide."""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trajudge.eval.reporting.sentences import percent, unfinished
from trajudge.eval.select.binding import DecisionScope, JudgeConfiguration
from trajudge.eval.select.decision import (
    JSON_FILE,
    BenchmarkRate,
    CandidateRate,
    CandidateResult,
    CandidateVerdict,
    Compared,
    Decision,
    HoldingTarget,
    UnderAttack,
)
from trajudge.eval.select.evidence import (
    Inputs,
    SelectionData,
    check_planned,
    gather,
    hits_and_trials,
    read_all_labels,
    read_inputs,
    read_under_attack,
    required_rate,
)
from trajudge.eval.select.plan import FILE, Prices, SelectionPlan, freeze, make_plan, open_plan
from trajudge.eval.select.rates import (
    DOMINANT,
    RateSums,
    TaskSums,
    design_effects,
    fixed_sequence,
    lower_limits,
    p_values,
    rate_sums,
    task_labels_needed,
    upper_limits,
)
from trajudge.eval.select.scores import judgments_hash
from trajudge.eval.select.settings import SelectConfig
from trajudge.eval.select.text import TEXT_FILE, check_plot, counted, plot, printed, text
from trajudge.eval.select.transport import transport
from trajudge.eval.store.task_goals import (
    TaskGoals,
    read_goals,
    shared_goals,
    shared_sentence,
    task_units,
)
from trajudge.stats.comparison import holm
from trajudge.stats.intervals import (
    Bools,
    Floats,
    Ints,
    clustered_differences,
    clustered_rates,
    defined,
    sum_clusters,
)
from trajudge.util.commands import FAILURES, OK
from trajudge.util.errors import UserError
from trajudge.util.files import check_folder, save_bytes
from trajudge.util.terminal import count_of, listed, one_line

FEW_POSITIVES = 20
LARGE_SHARE = 0.2
"""The share of what a candidate accepts from which a note names the task that holds it."""
_NAMED = 4  # families that one note lists


@dataclass(frozen=True)
class FrozenPlan:
    """A plan as it was written to ``folder``, and what it is tested on."""

    plan: SelectionPlan
    folder: Path
    inputs: Inputs


def run(config: SelectConfig) -> int:
    """Freeze, read the labels, decide, write and print; return the exit code."""
    if config.plot:
        check_plot(config.plot)
    if config.freeze:
        frozen = freeze_plan(config)
        file = frozen.folder / FILE
        sys.stdout.write(f"{file}: frozen, {counted(frozen.plan)}; no label was read\n")
        return OK
    decision, folder = select(config)
    if config.plot:
        plot(decision, config.plot)
    sys.stdout.write(printed(decision, folder, as_json=config.json_output, full=config.full))
    return FAILURES if decision.chosen is None else OK


def freeze_plan(config: SelectConfig) -> FrozenPlan:
    """Make or open the plan and write it. Reads no label; raises UserError."""
    if config.out:
        check_folder(config.out, "--out")
    inputs = read_inputs(config.runs, config.judgments)
    plan = open_plan(config) or make_plan(config.plan, inputs.judgments)
    check_planned(inputs, plan)
    if inputs.unfinished:
        cut = one_line(unfinished(inputs.unfinished))
        sys.stderr.write(f"note: {cut}: the decision is on these\n")
    folder = config.out or Path("selections") / plan.hash[:8]
    freeze(folder / FILE, plan)
    if plan.judgments not in ("", judgments_hash(inputs.judgments)):
        sys.stderr.write("note: the judgments are not those that the plan was made from\n")
    return FrozenPlan(plan, folder, inputs)


def select(config: SelectConfig) -> tuple[Decision, Path]:
    """Choose the judge and threshold that meet the plan's target; write the decision, and return
    it with its folder.

    Raises UserError for judgments, labels or a plan that cannot be used.
    """
    frozen = freeze_plan(config)
    plan, configurations = frozen.plan, frozen.inputs.configurations
    attacked: dict[str, UnderAttack] = {}
    if plan.threat is not None:
        judges = [family.rule.judges[0] for family in plan.families]
        attacked = read_under_attack(config.robustness, plan.threat, judges, configurations)
    elif config.robustness:
        raise UserError("--robustness: name who attacks with --threat agent, page or both")
    # Nothing above this line has seen a label.
    keys = (judgment.key for judgment in frozen.inputs.judgments)
    labels = read_all_labels(config.runs, config.judgments, config.annotations, keys)
    goals = {task: goal for run in config.runs for task, goal in read_goals(run).items()}

    def decided() -> Decision:
        evidence = gather(plan, frozen.inputs.judgments, labels)
        return decide(plan, evidence, configurations, attacked)

    with task_units(goals, config.task_id):
        decision = decided()
    if config.task_id == "recorded" and (note := _goal_note(decision, goals, decided)):
        decision = decision.model_copy(update={"notes": (note, *decision.notes)})
    save_bytes(frozen.folder / JSON_FILE, decision.to_json().encode())
    save_bytes(frozen.folder / TEXT_FILE, text(decision).encode())
    return decision, frozen.folder


def _goal_note(decision: Decision, goals: TaskGoals, decided: Callable[[], Decision]) -> str:
    """Say that task ids share goals, with the leader's limits by task ids and by goals; "" where
    they do not. ``decided`` decides again."""
    leader, shared = decision.leader, shared_sentence(shared_goals(goals))
    if not shared or leader is None:
        return ""
    with task_units(goals, "goal"):
        by_goal = decided()
    same = by_goal.findings[decision.findings.index(leader)]
    both = [
        "no limit" if low is None else f"at least {percent(low)} %"
        for low in (leader.precision.low, same.precision.low)
    ]
    if both[0] == both[1] and leader.verdict == same.verdict:
        return ""
    verdict = "" if leader.verdict == same.verdict else f" ({same.verdict})"
    return (
        f"warning: {shared}: {leader.name}: precision {percent(leader.precision.estimate)} %, "
        f"{both[0]} by task ids, {both[1]} by goals{verdict}: count goals with --task-id goal"
    )


def decide(
    plan: SelectionPlan,
    evidence: SelectionData,
    configurations: Mapping[str, JudgeConfiguration] | None = None,
    attacked: Mapping[str, UnderAttack] | None = None,
) -> Decision:
    """Test every candidate and choose. The same plan and evidence give the same decision.

    ``configurations`` of the judges by name bind the decision to them; None: nothing is known.
    ``attacked``, by judge, is what a plan with a threat needs.
    """
    tested = measure_candidates(plan, evidence)
    findings = [_finding(plan, evidence, tested, i) for i in range(len(plan.candidates))]
    if plan.threat is not None and attacked:
        findings = [
            finding.model_copy(update={"under_attack": attacked[finding.rule.judges[0]]})
            for finding in findings
        ]
    priced = all(f.clean_per_dollar is not None for f in findings if f.accepted_share)
    chosen = _best(plan, findings, priced)
    nearest = _best_failing(findings, tested) if chosen is None else None
    leader = nearest if chosen is None else chosen
    tied: list[int] = []
    carried = None
    if leader is not None:
        tied = _tied(plan, evidence, tested, findings, leader=leader, priced=priced)
        carried = transport(evidence, leader, plan.target, plan.confidence, plan.margin)
    judges = sorted({judge for family in plan.families for judge in family.rule.judges})
    known = configurations or {}
    compared: Compared = (
        "clean trajectories per dollar" if priced else "clean trajectories per rollout"
    )
    if plan.threat is not None or chosen is None:
        compared = "rate" if plan.threat is None else "precision under attack"
    return Decision(
        plan=plan,
        plan_hash=plan.hash,
        trajectories=len(evidence.success),
        successes=int(evidence.success.sum()),
        benchmarks=tuple(evidence.benchmarks),
        findings=tuple(f.model_copy(update={"tied": i in tied}) for i, f in enumerate(findings)),
        chosen=chosen,
        nearest=nearest,
        compared=compared,
        transport=carried,
        notes=tuple(_notes(plan, evidence, findings)),
        binding=DecisionScope(
            judges={name: known.get(name, JudgeConfiguration(judge=name)) for name in judges},
            agents=dict(evidence.agents),
            benchmarks={
                name: int((evidence.benchmark == name).sum()) for name in evidence.benchmarks
            },
        ),
        holding_target=None if chosen is not None else _holding_target(plan, evidence, leader),
        unlabelled=evidence.unlabelled,
    )


def _holding_target(
    plan: SelectionPlan, evidence: SelectionData, leader: int | None
) -> HoldingTarget | None:
    """Find the strictest weaker target of whole percents that a candidate meets; None where there
    is none, and with a threat, whose limits the labels do not give. The leader is named before
    others."""
    if plan.threat is not None or leader is None:
        return None
    is_precision = plan.target.kind == "precision"
    percents = range(1, math.ceil(100 * required_rate(plan.target) - 1e-9))

    def meets(least: int) -> list[int]:
        rate = (least if is_precision else 100 - least) / 100
        target = plan.target.model_copy(update={"rate": rate})
        tested = measure_candidates(plan.model_copy(update={"target": target}), evidence)
        passed = tested.overall if plan.scope == "overall" else tested.everywhere
        return np.flatnonzero(passed).tolist()

    # What meets a target meets every weaker one.
    place = bisect_left(percents, True, key=lambda least: not meets(least))
    if not place:
        return None
    least = percents[place - 1]
    able = meets(least)
    rate = (least if is_precision else 100 - least) / 100
    return HoldingTarget(rate=rate, candidate=leader if leader in able else able[0])


@dataclass(frozen=True, eq=False)
class RateTest:
    """Rates with their p-values and one-sided limits at ``level``, each (L,).

    Limits of a rate under test are the rates that the test does not reject: they never contradict
    its verdict.
    """

    sums: RateSums
    p: Floats
    low: Floats
    high: Floats
    level: float

    def rate(self, candidate: int) -> CandidateRate:
        """Select one candidate's measure."""
        estimate, low, high = (
            defined(value)
            for value in (each[candidate] for each in (self.sums.estimate, self.low, self.high))
        )
        hits, trials = (int(each) for each in self.sums.counted[:, candidate])
        return CandidateRate(
            hits=hits, trials=trials, estimate=estimate, low=low, high=high, level=self.level
        )


@dataclass(frozen=True, eq=False)
class CandidateTests:
    """``target`` is the rate under test, ``by_benchmark`` the same on each, and ``interval`` has
    its two-sided 95 % limits, low and high (2, L), as scores have them; ``labelled`` (L,)
    counts what a candidate judged there. ``overall`` and ``everywhere`` are who passes, after
    correction; ``testable`` who could have, whatever the labels say."""

    target: RateTest
    interval: Floats
    precision: RateTest
    recall: RateTest
    by_benchmark: dict[str, RateTest]
    labelled: dict[str, Ints]
    overall: Bools
    everywhere: Bools
    testable: Bools

    def parts(self, plan: SelectionPlan, candidate: int) -> list[RateTest]:
        """List the tests that the plan's scope asks of a candidate besides the overall one."""
        if plan.scope == "overall":
            return []
        return [t for name, t in self.by_benchmark.items() if self.labelled[name][candidate]]


def measure_candidates(plan: SelectionPlan, evidence: SelectionData) -> CandidateTests:
    """Measure and test all candidates of the plan, overall and on each benchmark."""
    alpha, limit = 1 - plan.confidence, required_rate(plan.target)
    clusters = evidence.clusters(*hits_and_trials(evidence, plan.target))
    sums = rate_sums(clusters)
    level = alpha / len(plan.families)
    target = _tested(sums, limit, level)
    # One task that holds most of what is accepted shows little of others.
    several = np.array(
        [evidence.largest_task(i)[1] <= DOMINANT for i in range(len(plan.candidates))]
    )
    testable = several & (p_values(sums.all_hits, limit) <= level)
    p = np.where(several, target.p, 1.0)
    target = RateTest(sums, p, target.low, target.high, level)
    by_benchmark: dict[str, RateTest] = {}
    labelled: dict[str, Ints] = {}
    worst, able = np.zeros(len(p)), np.zeros(len(p), dtype=bool)
    best = np.zeros(len(p))
    for name in evidence.benchmarks:
        part = evidence.within(evidence.benchmark == name)
        sums_there = rate_sums(part.clusters(*hits_and_trials(part, plan.target)))
        by_benchmark[name] = _tested(sums_there, limit, level)
        labelled[name] = part.judged.sum(axis=0)
        here = labelled[name] > 0
        able |= here
        # The largest p-value decides, and needs no correction for the number of benchmarks
        # (intersection-union, Berger 1982).
        worst = np.where(here, np.maximum(worst, by_benchmark[name].p), worst)
        best = np.where(here, np.maximum(best, p_values(sums_there.all_hits, limit)), best)
    able &= best <= level
    success = evidence.success[:, None]
    kept = evidence.accepted & success
    is_precision = plan.target.kind == "precision"
    return CandidateTests(
        target=target,
        interval=_interval(clusters),
        precision=target
        if is_precision
        else _measured(evidence.clusters(kept, evidence.accepted), alpha),
        recall=_measured(evidence.clusters(kept, evidence.judged & success), alpha),
        by_benchmark=by_benchmark,
        labelled=labelled,
        overall=fixed_sequence(p, plan.groups, testable, alpha),
        everywhere=fixed_sequence(worst, plan.groups, able, alpha),
        testable=testable,
    )


def _tested(sums: RateSums, limit: float, level: float) -> RateTest:
    low, high = lower_limits(sums, level), upper_limits(sums, level)
    return RateTest(sums, p_values(sums, limit), low, high, level)


def _measured(clusters: TaskSums, level: float) -> RateTest:
    """Compute rates that no target bounds, with one-sided limits; no p-values."""
    low, high = _interval(clusters, 1 - 2 * level)
    return RateTest(rate_sums(clusters), np.full(len(low), np.nan), low, high, level)


def _interval(clusters: TaskSums, confidence: float = 0.95) -> Floats:
    """Compute the two-sided limits (2, L) that every other table has (``clustered_rates``)."""
    hits, trials = np.split(clusters.sums.T, 2)
    squares = None if clusters.squares is None else clusters.squares.T
    rates = clustered_rates(hits, trials, clusters.stratum_sizes, confidence, squares)
    return np.stack([rates.interval.low, rates.interval.high])


def _finding(
    plan: SelectionPlan, evidence: SelectionData, tested: CandidateTests, i: int
) -> CandidateResult:
    family, threshold = plan.candidates[i]
    share = evidence.accepted_share(i)
    by_benchmark = tuple(
        BenchmarkRate(
            benchmark=name,
            labelled=int(tested.labelled[name][i]),
            rate=test.rate(i),
            p_value=float(test.p[i]),
        )
        for name, test in tested.by_benchmark.items()
        if tested.labelled[name][i]
    )
    # Sort by lower limit; use the estimate where no limit exists.
    worst = min(
        (part for part in by_benchmark if part.rate.trials),
        key=lambda part: (part.rate.low or 0.0, part.rate.estimate or 0.0),
        default=None,
    )
    verdict = _verdict(plan, tested, i)
    low, high = tested.interval[:, i].tolist()
    precision = tested.precision.rate(i)
    return CandidateResult(
        family=family.name,
        rule=family.rule,
        threshold=threshold,
        labelled=int(evidence.judged[:, i].sum()),
        accepted_share=share,
        rate=tested.target.rate(i),
        p_value=float(tested.target.p[i]),
        verdict=verdict,
        qualifies_overall=bool(tested.overall[i]),
        qualifies_everywhere=bool(tested.everywhere[i]),
        precision=precision,
        recall=tested.recall.rate(i),
        by_benchmark=by_benchmark,
        worst=worst.benchmark if worst else None,
        untested=tuple(part.benchmark for part in by_benchmark if not part.rate.trials),
        design_effect=float(design_effects(tested.target.sums)[i]),
        more_labels=_more_labels(plan, tested, i, verdict),
        tasks=int(tested.target.sums.tasks[i]),
        interval=None if math.isnan(low) else (low, high),
        price=evidence.prices[i],
        **_yields(plan.prices, evidence.prices[i], share, precision),
    )


def _yields(
    prices: Prices, judging: float | None, share: float | None, precision: CandidateRate
) -> dict[str, float | None]:
    """Compute true positives per rollout and per dollar, at the estimate and at the lower limit:
    q P / (c_rollout + c_judge + q c_training), with q the accepted share and P the precision; None
    per dollar where a price is not known or everything is free."""
    spent = None
    if prices.rollout is not None and judging is not None:
        spent = prices.rollout + judging + (share or 0.0) * prices.training
    clean: dict[str, float | None] = {}
    for end, rate in (("", precision.estimate), ("_low", precision.low)):
        each = None if share is None or rate is None else share * rate
        clean[f"clean_per_rollout{end}"] = each
        clean[f"clean_per_dollar{end}"] = None if each is None or not spent else each / spent
    return clean


def _verdict(plan: SelectionPlan, tested: CandidateTests, i: int) -> CandidateVerdict:
    passed = tested.overall if plan.scope == "overall" else tested.everywhere
    if passed[i]:
        return "qualifies"
    limit = required_rate(plan.target)
    if any(test.high[i] < limit for test in (tested.target, *tested.parts(plan, i))):
        return "below the target"
    return "undecided" if tested.testable[i] else "too few"


def _more_labels(
    plan: SelectionPlan, tested: CandidateTests, i: int, verdict: CandidateVerdict
) -> int | None:
    if verdict in ("qualifies", "below the target"):
        return None
    parts = [tested.target] if plan.scope == "overall" else tested.parts(plan, i)
    missing = [_missing(plan, part, i) for part in parts if not part.p[i] <= part.level]
    known = [each for each in missing if each is not None]
    return sum(known) if missing and len(known) == len(missing) else None


def _missing(plan: SelectionPlan, part: RateTest, i: int) -> int | None:
    """Count the labels beyond those at hand, were the estimate true: 0 where they are enough, and
    only of too few tasks; None where no number decides."""
    needed = task_labels_needed(part.sums, i, required_rate(plan.target), part.level)
    return None if needed is None else max(needed - int(part.sums.counted[1, i]), 0)


def _limit_under_attack(finding: CandidateResult) -> float:
    known = finding.under_attack
    return 0.0 if known is None or known.low is None else known.low


def _best(plan: SelectionPlan, findings: list[CandidateResult], priced: bool) -> int | None:
    """Find the qualifying candidate with the most true positives at the lower limit; with a threat
    that of the highest limit under attack, if it meets the target."""
    able = [i for i, finding in enumerate(findings) if finding.verdict == "qualifies"]
    if plan.threat is not None:
        able = [i for i in able if _limit_under_attack(findings[i]) >= plan.target.rate]
        return max(able, key=lambda i: (_limit_under_attack(findings[i]), -i), default=None)
    name = "clean_per_dollar_low" if priced else "clean_per_rollout_low"
    return max(able, key=lambda i: (getattr(findings[i], name) or 0.0, -i), default=None)


def _best_failing(findings: list[CandidateResult], tested: CandidateTests) -> int | None:
    """Find, where none qualifies, the highest lower limit among those with trials enough to pass;
    one that was shown to miss the target comes after all others."""
    able = [i for i in range(len(findings)) if tested.testable[i]]
    able = able or [i for i, finding in enumerate(findings) if finding.rate.trials]

    def limits(i: int) -> tuple[bool, float, float, int]:
        one = findings[i]
        return one.verdict != "below the target", _limit_under_attack(one), one.rate.low or 0.0, -i

    return max(able, key=limits, default=None)


def _tied(
    plan: SelectionPlan,
    evidence: SelectionData,
    tested: CandidateTests,
    findings: list[CandidateResult],
    *,
    leader: int,
    priced: bool,
) -> list[int]:
    """List who cannot be told from the chosen candidate by its yield, or where none is chosen from
    the nearest by the rate under test."""
    if plan.threat is not None:  # two judges' limits under attack are not compared in pairs
        return []
    if findings[leader].verdict == "qualifies":
        others = [i for i, f in enumerate(findings) if f.verdict == "qualifies" and i != leader]
        above: Bools = evidence.accepted & evidence.success[:, None]
        below: Floats | Bools = np.ones(evidence.judged.shape)
        if priced and plan.prices.rollout is not None:
            each = np.array([plan.prices.rollout + (judging or 0.0) for judging in evidence.prices])
            below = each + plan.prices.training * evidence.accepted
    else:
        others = [i for i in range(len(findings)) if tested.testable[i] and i != leader]
        above, below = hits_and_trials(evidence, plan.target)
    return indistinguishable(evidence, above, below, leader, others, alpha=1 - plan.confidence)


def indistinguishable(
    evidence: SelectionData,
    above: Bools,
    below: Floats | Bools,
    reference: int,
    others: Sequence[int],
    *,
    alpha: float,
) -> list[int]:
    """List the ``others`` whose ratio, the sum of ``above`` over that of ``below`` (N, L), cannot
    be told from the reference's: paired over the trajectories that both judged, tasks as clusters,
    Holm-corrected. Where nothing can be compared, nothing is told apart."""
    p = [_difference_p(evidence, above, below, [reference, other]) for other in others]
    return [other for other, value in zip(others, holm(p), strict=True) if not value <= alpha]


def _difference_p(
    evidence: SelectionData, above: Bools, below: Floats | Bools, pair: Sequence[int]
) -> float:
    """Compute the two-sided p-value of "both ratios of the sums of ``above`` and ``below`` (N, L)
    are the same" (``clustered_differences``); ``nan`` where they cannot be compared."""
    both = evidence.judged[:, pair].all(axis=1)
    if not both.any():
        return np.nan
    hits, trials = (np.asarray(part[both][:, pair], float) for part in (above, below))
    # In the unit of the cheapest success a yield is a rate: at most 1 for each trajectory.
    trials /= trials[hits > 0].min(initial=np.inf) if (hits > 0).any() else 1.0
    columns = [hits, trials]
    if evidence.weight is not None:
        each = evidence.weight[both][:, None]
        columns = [hits * each, trials * each, trials * each**2]
    clusters = sum_clusters(
        np.concatenate(columns, axis=1), evidence.task[both], evidence.benchmark[both]
    )
    summed = [clusters.sums.T[k : k + 2, None] for k in range(0, 2 * len(columns), 2)]
    squares = summed[2] if len(summed) > 2 else None
    difference = clustered_differences(
        summed[0], summed[1], clusters.stratum_sizes, squares=squares
    )
    return float(difference.p_value[0])


def _notes(
    plan: SelectionPlan, evidence: SelectionData, findings: list[CandidateResult]
) -> list[str]:
    """Say what a reader must know before using the decision."""
    total, tried = len(evidence.success), len(plan.candidates)
    notes = _dominated(evidence, findings)
    if tried > 1:
        counted = f"{tried} candidates ({count_of(len(plan.families), 'family')})"
        notes += [
            "warning: earlier selections on these labels are not counted: confirm on labels not "
            "used yet",
            f"warning: the best of {counted} looks better than it is: rely on its limits",
        ]
    if evidence.weight is not None:
        notes.append(
            "labels drawn with unequal probabilities: rates weight each by one over its own"
        )
    if plan.threat is not None:
        notes.append(
            "limits under attack are of each judge alone: they do not cover other attacks, or "
            "the best of several judges"
        )
    if evidence.unsure:
        unsure = count_of(evidence.unsure, "trajectory")
        notes.append(f"{unsure} left out: the experts were unsure")
    if evidence.unlabelled:
        bare = count_of(evidence.unlabelled, "judged trajectory")
        notes.append(f"{bare} without a label: only the share accepted counts them")
    successes = int(evidence.success.sum())
    if successes < FEW_POSITIVES:
        notes.append(f"only {successes} true successes: read the limits, not the estimates")
    partial = {f.family: f.labelled for f in findings if f.labelled < total}
    for family, labelled in partial.items():
        notes.append(f"{family} judged {labelled:,} of the {total:,} trajectories: tested on those")
    unpriced = {f.family for f in findings if f.price is None}
    if plan.prices.rollout is None:
        notes.append("no price of a rollout was given: the yield is per rollout, not per dollar")
    elif unpriced:
        names = listed(sorted(unpriced), _NAMED)
        notes.append(f"the price of {names} is not known: the yield is per rollout")
    return notes


def _dominated(evidence: SelectionData, findings: list[CandidateResult]) -> list[str]:
    """Name the task that holds much of what a candidate accepts, by family."""
    notes: dict[str, str] = {}
    for i, finding in enumerate(findings):
        task, share = evidence.largest_task(i)
        if share > LARGE_SHARE:
            held = f"{100 * share:.0f} % of what {finding.name} accepts is of one task, {task}"
            refused = "it cannot qualify: the rest shows too little of other tasks"
            rest = refused if share > DOMINANT else "its rate is largely that task's"
            notes.setdefault(finding.family, f"warning: {held}: {rest}")
    return list(notes.values())[:_NAMED]
