"""The benchmark's own reward as a judge: it costs nothing, and says what a model has to beat."""

from __future__ import annotations

from trajudge.judges.model import Model, Skipped, Verdict
from trajudge.judges.registry import register_judge
from trajudge.trajectories.model import Record, Trajectory
from trajudge.trajectories.needs import Needs


class RuleBasedOptions(Record):
    """None: the threshold is the benchmark's."""

    @property
    def needs(self) -> Needs:
        return Needs(requires=("official reward",))


@register_judge(
    "rule-based",
    RuleBasedOptions,
    summary="the benchmark's own reward, above 0.5",
    needs_model=False,
)
class RuleBased:
    """Success is an official reward above 0.5 (AgentRewardBench section 5); the score is the
    reward."""

    def __init__(self, options: RuleBasedOptions) -> None: ...

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Read the reward. Raises Skipped where the trajectory has none."""
        reward = trajectory.official_reward
        if reward is None:
            raise Skipped(f"{trajectory.key}: no official reward is recorded")
        return Verdict(success=reward > 0.5, score=min(1.0, max(0.0, reward)))
