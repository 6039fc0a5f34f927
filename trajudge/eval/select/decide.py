"""From a frozen plan and the evidence to a decision."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from trajudge.eval.select.binding import DecisionScope, JudgeConfiguration
from trajudge.eval.select.decision import (
    BenchmarkRate,
    CandidateRate,
    CandidateResult,
    CandidateVerdict,
    Compared,
    Decision,
)
from trajudge.eval.select.measures.labels_needed import labels_needed
from trajudge.eval.select.measures.measure import DOMINANT, CandidateTests, RateTest, measure
from trajudge.eval.select.measures.rates import design_effects
from trajudge.eval.select.measures.selection_data import (
    SelectionData,
    hits_and_trials,
    required_rate,
)
from trajudge.eval.select.measures.transport import transport
from trajudge.eval.select.measures.under_attack import UnderAttack
from trajudge.eval.select.measures.yield_rates import Ratio, dollars, indistinguishable, spending
from trajudge.eval.select.plan import SelectionPlan
from trajudge.util.terminal import count_of, listed

FEW_POSITIVES = 20
LARGE_SHARE = 0.2
"""The share of what a candidate accepts from which a note names the task that holds it."""
_NAMED = 4  # families that one note lists


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
    rng = np.random.default_rng(plan.seed)
    tested = measure(plan, evidence, rng)
    findings = [_finding(plan, evidence, tested, i) for i in range(len(plan.candidates))]
    if plan.threat is not None:
        findings = [_attacked(finding, attacked or {}) for finding in findings]
    priced = all(f.clean_per_dollar is not None for f in findings if f.accepted_share)
    chosen = _best(plan, findings, priced)
    nearest = _best_failing(findings, tested) if chosen is None else None
    ends = {"chosen": chosen, "nearest": nearest}
    tied = _tied(plan, evidence, tested, findings, **ends, priced=priced)
    one = chosen if chosen is not None else nearest
    return Decision(
        plan=plan,
        plan_hash=plan.hash,
        trajectories=len(evidence.success),
        successes=int(evidence.success.sum()),
        benchmarks=tuple(evidence.benchmarks),
        findings=tuple(f.model_copy(update={"tied": i in tied}) for i, f in enumerate(findings)),
        chosen=chosen,
        nearest=nearest,
        compared=_compared(plan, chosen, priced),
        transport=None
        if one is None
        else transport(evidence, one, plan.target, plan.confidence, plan.margin),
        notes=tuple(_notes(plan, evidence, findings)),
        binding=_binding(plan, evidence, configurations or {}),
    )


def _binding(
    plan: SelectionPlan, evidence: SelectionData, configurations: Mapping[str, JudgeConfiguration]
) -> DecisionScope:
    judges = sorted({judge for family in plan.families for judge in family.rule.judges})
    return DecisionScope(
        judges={name: configurations.get(name, JudgeConfiguration(judge=name)) for name in judges},
        agents=dict(evidence.agents),
        benchmarks={name: int((evidence.benchmark == name).sum()) for name in evidence.benchmarks},
    )


def _rank_of_rate(place: BenchmarkRate) -> tuple[float, float]:
    """Rank by the limit; among those too small for one, the estimate says which is the worst."""
    return (place.rate.low or 0.0, place.rate.estimate or 0.0)


def _finding(
    plan: SelectionPlan, evidence: SelectionData, tested: CandidateTests, i: int
) -> CandidateResult:
    family, threshold = plan.candidates[i]
    labelled = int(evidence.judged[:, i].sum())
    share = evidence.accepted_share(i)
    places = _places(tested, i)
    with_trials = [place for place in places if place.rate.trials]
    worst = min(with_trials, key=_rank_of_rate, default=None)
    verdict = _verdict(plan, tested, i)
    return CandidateResult(
        family=family.name,
        rule=family.rule,
        threshold=threshold,
        labelled=labelled,
        accepted_share=share,
        rate=tested.target.rate(i),
        p_value=float(tested.target.p[i]),
        verdict=verdict,
        qualifies_overall=bool(tested.overall[i]),
        qualifies_everywhere=bool(tested.everywhere[i]),
        precision=tested.precision.rate(i),
        recall=tested.recall.rate(i),
        places=places,
        worst=worst.benchmark if worst else None,
        untested=tuple(place.benchmark for place in places if not place.rate.trials),
        design_effect=float(design_effects(tested.target.sums)[i]),
        more_labels=_more_labels(plan, tested, i, verdict),
        price=evidence.prices[i],
        **_clean(plan, evidence.prices[i], share, tested.precision.rate(i)),
    )


def _places(tested: CandidateTests, i: int) -> tuple[BenchmarkRate, ...]:
    return tuple(
        BenchmarkRate(
            benchmark=name,
            labelled=int(tested.labelled[name][i]),
            rate=place.rate(i),
            p_value=float(place.p[i]),
        )
        for name, place in tested.places.items()
        if tested.labelled[name][i]
    )


def _clean(
    plan: SelectionPlan, price: float | None, share: float | None, precision: CandidateRate
) -> dict[str, float | None]:
    """Compute true positives per rollout and per dollar, at the estimate and at the lower limit."""
    spent = dollars(plan.prices, price, share or 0.0)
    clean: dict[str, float | None] = {}
    for end, rate in (("", precision.estimate), ("_low", precision.low)):
        each = None if share is None or rate is None else share * rate
        clean[f"clean_per_rollout{end}"] = each
        clean[f"clean_per_dollar{end}"] = None if each is None or not spent else each / spent
    return clean


def _verdict(plan: SelectionPlan, tested: CandidateTests, i: int) -> CandidateVerdict:
    passed = tested.overall if plan.scope == "overall" else tested.everywhere
    limit = required_rate(plan.target)
    if passed[i]:
        return "qualifies"
    places = [tested.target]
    if plan.scope == "every-benchmark":
        places += [place for name, place in tested.places.items() if tested.labelled[name][i]]
    if any(place.high[i] < limit for place in places):
        return "below the target"
    return "undecided" if tested.testable[i] else "too few"


def _more_labels(
    plan: SelectionPlan, tested: CandidateTests, i: int, verdict: CandidateVerdict
) -> int | None:
    if verdict in ("qualifies", "below the target"):
        return None
    parts = [tested.target]
    if plan.scope == "every-benchmark":
        parts = [place for name, place in tested.places.items() if tested.labelled[name][i]]
    missing = [_missing(plan, part, i) for part in parts if not part.p[i] <= part.level]
    known = [each for each in missing if each is not None]
    return sum(known) if missing and len(known) == len(missing) else None


def _missing(plan: SelectionPlan, part: RateTest, i: int) -> int | None:
    """Count the labels beyond those at hand, were the estimate true: 0 where they are enough, and
    only of too few tasks; None where no number decides."""
    estimate = float(part.sums.estimate[i])
    if math.isnan(estimate):
        return None
    needed = labels_needed(required_rate(plan.target), estimate, alpha=part.level)
    if needed is None:
        return None
    needed = math.ceil(needed * float(design_effects(part.sums)[i]))
    return max(needed - int(part.sums.counted[1, i]), 0)


def _compared(plan: SelectionPlan, chosen: int | None, priced: bool) -> Compared:
    if plan.threat is not None:
        return "precision under attack"
    if chosen is None:
        return "rate"
    return "clean trajectories per dollar" if priced else "clean trajectories per rollout"


def _attacked(finding: CandidateResult, attacked: Mapping[str, UnderAttack]) -> CandidateResult:
    return finding.model_copy(update={"under_attack": attacked[finding.rule.judges[0]]})


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
    return max(able, key=lambda i: (_yield(findings[i], priced), -i), default=None)


def _yield(finding: CandidateResult, priced: bool) -> float:
    low = finding.clean_per_dollar_low if priced else finding.clean_per_rollout_low
    return low or 0.0


def _best_failing(findings: list[CandidateResult], tested: CandidateTests) -> int | None:
    """Find, where none qualifies, the highest lower limit among those with trials enough to pass;
    one that was shown to miss the target comes after all others."""
    able = [i for i, finding in enumerate(findings) if tested.testable[i]]
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
    chosen: int | None,
    nearest: int | None,
    priced: bool,
) -> list[int]:
    """List who cannot be told from the chosen candidate by its yield, or where none is chosen from
    the nearest by the rate under test."""
    alpha = 1 - plan.confidence
    if plan.threat is not None:  # two judges' limits under attack are not compared in pairs
        return []
    if chosen is not None:
        others = [i for i, f in enumerate(findings) if f.verdict == "qualifies" and i != chosen]
        clean = evidence.accepted & evidence.success[:, None]
        ratio = Ratio(clean, spending(evidence, plan.prices if priced else None))
        return indistinguishable(evidence, ratio, chosen, others, alpha=alpha)
    if nearest is None:
        return []
    others = [i for i in range(len(findings)) if tested.testable[i] and i != nearest]
    ratio = Ratio(*hits_and_trials(evidence, plan.target))
    return indistinguishable(evidence, ratio, nearest, others, alpha=alpha)


def _notes(
    plan: SelectionPlan, evidence: SelectionData, findings: list[CandidateResult]
) -> list[str]:
    """Say what a reader must know before using the decision."""
    notes = [*_several(plan, evidence), *_dominated(evidence, findings)]
    if evidence.weight is not None:
        notes.append(
            "labels were drawn with unequal probabilities: rates weight each by one over its own"
        )
    if plan.threat is not None:
        notes.append(
            "limits under attack cover all attacks that were tried on one judge together; they do "
            "not cover other attacks, or the best of several judges"
        )
    if evidence.unsure:
        unsure = count_of(evidence.unsure, "trajectory")
        notes.append(f"{unsure} left out: the experts were unsure")
    successes = int(evidence.success.sum())
    if successes < FEW_POSITIVES:
        notes.append(f"only {successes} true successes: read the limits, not the estimates")
    total = len(evidence.success)
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
    """Say where one task holds much of what a candidate accepts."""
    notes: dict[str, str] = {}
    for i, finding in enumerate(findings):
        task, share = evidence.largest_task(i)
        if share > LARGE_SHARE:
            held = f"{100 * share:.0f} % of what {finding.name} accepts is of one task, {task}"
            refused = "it cannot qualify: the rest shows too little of other tasks"
            rest = refused if share > DOMINANT else "its rate is largely that task's"
            notes.setdefault(finding.family, f"warning: {held}: {rest}")
    return list(notes.values())[:_NAMED]


def _several(plan: SelectionPlan, evidence: SelectionData) -> list[str]:
    """Say that the best of several was picked on the data that rates it. The first screen gives a
    sentence three lines: two short ones are read whole."""
    families, tried = len(plan.families), len(plan.candidates)
    if tried < 2:
        return []
    counted = f"{tried} candidates ({count_of(families, 'family')})"
    return [
        f"warning: {counted} were tried on the same {len(evidence.success):,} labelled "
        "trajectories. The verdicts are corrected for it, the estimates of the best are not and "
        "likely too high: rely on its limits",
        "warning: previous selections on the same labels are not counted and invalidate the "
        "confidence level: validate the choice on labels that no selection has used",
    ]
