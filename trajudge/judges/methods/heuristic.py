"""A few written rules over the steps, which a model has to beat."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trajudge.judges.model import Model, Skipped, Verdict
from trajudge.judges.registry import register_judge
from trajudge.trajectories.actions import declares_infeasible, gives_up
from trajudge.trajectories.model import Record, Trajectory
from trajudge.trajectories.needs import Needs

_COMMITS = re.compile(
    r"\b(?:submit|delete|purchase|place (?:the |an )?order|post|save|add to cart|buy)",
    re.IGNORECASE,
)


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


@register_judge(
    "heuristic",
    HeuristicOptions,
    summary="documented rules over the steps",
    needs_model=False,
)
class Heuristic:
    """Applies rules over the steps in this order:

    - not finished by itself (out of steps, or no sign of an end): no success, score 0;
    - the score starts at 1 and halves for each doubt: the answer is empty or says that something
      could not be done, the last action declares the task infeasible, the run ends on a page error,
      the run went in circles; success is a score of 1;
    - repetition: out of steps, or a cycle of (url, action);
    - side effect: the reasoning of several steps announces an action that commits.
    """

    def __init__(self, options: HeuristicOptions) -> None:
        self._options = options

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Apply the rules. Raises Skipped where the trajectory has no step."""
        if not trajectory.steps:
            raise Skipped(f"{trajectory.key}: no step is recorded")
        options, acted = self._options, _acted(trajectory)
        cycle = cycle_repeats(acted, options.cycle_length) >= options.cycle_repeats
        doubts = [text for text in _doubts(trajectory, cycle) if text]
        # Before the budget: by the environment, or else because an answer was given.
        finished = not trajectory.truncated and bool(trajectory.terminated or trajectory.answer)
        committing = sum(bool(_COMMITS.search(s.reasoning or "")) for s in trajectory.steps)
        return Verdict(
            success=finished and not doubts,
            side_effect=committing >= options.commitments,
            repetition=cycle or bool(trajectory.truncated),
            score=0.5 ** len(doubts) if finished else 0.0,
            reasoning="; ".join(doubts if finished else ["did not finish by itself", *doubts]),
        )


def _acted(trajectory: Trajectory) -> list[tuple[str | None, str]]:
    return [(s.observation.url, s.action.strip()) for s in trajectory.steps if s.action]


def _doubts(trajectory: Trajectory, cycle: bool) -> Sequence[str | None]:
    answer, actions = trajectory.answer, [step.action for step in trajectory.steps]
    return (
        "the answer is empty" if answer is not None and not answer.strip() else None,
        "the answer says that it failed" if answer and gives_up(answer) else None,
        "declared infeasible" if declares_infeasible(actions) else None,
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
