"""The plan of a selection: candidates, target and prices, frozen in a file before a
label is read. Whoever looks at the labels first and names the candidates then has no guarantee.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Literal

import orjson
from pydantic import Field, model_validator

from trajudge.eval.select.scores import (
    Rule,
    default_thresholds,
    judge_scores,
    judgments_hash,
    measured_prices,
    rule_name,
)
from trajudge.eval.select.settings import PlanConfig, SelectConfig, Threat
from trajudge.judges.model import Judgment
from trajudge.trajectories.model import Record, Seed
from trajudge.util.errors import UserError
from trajudge.util.files import save_bytes
from trajudge.util.validation import read_record

FILE = "candidates.json"
THREAT_CONFIDENCE = 0.95
"""Of the limits in ``robustness.json``: they hold for all attacks on one judge at once."""

Scope = Literal["overall", "every-benchmark"]


class CandidateFamily(Record):
    """One rule with its thresholds, strict to loose: a trajectory is accepted where the rule's
    score is at least the threshold."""

    name: str
    rule: Rule
    thresholds: tuple[float, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _strict_to_loose(self) -> CandidateFamily:
        if not all(0 < each <= 1 for each in self.thresholds):
            raise ValueError("a threshold lies above 0 and is at most 1")
        if any(a <= b for a, b in zip(self.thresholds, self.thresholds[1:], strict=False)):
            raise ValueError("thresholds go from the largest to the smallest")
        return self


class Target(Record):
    """``precision``: of the accepted trajectories at least ``rate`` succeeded.
    ``false-positive-rate``: of the failed trajectories at most ``rate`` are accepted."""

    kind: Literal["precision", "false-positive-rate"] = "precision"
    rate: float = Field(gt=0, lt=1)


class Prices(Record):
    """US dollars. ``judgments``: of one trajectory, by judge; None or absent: not known."""

    rollout: float | None = Field(default=None, ge=0)
    training: float = Field(default=0.0, ge=0)
    judgments: dict[str, float | None] = Field(default_factory=dict)


class SelectionPlan(Record):
    """What will be tested. ``judgments`` is the hash of those it was made from; ``margin`` is how
    far rates may differ between benchmarks that count as equivalent. ``threat``: who attacks; the
    target must hold under attack too, and every candidate is the verdict of one judge."""

    format: Literal[1] = 1
    target: Target
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    scope: Scope = "overall"
    split: Literal["dev", "test", "all"] = "all"
    seed: Seed = 0
    prices: Prices = Prices()
    families: tuple[CandidateFamily, ...] = Field(min_length=1)
    judgments: str = ""
    margin: float = Field(default=0.1, gt=0, lt=1)
    threat: Threat | None = None

    @model_validator(mode="after")
    def _names_are_distinct(self) -> SelectionPlan:
        names = [family.name for family in self.families]
        if len(set(names)) != len(names):
            raise ValueError("two families have the same name")
        return self

    @model_validator(mode="after")
    def _attacked_as_measured(self) -> SelectionPlan:
        if self.threat is None:
            return self
        rules = [family.rule for family in self.families]
        if any(rule.kind != "judge" or rule.use != "verdict" for rule in rules):
            raise ValueError("with a threat, every candidate is the verdict of one judge")
        if self.target.kind != "precision" or self.confidence > THREAT_CONFIDENCE:
            raise ValueError(
                f"a threat bounds precision, with a confidence of {THREAT_CONFIDENCE:g}"
            )
        return self

    @property
    def candidates(self) -> tuple[tuple[CandidateFamily, float], ...]:
        """Every family with each of its thresholds, in order."""
        return tuple((f, threshold) for f in self.families for threshold in f.thresholds)

    @property
    def groups(self) -> list[list[int]]:
        """The positions in ``candidates`` of every family, strict to loose."""
        groups, first = [], 0
        for family in self.families:
            groups.append(list(range(first, first + len(family.thresholds))))
            first += len(family.thresholds)
        return groups

    @property
    def hash(self) -> str:
        """SHA-256 (hexadecimal) of the canonical JSON."""
        content = orjson.dumps(self.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS)
        return sha256(content).hexdigest()


def read_plan(path: Path) -> SelectionPlan:
    """Read a frozen plan. Raises UserError naming file, field and value."""
    return read_record(path, SelectionPlan, "name a plan that --freeze wrote, or correct it")


def freeze(path: Path, plan: SelectionPlan) -> None:
    """Write the plan, once: a file that holds another one is not replaced.

    Raises UserError if it does, or if it cannot be written.
    """
    if not path.exists():
        content = orjson.dumps(plan.model_dump(mode="json"), option=orjson.OPT_INDENT_2)
        save_bytes(path, content + b"\n")
    elif read_plan(path) != plan:
        raise UserError(
            f"{path}: holds another plan, and a frozen plan is not changed: choose another "
            "folder with --out, or use it as it is with --candidates"
        )


def open_plan(config: SelectConfig) -> SelectionPlan | None:
    """Read the plan of ``--candidates``, None without it. Raises UserError if a setting
    contradicts it."""
    if config.candidates is None:
        return None
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
    _check_judges(config.judge, prices, "--judge")
    if config.threat:
        _check_threat(config)
    return SelectionPlan(
        target=_target(config),
        confidence=config.confidence,
        scope="every-benchmark" if config.every_benchmark else "overall",
        split=config.split,
        seed=config.seed,
        prices=_prices(config, prices),
        families=_families(config, judgments, sorted(prices)),
        judgments=judgments_hash(judgments),
        margin=config.margin,
        threat=config.threat,
    )


def _check_threat(config: PlanConfig) -> None:
    """Raise UserError for what was not measured under attack: robustness is that of verdicts."""
    for name in ("panel", "cascade", "thresholds"):
        if getattr(config, name):
            raise UserError(
                f"--threat {config.threat}: leave --{name} out: robustness is measured for the "
                "verdicts of judges (a panel is a judge of its own: trajudge judge --judge panel)"
            )
    if config.target_precision is None:
        raise UserError(f"--threat {config.threat}: give --target-precision RATE, which it bounds")
    if config.confidence > THREAT_CONFIDENCE:
        raise UserError(
            f"--confidence {config.confidence:g}: limits under attack are measured at "
            f"{THREAT_CONFIDENCE:g}: with --threat give at most that"
        )


def _target(config: PlanConfig) -> Target:
    if config.target_precision is not None:
        return Target(kind="precision", rate=config.target_precision)
    if config.max_false_positives is not None:
        return Target(kind="false-positive-rate", rate=config.max_false_positives)
    raise UserError("no target: give --target-precision RATE or --max-false-positives RATE")


def _families(
    config: PlanConfig, judgments: Sequence[Judgment], judges: Sequence[str]
) -> tuple[CandidateFamily, ...]:
    use: Literal["score", "verdict"] = "verdict" if config.threat else "score"
    scored = judge_scores(judgments, use)
    alone = [] if config.ensembles_only else dict.fromkeys(config.judge or judges)
    rules = [Rule(judges=(judge,), use=use) for judge in alone]
    for kind in ("panel", "cascade"):
        for names in getattr(config, kind):
            members = [name.strip() for name in names.split(",") if name.strip()]
            if len(members) < 2 or len(set(members)) < len(members):
                raise UserError(f"--{kind} {names}: name two judges or more, each once, as A,B")
            _check_judges(members, scored, f"--{kind}")
            rules.append(Rule(kind=kind, judges=tuple(members)))
    if not rules:
        raise UserError("--ensembles-only leaves no candidate: name a --panel or --cascade")
    by_name = {rule_name(rule): rule for rule in rules}
    thresholds = {name: default_thresholds(rule, scored) for name, rule in by_name.items()}
    if config.threat:  # of several samples the majority, as robustness counts them
        for name, each in thresholds.items():
            thresholds[name] = (min((t for t in each if t > 0.5), default=1.0),)
    thresholds |= _named_thresholds(config.thresholds, by_name)
    return tuple(
        CandidateFamily(name=name, rule=rule, thresholds=thresholds[name])
        for name, rule in by_name.items()
    )


def _named_thresholds(
    entries: Sequence[str], names: Mapping[str, object]
) -> dict[str, tuple[float, ...]]:
    """Read ``JUDGE=T,T,…`` as thresholds, strict to loose."""
    thresholds = {}
    for entry in entries:
        name, equals, values = entry.rpartition("=")
        numbers = {_number("--thresholds", entry, value) for value in values.split(",")}
        if not equals or not all(0 < number <= 1 for number in numbers):
            raise UserError(
                f"--thresholds {entry}: write JUDGE=T,T with numbers above 0 and at most 1"
            )
        if name not in names:
            raise UserError(
                f"--thresholds {entry}: no candidate {name!r}: there are {', '.join(sorted(names))}"
            )
        thresholds[name] = tuple(sorted(numbers, reverse=True))
    return thresholds


def _prices(config: PlanConfig, measured: Mapping[str, float | None]) -> Prices:
    judgments = dict(measured)
    for entry in config.judgment_price:
        name, equals, value = entry.rpartition("=")
        amount = _number("--judgment-price", entry, value)
        if not 0 <= amount < float("inf"):
            raise UserError(f"--judgment-price {entry}: give an amount of dollars of at least 0")
        if equals:
            _check_judges([name], measured, "--judgment-price")
        judgments.update(dict.fromkeys([name] if equals else judgments, amount))
    return Prices(rollout=config.rollout_price, training=config.training_price, judgments=judgments)


def _check_judges(names: Iterable[str], known: Mapping[str, object], option: str) -> None:
    for name in names:
        if name not in known:
            raise UserError(
                f"{option} {name}: no judgments of that judge are given: there are those of "
                f"{', '.join(sorted(known))}"
            )


def _number(option: str, entry: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UserError(f"{option} {entry}: {text!r} is not a number") from None
