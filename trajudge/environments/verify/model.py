"""What verification finds: facts, and the labels that follow from them."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from trajudge.trajectories.model import Record

Cell = str | int | float


class Predicate(Record):
    """One expectation on the difference. ``name`` is the expectation as it is written in the
    scenario, so that it is the same in every configuration; it ``holds`` if exactly ``wanted``
    changes meet it."""

    name: str
    holds: bool
    found: int
    wanted: int


class ChangeFact(Record):
    """One row that appeared, went or changed. ``inside``: asked for or permitted; for a row that
    changed, ``columns`` names the columns at fault if it is outside, else those that changed."""

    kind: Literal["added", "removed", "changed"]
    table: str
    key: str
    columns: tuple[str, ...]
    before: dict[str, Cell]
    after: dict[str, Cell]
    inside: bool


class AnswerFact(Record):
    """One thing that was asked for, and what the last message offered.

    ``expected`` is written as the pages write it; empty, the state has no right answer. ``found``
    are the values of the message, as they stand in it. ``right`` None: open to argument;
    ``reason`` says why it is not right.
    """

    kind: str
    expected: tuple[str, ...]
    found: tuple[str, ...]
    right: bool | None
    reason: str = ""


class Labels(NamedTuple):
    """What an expert would say of a run (AgentRewardBench section 3.2); None: open to argument,
    and excluded from scoring. ``optimality`` is 1 (complete failure) to 4 (completely optimal)."""

    success: bool | None
    side_effect: bool | None
    repetition: bool | None
    optimality: int | None


class VerificationResult(Record):
    """Labels of a run and the facts they rest on.

    ``repeated`` is how often the most frequent idle action was executed; ``steps`` and ``shortest``
    count actions, of the run and of the shortest way (0: not known).
    """

    labels: Labels
    predicates: tuple[Predicate, ...]
    answers: tuple[AnswerFact, ...]
    changes: tuple[ChangeFact, ...]
    repeated: int
    steps: int
    shortest: int

    @property
    def outside(self) -> tuple[ChangeFact, ...]:
        """The changes that nobody asked for."""
        return tuple(change for change in self.changes if not change.inside)

    @property
    def facts(self) -> dict[str, Any]:
        """What the labels rest on, as JSON."""
        return self.model_dump(mode="json", exclude={"labels"})
