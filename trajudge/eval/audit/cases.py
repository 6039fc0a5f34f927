"""Trajectories worth a look: everyone against the rule, or everyone against the expert."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from trajudge.eval.audit.errors import Verdicts
from trajudge.judges.model import Judgment
from trajudge.trajectories.model import Record, Trajectory, TrajectoryKey

LAST_STEPS = 3
EXCERPT = 600

Kind = Literal["rule", "annotation"]


class Opinion(Record):
    """What one judge said; ``reasoning`` is an excerpt."""

    judge: str
    success: bool
    reasoning: str


class Disagreement(Record):
    """``suspect`` stands alone: the rule against expert and judges, or the annotation against
    rule and judges. Goal, answer and last steps are there if the trajectories could be read."""

    suspect: Kind
    key: TrajectoryKey
    expert: bool
    rule: bool
    official_reward: float | None = None
    opinions: tuple[Opinion, ...]
    goal: str | None = None
    answer: str | None = None
    last_steps: tuple[str, ...] = ()


def find_cases(
    keys: Iterable[TrajectoryKey],
    expert: Verdicts,
    rule: Verdicts,
    judges: Mapping[TrajectoryKey, Sequence[Judgment]],
    rewards: Mapping[TrajectoryKey, float | None],
) -> list[Disagreement]:
    """Find, in the order of ``keys``, where rule and expert differ, and every judge (at least one)
    takes the same side. Judgments that failed have no side."""
    cases = []
    for key in keys:
        verdicts = [j for j in judges.get(key, ()) if j.success is not None]
        if expert[key] == rule[key] or len({j.success for j in verdicts}) != 1:
            continue
        cases.append(
            Disagreement(
                suspect="rule" if verdicts[0].success == expert[key] else "annotation",
                key=key,
                expert=expert[key],
                rule=rule[key],
                official_reward=rewards.get(key),
                opinions=tuple(_opinion(judgment) for judgment in verdicts),
            )
        )
    return cases


def with_evidence(case: Disagreement, trajectory: Trajectory) -> Disagreement:
    """Complete the case by what the agent was asked, answered and did last."""
    acted = [step for step in trajectory.steps if step.action is not None]
    return case.model_copy(
        update={
            "goal": trajectory.goal.strip(),
            "answer": trajectory.answer,
            "last_steps": tuple(
                f"{step.index + 1}. {(step.action or '').strip()[:EXCERPT]}"
                for step in acted[-LAST_STEPS:]
            ),
        }
    )


def _opinion(judgment: Judgment) -> Opinion:
    text = judgment.reasoning or (judgment.calls[-1].text if judgment.calls else "")
    return Opinion(
        judge=judgment.judge, success=bool(judgment.success), reasoning=text.strip()[:EXCERPT]
    )
