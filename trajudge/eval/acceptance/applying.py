"""Whether a decision covers what it is applied to: judge, agents, benchmarks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from trajudge.annotations.agentrewardbench import benchmark_of, family_of
from trajudge.eval.acceptance.acceptance import AcceptanceFilter
from trajudge.eval.acceptance.settings import AcceptConfig
from trajudge.eval.select.binding import JudgeConfiguration, differences, unknown
from trajudge.eval.select.decision import Decision
from trajudge.eval.select.evidence import Inputs
from trajudge.eval.select.rates import cluster_sums, lower_limits, rate_sums
from trajudge.eval.select.scores import accepts, judge_scores, rule_scores
from trajudge.eval.select.transport import Transport
from trajudge.eval.select.plan import Rule
from trajudge.judges.model import Judgment
from trajudge.util.errors import UserError

_ASSUME = "--assume-same-judge"


def filter_of(decision: Decision, source: Path) -> AcceptanceFilter:
    """Take the chosen candidate of a decision. Raises UserError if none qualified."""
    if decision.chosen is None:
        raise UserError(
            f"{source}: no judge qualified, so there is no choice to apply; --judge and "
            "--threshold apply one without a guarantee"
        )
    finding = decision.findings[decision.chosen]
    shown = frozenset(place.benchmark for place in finding.places if place.rate.trials)
    warning = ""
    if decision.recertified and decision.binding:
        shown = frozenset(decision.binding.benchmarks)
        mix = ", ".join(f"{name} {n}" for name, n in decision.binding.benchmarks.items())
        warning = f"certified again on labels of {', '.join(decision.binding.agents)}: {mix}"
    elif len(finding.places) > 1 and not finding.qualifies_everywhere:
        names = ", ".join(f"{place.benchmark} {place.labelled}" for place in finding.places)
        warning = f"the target was shown to be met only over this mix of benchmarks: {names}"
    return AcceptanceFilter(
        finding.family, finding.rule, finding.threshold, shown, decision.plan_hash, warning
    )


def covered(
    decision: Decision, choice: AcceptanceFilter, inputs: Inputs, config: AcceptConfig
) -> tuple[AcceptanceFilter, list[str]]:
    """Complete the choice with the benchmarks and agents that it may be applied to, and what the
    user has to know. Raises UserError for another judge."""
    source = config.decision or Path()
    _check_present(choice.rule, inputs.configurations, source)
    warnings = check_judges(
        decision,
        choice.rule,
        inputs.configurations,
        source=source,
        assume_same=config.assume_same_judge,
    )
    obstacles = transfer_obstacles(
        decision.transport,
        choice.rule,
        choice.threshold,
        inputs.judgments,
        decision.plan.confidence,
    )
    known = decision.binding
    agents = frozenset(known.agents) if known and config.agents == "same" else None
    benchmarks = None if config.any_benchmark else choice.benchmarks
    return choice._replace(benchmarks=benchmarks, obstacles=obstacles, agents=agents), warnings


def _check_present(rule: Rule, judged: Collection[str], source: Path) -> None:
    """Raise UserError for a decision for a judge whose judgments are not there at all."""
    absent = [judge for judge in rule.judges if judge not in judged]
    if absent:
        raise UserError(
            f"{source}: the decision is for {_judges(absent)}, while the run is of "
            f"{_judges(sorted(judged))}: name the run of {', '.join(absent)} with --run, or select "
            "anew"
        )


def _judges(names: Sequence[str]) -> str:
    return f"{'judge' if len(names) == 1 else 'judges'} {', '.join(names)}"


def new_agents(
    decision: Decision, accepted: Mapping[str, int], config: AcceptConfig
) -> Iterator[str]:
    """Ask for a sample of the accepted runs of agents that the decision was not made on."""
    known = decision.binding.agents if decision.binding else {}
    others = {name: n for name, n in sorted(accepted.items()) if name not in known}
    if not others or config.agents is not None:
        return
    named = ", ".join(f"{name} ({n})" for name, n in others.items())
    yield (
        f"warning: {sum(others.values())} accepted runs are of agents that the decision was not "
        f"made on: {named}. That the target holds for them is not shown: label a sample, "
        f"trajudge run recertify --decision {config.decision} --accepted {config.out}"
        " --out recertification; or leave them out with --agents same"
    )


def check_judges(
    decision: Decision,
    rule: Rule,
    configurations: Mapping[str, JudgeConfiguration],
    *,
    source: Path,
    assume_same: bool,
) -> list[str]:
    """Compare the judges that the decision was made for with those that judged now; what the user
    has to know of them.

    Raises UserError naming what differs; and, unless ``assume_same``, what only one side knows.
    """
    if decision.binding is None:
        return _unrecorded(source, assume_same)
    warnings: list[str] = []
    for judge in rule.judges:
        certified = decision.binding.judges.get(judge) or JudgeConfiguration(judge=judge)
        current = configurations.get(judge) or JudgeConfiguration(judge=judge)
        if different := list(differences(certified, current)):
            raise UserError(
                f"{source}: was made for another judge of the name {judge}: this one has "
                f"{'; '.join(different)}: judge with the settings of the decision, or select anew"
            )
        one_sided, neither = unknown(certified, current)
        if one_sided and not assume_same:
            raise UserError(
                f"{source}: cannot be compared with {judge} in its {', '.join(one_sided)}, which "
                f"only one of the two records: if it is the same judge, say so with {_ASSUME}"
            )
        warnings += _warnings(judge, certified, current, [*one_sided, *neither])
    return warnings


def _unrecorded(source: Path, assume_same: bool) -> list[str]:
    if not assume_same:
        raise UserError(
            f"{source}: does not record which judge it was made for (model, parameters, prompts, "
            f"options), agents and benchmarks: select anew, or if they are the same, say so with "
            f"{_ASSUME}"
        )
    return ["the decision does not record its judge: assumed to be the same, as you said"]


def _warnings(
    judge: str, certified: JudgeConfiguration, current: JudgeConfiguration, missing: Sequence[str]
) -> Iterator[str]:
    if missing:
        yield f"not compared, because not recorded, of {judge}: {', '.join(missing)}"
    before, now = certified.facts.get("endpoint"), current.facts.get("endpoint")
    if before != now and before is not None and now is not None:
        yield f"{judge} was asked at {now}, when it was certified at {before}"


def transfer_obstacles(
    transport: Transport | None,
    rule: Rule,
    threshold: float,
    judgments: Sequence[Judgment],
    confidence: float,
) -> dict[str, str]:
    """Map benchmark -> why the decision does not transfer there, "" where it does.

    It may where its rates were shown to be equivalent across benchmarks and the share that the
    rule accepts there shows a success rate of at least ``least_success_rate``: with a
    false-positive rate of at most f, accepting a share q takes a success rate of at least
    (q - f) / (1 - f).
    """
    scored = judge_scores(judgments, rule.use)
    keys = sorted({j.key for j in judgments if j.judge in rule.judges}, key=lambda key: key.order)
    scores = rule_scores(rule, scored, keys)
    benchmark = np.array([benchmark_of(key) for key in keys], dtype=np.str_)
    task = np.array([family_of(key) for key in keys], dtype=np.str_)
    obstacles = {}
    for name in np.unique(benchmark):
        here = (benchmark == name) & ~np.isnan(scores)
        hits = accepts(scores[here], threshold)[:, None]
        sums = rate_sums(cluster_sums(hits, np.ones_like(hits), task[here], benchmark[here]))
        low = float(lower_limits(sums, 1 - confidence)[0]) if here.any() else 0.0
        obstacles[str(name)] = _obstacle(transport, low)
    return obstacles


def _obstacle(transport: Transport | None, accepted: float) -> str:
    if transport is None or not transport.allowed:
        return f"nor does it transfer there: {transport.reason if transport else 'not tested'}"
    if transport.equivalence is None:
        return (
            "nor does it transfer there: the decision rests on a test that could not tell equal "
            "rates from too few labels: select anew"
        )
    least, limit = transport.least_success_rate, transport.false_positive_limit
    if least is None or limit is None or limit >= 1:
        return ""
    shown = max(0.0, (accepted - limit) / (1 - limit))
    if shown >= least:
        return ""
    return (
        f"and it transfers only where at least {100 * least:.1f} % of the rollouts succeed: "
        f"its verdicts there show {100 * shown:.1f} %"
    )
