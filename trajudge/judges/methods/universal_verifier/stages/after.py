"""The stages without effect on the verdict: failure points, and the validity of the task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trajudge.judges.methods.universal_verifier.attempts import StagePrompt, StageRunner
from trajudge.judges.methods.universal_verifier.history import acting_steps
from trajudge.judges.methods.universal_verifier.replies import assumed
from trajudge.judges.methods.universal_verifier.replies.evidence import in_order_of_time
from trajudge.judges.methods.universal_verifier.replies.failures import (
    FailureAnalysis,
    TaskValidity,
    action_space,
    parse_failures,
    parse_strict_validity,
    parse_validity,
    with_tool_rules,
)
from trajudge.judges.methods.universal_verifier.rubric_items import RubricItem, totals
from trajudge.judges.methods.universal_verifier.stages.evidence import Sighted
from trajudge.judges.methods.universal_verifier.stages.questions import Questions
from trajudge.judges.methods.universal_verifier.stages.scoring import Decided
from trajudge.trajectories.model import Trajectory

_NO_ANALYSIS = FailureAnalysis(
    reasoning="No reply held an analysis of failures.", has_failure=False
)


class Conclusion(NamedTuple):
    """What the stages before came to: the scored items, the evidence, the outcome."""

    items: Sequence[RubricItem]
    sighted: Sighted
    decided: Decided

    @property
    def values(self) -> dict[str, object]:
        """Return the conclusion as a template's variables."""
        return {
            "items": self.items,
            "evidence": in_order_of_time(self.sighted.evidence),
            "totals": totals(self.items),
            "outcome": self.decided.outcome,
            "speaker": self.decided.speaker,
        }


class Validity(NamedTuple):
    """The task as the run shows it, and as its words alone do."""

    after: TaskValidity
    before: TaskValidity


async def find_failures(
    runner: StageRunner,
    questions: Questions,
    trajectory: Trajectory,
    conclusion: Conclusion,
) -> FailureAnalysis:
    """Ask what went wrong, and where; no failure where no reply says. Raises CallFailed."""
    space = action_space(trajectory.metadata)
    question = StagePrompt(
        stage="failures",
        messages=questions.asked("failures", {"space": space, **conclusion.values}),
        parse=parse_failures,
        assume=assumed.FAILURES,
    )
    outcome = await runner.one(question)
    analysis = runner.settle("failures", outcome, None, lenient=True)
    if analysis is None:
        return _NO_ANALYSIS
    return with_tool_rules(analysis, acting_steps(trajectory), space)


async def check_task(runner: StageRunner, questions: Questions, conclusion: Conclusion) -> Validity:
    """Ask the light model whether the task is ambiguous or invalid, with the run and without.
    Raises CallFailed."""
    after = StagePrompt(
        stage="validity_after",
        messages=questions.asked("validity_after", conclusion.values),
        parse=parse_validity,
        assume=assumed.VALIDITY,
        light=True,
        nudged=False,
    )
    before = StagePrompt(
        stage="validity_before",
        messages=questions.asked("validity_before"),
        parse=parse_strict_validity,
        assume=assumed.VALIDITY,
        light=True,
    )
    outcomes = await runner.run([after, before])
    unknown = TaskValidity()
    return Validity(
        runner.settle("validity_after", outcomes[0], unknown, lenient=True),
        runner.settle("validity_before", outcomes[1], unknown, lenient=True),
    )
