"""What the stages hand on to each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from pydantic import Field

from trajudge.environments.model.case import Case, Vector
from trajudge.trajectories.model import Record, Seed
from trajudge.util.commands import MOST_CASES

Template = tuple[str, str]  # application and scenario


class SuiteSpecification(Record):
    """Specification of a suite: ``count`` cases of these applications (and one scenario of theirs,
    of a ``level`` or of exactly one ``vector``). ``noise`` lets configurations have noise."""

    apps: tuple[str, ...]
    scenario: str | None = None
    level: int | None = Field(default=None, ge=1, le=3)
    vector: Vector | None = None
    count: int = Field(default=20, ge=1, le=MOST_CASES)
    seed: Seed = 0
    noise: bool = False

    def wants(self, case: Case) -> bool:
        """Tell whether the measured difficulty is the one asked for."""
        return self.level in (None, case.level) and self.vector in (None, case.vector)


class Proposal(Record):
    """Something that a model proposed and that was dropped, or why it proposed nothing."""

    app: str
    scenario: str
    text: str
    reason: str


class GenerationPlan(NamedTuple):
    """Scenarios to draw from, in order, and the wordings that were accepted beside theirs."""

    templates: tuple[Template, ...]
    wordings: Mapping[Template, tuple[str, ...]]
    dropped: tuple[Proposal, ...] = ()


class Tally(NamedTuple):
    """What was counted on the way: configurations tried, rejects by (reason, detail), checked
    configurations of another difficulty, and the vectors of all that were checked, by template."""

    tried: Counter[Template]
    rejects: Counter[tuple[str, str]]
    other: Counter[Template]
    vectors: Counter[tuple[Vector, str, str]]


class Produced(NamedTuple):
    """The cases in order, and the statistics. Fewer cases than asked for: there were no more to be
    found."""

    cases: tuple[Case, ...]
    tally: Tally
