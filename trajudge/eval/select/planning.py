"""Make a plan from its settings, or open a frozen one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from trajudge.eval.select.measures.scores import (
    family,
    judge_scores,
    judgments_hash,
    measured_prices,
)
from trajudge.eval.select.measures.under_attack import CONFIDENCE
from trajudge.eval.select.plan import (
    CandidateFamily,
    Prices,
    Rule,
    SelectionPlan,
    Target,
    read_plan,
)
from trajudge.eval.select.settings import PlanConfig, SelectConfig
from trajudge.judges.model import Judgment
from trajudge.util.errors import UserError


def open_plan(config: SelectConfig) -> SelectionPlan:
    """Read the plan of ``--candidates``. Raises UserError if a setting contradicts it."""
    if config.candidates is None:
        raise UserError("no plan: name its file with --candidates FILE")
    for name, default in PlanConfig():
        if getattr(config.plan, name) != default:
            raise UserError(
                f"--{name.replace('_', '-')} belongs to the plan, which --candidates "
                f"{config.candidates} has frozen: leave one of them out"
            )
    return read_plan(config.candidates)


def make_plan(config: PlanConfig, judgments: Sequence[Judgment]) -> SelectionPlan:
    """Make a plan from the settings; thresholds and measured prices from the judgments, no label.

    Raises UserError for an unknown judge, and for a value out of its range.
    """
    prices = measured_prices(judgments)
    chosen = _known_judges(config.judge or sorted(prices), prices, "--judge")
    fields: dict[str, Any] = {
        "confidence": config.confidence,
        "correction": config.correction,
        "scope": "every-benchmark" if config.every_benchmark else None,
        "split": config.split,
        "seed": config.seed,
        "margin": config.margin,
        "threat": config.threat,
    }
    _check_range("--margin", config.margin, 0, 1)
    _check_range("--confidence", config.confidence, 0.5, 1)
    if config.threat:
        _check_threat(config)
    return SelectionPlan(
        target=_target(config),
        prices=_prices(config, prices),
        families=_families(config, chosen, judgments),
        judgments=judgments_hash(judgments),
        **{name: value for name, value in fields.items() if value is not None},
    )


def _check_threat(config: PlanConfig) -> None:
    """Raise UserError for what was not measured under attack: robustness is that of verdicts."""
    combined = {"panel": config.panel, "cascade": config.cascade, "thresholds": config.thresholds}
    for name, values in combined.items():
        if values:
            raise UserError(
                f"--threat {config.threat}: leave --{name} out: robustness is measured for the "
                "verdicts of judges (a panel is a judge of its own: trajudge judge --judge panel)"
            )
    if config.target_precision is None:
        raise UserError(f"--threat {config.threat}: give --target-precision RATE, which it bounds")
    if config.confidence is not None and config.confidence > CONFIDENCE:
        raise UserError(
            f"--confidence {config.confidence:g}: limits under attack are measured at "
            f"{CONFIDENCE:g}: with --threat give at most that"
        )


def _target(config: PlanConfig) -> Target:
    _check_range("--target-precision", config.target_precision, 0, 1)
    _check_range("--max-false-positives", config.max_false_positives, 0, 1)
    if config.target_precision is not None:
        return Target(kind="precision", rate=config.target_precision)
    if config.max_false_positives is not None:
        return Target(kind="false-positive-rate", rate=config.max_false_positives)
    raise UserError("no target: give --target-precision RATE or --max-false-positives RATE")


def _check_range(option: str, value: float | None, low: float, high: float) -> None:
    if value is not None and not low < value < high:
        raise UserError(f"{option} {value:g}: give a number between {low:g} and {high:g}")


def _families(
    config: PlanConfig, chosen: Sequence[str], judgments: Sequence[Judgment]
) -> tuple[CandidateFamily, ...]:
    use: Literal["score", "verdict"] = "verdict" if config.threat else "score"
    scored = judge_scores(judgments, use)
    rules = [] if config.ensembles_only else [Rule(judges=(judge,), use=use) for judge in chosen]
    for kind in ("panel", "cascade"):
        for names in getattr(config, kind):
            members = [name.strip() for name in names.split(",") if name.strip()]
            if len(set(members)) < 2 or len(set(members)) < len(members):
                raise UserError(f"--{kind} {names}: name two judges or more, each once, as A,B")
            _known_judges(members, scored, f"--{kind}")
            rules.append(Rule(kind=kind, judges=tuple(members)))
    if not rules:
        raise UserError("--ensembles-only leaves no candidate: name a --panel or --cascade")
    families = [family(rule, scored) for rule in rules]
    if config.threat:  # of several samples the majority, as robustness counts them
        families = [_verdicts_alone(each) for each in families]
    named = _thresholds(config.thresholds, {each.name for each in families})
    return tuple(
        each.model_copy(update={"thresholds": named.get(each.name, each.thresholds)})
        for each in families
    )


def _verdicts_alone(known: CandidateFamily) -> CandidateFamily:
    """Keep the threshold that accepts what more than half of the samples accept."""
    majority = [each for each in known.thresholds if each > 0.5]
    return known.model_copy(update={"thresholds": (min(majority, default=1.0),)})


def _thresholds(entries: Sequence[str], names: set[str]) -> dict[str, tuple[float, ...]]:
    """Read ``JUDGE=T,T,…`` as thresholds, strict to loose."""
    thresholds = {}
    for entry in entries:
        name, equals, values = entry.rpartition("=")
        numbers = [_number("--thresholds", entry, value) for value in values.split(",")]
        if not equals or not all(0 < number <= 1 for number in numbers):
            raise UserError(
                f"--thresholds {entry}: write JUDGE=T,T with numbers above 0 and at most 1"
            )
        if name not in names:
            raise UserError(
                f"--thresholds {entry}: no candidate {name!r}: there are {', '.join(sorted(names))}"
            )
        thresholds[name] = tuple(sorted(set(numbers), reverse=True))
    return thresholds


def _prices(config: PlanConfig, measured: Mapping[str, float | None]) -> Prices:
    judgments = dict(measured)
    for entry in config.judgment_price:
        name, equals, value = entry.rpartition("=")
        amount = _amount("--judgment-price", _number("--judgment-price", entry, value))
        judges = _known_judges([name], measured, "--judgment-price") if equals else list(judgments)
        judgments.update(dict.fromkeys(judges, amount))
    rollout, training = config.rollout_price, config.training_price
    return Prices(
        rollout=None if rollout is None else _amount("--rollout-price", rollout),
        training=0.0 if training is None else _amount("--training-price", training),
        judgments=judgments,
    )


def _known_judges(names: Sequence[str], known: Mapping[str, object], option: str) -> Sequence[str]:
    for name in names:
        if name not in known:
            raise UserError(
                f"{option} {name}: no judgments of that judge are given: there are those of "
                f"{', '.join(sorted(known))}"
            )
    return list(dict.fromkeys(names))


def _number(option: str, entry: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UserError(f"{option} {entry}: {text!r} is not a number") from None


def _amount(option: str, value: float) -> float:
    if not 0 <= value < float("inf"):
        raise UserError(f"{option} {value:g}: give an amount of dollars of at least 0")
    return value
