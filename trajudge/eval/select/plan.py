"""The plan of a selection: candidates, target, correction and prices, frozen in a file before a
label is read. Whoever looks at the labels first and names the candidates then has no guarantee.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Literal

import orjson
from pydantic import Field, model_validator

from trajudge.eval.select.measures.under_attack import CONFIDENCE, Threat
from trajudge.trajectories.model import Record, Seed
from trajudge.util.errors import UserError
from trajudge.util.files import save_bytes
from trajudge.util.validation import read_record

FORMAT: Literal[1] = 1
FILE = "candidates.json"

Correction = Literal["fixed-sequence", "max-t"]
Scope = Literal["overall", "every-benchmark"]


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

    format: Literal[1] = FORMAT
    target: Target
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    correction: Correction = "fixed-sequence"
    scope: Scope = "overall"
    split: Literal["dev", "test", "all"] = "all"
    seed: Seed = 0
    prices: Prices = Prices()
    families: tuple[CandidateFamily, ...] = Field(min_length=1)
    judgments: str = ""
    margin: float = Field(0.1, gt=0, lt=1)
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
        if self.target.kind != "precision" or self.confidence > CONFIDENCE:
            raise ValueError(f"a threat bounds precision, with a confidence of {CONFIDENCE:g}")
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
