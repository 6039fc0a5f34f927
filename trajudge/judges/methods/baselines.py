"""Judges without a model: the benchmark's own reward, and a few rules over the steps.

They cost nothing, and say what a model has to beat.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from trajudge.judges.model import Judge, ModelClient, Skipped, Verdict
from trajudge.trajectories.model import Record, Trajectory
from trajudge.trajectories.needs import Needs


class RuleBasedOptions(Record):
    """None: the threshold is the benchmark's."""

    @property
    def needs(self) -> Needs:
        return Needs(requires=("official reward",))


class HeuristicOptions(Record):
    """Chosen on AgentRewardBench's dev split.

    ``cycle_repeats``: a sequence of at most ``cycle_length`` (url, action) that occurs this many
    times on end is a cycle. ``commitments``: steps whose reasoning announces a committing action
    (submit, buy, delete, ...) from which on a side effect is suspected.
    """

    cycle_length: int = 4
    cycle_repeats: int = 3
    commitments: int = 2

    @property
    def needs(self) -> Needs:
        return Needs(answer=True, requires=("step",))


_GIVES_UP = re.compile(
    r"\b(?:unable|cannot|can['’]t|could(?: not|n['’]t)|not able|impossible|not possible|"
    r"unfortunately|sorry|not available|no results|error|(?:did(?: not|n['’]t)|not) f(?:i|ou)nd)\b",
    re.IGNORECASE,
)
_COMMITS = re.compile(
    r"\b(?:submit|delete|purchase|place (?:the |an )?order|post|save|add to cart|buy)",
    re.IGNORECASE,
)
_REFUSAL = "report_infeasible("


def rule_based(options: RuleBasedOptions) -> Judge:
    """Make the rule-based judge: success is an official reward above 0.5 (AgentRewardBench section
    5); the score is the reward. Skipped where the trajectory has none."""

    async def judge(trajectory: Trajectory, ask: ModelClient) -> Verdict:
        reward = trajectory.official_reward
        if reward is None:
            raise Skipped(f"{trajectory.key}: no official reward is recorded")
        return Verdict(success=reward > 0.5, score=min(1.0, max(0.0, reward)))

    return judge


def heuristic(options: HeuristicOptions) -> Judge:
    """Make the heuristic judge, which applies rules over the steps in this order:

    - not finished by itself (out of steps, or no sign of an end): no success, score 0;
    - the score starts at 1 and halves for each doubt: the answer is empty or says that something
      could not be done, the last action declares the task infeasible, the run ends on a page error,
      the run went in circles; success is a score of 1;
    - repetition: out of steps, or a cycle of (url, action);
    - side effect: the reasoning of several steps announces an action that commits.

    Skipped where the trajectory has no step.
    """

    async def judge(trajectory: Trajectory, ask: ModelClient) -> Verdict:
        if not trajectory.steps:
            raise Skipped(f"{trajectory.key}: no step is recorded")
        cycle = cycle_repeats(_acted(trajectory), options.cycle_length) >= options.cycle_repeats
        doubts = [text for text in _doubts(trajectory, cycle) if text]
        finished = _finished(trajectory)
        committing = sum(bool(_COMMITS.search(s.reasoning or "")) for s in trajectory.steps)
        return Verdict(
            success=finished and not doubts,
            side_effect=committing >= options.commitments,
            repetition=cycle or bool(trajectory.truncated),
            score=0.5 ** len(doubts) if finished else 0.0,
            reasoning="; ".join(doubts if finished else ["did not finish by itself", *doubts]),
        )

    return judge


def _acted(trajectory: Trajectory) -> list[tuple[str | None, str]]:
    return [(s.observation.url, s.action.strip()) for s in trajectory.steps if s.action]


def _finished(trajectory: Trajectory) -> bool:
    """Tell whether the run ended before the budget: by the environment, or else because an answer
    was given."""
    if trajectory.truncated:
        return False
    return bool(trajectory.terminated or trajectory.answer)


def gives_up(answer: str) -> bool:
    """Tell whether an answer says that something could not be done."""
    return _GIVES_UP.search(answer) is not None


def declared_infeasible(trajectory: Trajectory) -> bool:
    """Tell whether the last action declares that the task cannot be done."""
    actions = [action for _, action in _acted(trajectory)]
    return bool(actions) and actions[-1].startswith(_REFUSAL)


def _doubts(trajectory: Trajectory, cycle: bool) -> Sequence[str | None]:
    answer = trajectory.answer
    return (
        "the answer is empty" if answer is not None and not answer.strip() else None,
        "the answer says that it failed" if answer and gives_up(answer) else None,
        "declared infeasible" if declared_infeasible(trajectory) else None,
        "ended on a page error" if trajectory.final.page_error else None,
        "went in circles" if cycle else None,
    )


def cycle_repeats(acted: Sequence[tuple[str | None, str]], longest: int) -> int:
    """Count the consecutive repeats of the most repeated sequence of 1 to ``longest`` actions."""
    best = min(1, len(acted))
    for period in range(1, longest + 1):
        same = 0
        for position in range(period, len(acted)):
            same = same + 1 if acted[position] == acted[position - period] else 0
            best = max(best, same // period + 1)
    return best
