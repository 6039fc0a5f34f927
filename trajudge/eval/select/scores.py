"""Rules that score trajectories, and what asking their judges costs. No label is read here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from trajudge.eval.store.run_folder import judgment_line
from trajudge.judges.model import Judgment, Status
from trajudge.stats.intervals import Bools, Floats
from trajudge.trajectories.model import Record, TrajectoryKey
from trajudge.util.errors import UserError

JudgeScores = Mapping[TrajectoryKey, float]
# Votes of a panel are thirds; what a person writes as a threshold is rounded.
_TOLERANCE = 1e-9
_MOST_THRESHOLDS = 12


class Rule(Record):
    """How judgments become one score in [0, 1] of a trajectory.

    ``judge``: its score, or where it gives none its verdict (several samples: their mean).
    ``panel``: the mean over several judges. ``cascade``: the last judge's, asked only where all
    before it score at least ``gate``, else 0. A failed judgment scores 0: it accepts nothing.
    """

    kind: Literal["judge", "panel", "cascade"] = "judge"
    judges: tuple[str, ...] = Field(min_length=1)
    use: Literal["score", "verdict"] = "score"
    gate: float = Field(default=0.5, gt=0, le=1)

    @model_validator(mode="after")
    def _as_many_as_its_kind(self) -> Rule:
        if (self.kind == "judge") != (len(self.judges) == 1):
            raise ValueError("a judge is one, a panel or cascade are several")
        if len(set(self.judges)) != len(self.judges):
            raise ValueError("a judge is named twice")
        return self


def rule_name(rule: Rule) -> str:
    """Name the rule as tables do."""
    joint = {"judge": "", "panel": " + ", "cascade": " then "}[rule.kind]
    return joint.join(rule.judges) + (" (verdict)" if rule.use == "verdict" else "")


def judge_scores(judgments: Iterable[Judgment], use: str = "score") -> dict[str, JudgeScores]:
    """Map judge -> trajectory -> score in [0, 1], the mean over the samples that answered."""
    samples: dict[str, dict[TrajectoryKey, list[float]]] = defaultdict(lambda: defaultdict(list))
    for judgment in judgments:
        scores = samples[judgment.judge][judgment.key]
        value = judged_score(judgment, use)
        if value is not None:
            scores.append(value)
    return {
        judge: {key: sum(scores) / len(scores) if scores else 0.0 for key, scores in by_key.items()}
        for judge, by_key in samples.items()
    }


def judged_score(judgment: Judgment, use: str = "score") -> float | None:
    """Return the score or verdict; None where the judgment failed or answered neither."""
    if judgment.status is not Status.OK:
        return None
    if use == "score" and judgment.score is not None:
        return judgment.score
    return None if judgment.success is None else float(judgment.success)


def rule_scores(
    rule: Rule, scored: Mapping[str, JudgeScores], keys: Sequence[TrajectoryKey]
) -> Floats:
    """Compute the rule's score of every key, (N,); ``nan`` where a judge that it needs has not
    judged."""
    members = np.stack([_column(scored, judge, keys) for judge in rule.judges])
    if rule.kind != "cascade":
        return np.asarray(members.mean(axis=0))
    # A judge is asked only where all before it let the trajectory through.
    reached, combined = ~np.isnan(members[0]), members[-1].copy()
    for scores in members[:-1]:
        passed = accepts(scores, rule.gate)
        combined = np.where(reached & ~passed & ~np.isnan(scores), 0.0, combined)
        reached &= passed
    combined = np.where(np.isnan(members[0]), np.nan, combined)
    if np.isnan(combined[reached]).any():
        # Some that got through were never judged: the rest alone would be a biased choice.
        combined = np.where(np.isnan(members).any(axis=0), np.nan, combined)
    return np.asarray(combined)


def _column(scored: Mapping[str, JudgeScores], judge: str, keys: Sequence[TrajectoryKey]) -> Floats:
    if judge not in scored:
        known = ", ".join(sorted(scored)) or "none"
        raise UserError(f"no judgments of {judge!r} are given: there are those of {known}")
    mine = scored[judge]
    return np.array([mine.get(key, np.nan) for key in keys], dtype=float)


def accepts(scores: Floats, threshold: float) -> Bools:
    """Find which scores (N,) reach the threshold; a missing score does not."""
    return np.asarray(np.nan_to_num(scores, nan=-1.0) >= threshold - _TOLERANCE)


def accepts_score(score: float, threshold: float) -> bool:
    """Return whether one score reaches the threshold."""
    return score >= threshold - _TOLERANCE


def price(
    rule: Rule,
    scored: Mapping[str, JudgeScores],
    keys: Sequence[TrajectoryKey],
    prices: Mapping[str, float | None],
) -> float | None:
    """Compute dollars per trajectory: of a cascade each judge for the share that reaches it; None
    where a price is not known."""
    reached, total = np.ones(len(keys), dtype=bool), 0.0
    for judge in rule.judges:
        each = prices.get(judge)
        if each is None or not len(keys):
            return None
        total += each * float(reached.mean())
        if rule.kind == "cascade":
            reached &= accepts(_column(scored, judge, keys), rule.gate)
    return total


def measured_prices(judgments: Iterable[Judgment]) -> dict[str, float | None]:
    """Map judge -> mean dollars per trajectory, None where the price of any call is not known."""
    costs: dict[str, list[float | None]] = defaultdict(list)
    keys: dict[str, set[TrajectoryKey]] = defaultdict(set)
    for judgment in judgments:
        costs[judgment.judge] += [call.cost for call in judgment.calls]
        keys[judgment.judge].add(judgment.key)
    prices: dict[str, float | None] = {}
    for judge, paid in costs.items():
        known = [cost for cost in paid if cost is not None]
        prices[judge] = sum(known) / len(keys[judge]) if len(known) == len(paid) else None
    return prices


def default_thresholds(rule: Rule, scored: Mapping[str, JudgeScores]) -> tuple[float, ...]:
    """Return the scores that occur, strict to loose, at most 12 of them, evenly spread over the
    trajectories (which takes no label); the looser half of a judge's scale, below one half, is
    left out because it contradicts the judge's own verdict."""
    keys = sorted(set().union(*(scored.get(j, {}) for j in rule.judges)), key=lambda k: k.order)
    combined = rule_scores(rule, scored, keys)
    upper = combined[combined >= 0.5]
    values = np.unique(upper)
    if len(values) > _MOST_THRESHOLDS:
        spread = np.linspace(0, 1, _MOST_THRESHOLDS)
        values = np.unique(np.quantile(upper, spread, method="inverted_cdf"))
    return tuple(float(value) for value in values[::-1]) or (1.0,)


def judgments_hash(judgments: Iterable[Judgment]) -> str:
    """Compute SHA-256 (hexadecimal) over all judgments, whatever their order."""
    lines = sorted(judgment_line(judgment) for judgment in judgments)
    return sha256(b"".join(lines)).hexdigest()
