"""TRL's ``environment_factory``: an environment that is rewarded by what a judge says of its run.

    class Shop(JudgedEnvironment):
        def reset(self, goal: str, task: str, **_: Any) -> str:
            self._begin(goal, key=TrajectoryKey(benchmark="shop", agent="policy", task_id=task))
            return self._see(self.page())

        def click(self, element: str) -> str:
            "Click an element of the page."
            self._act(f"click({element!r})")
            return self._see(self.page())

TRL makes a tool of every public method, so those that record are private.
"""

from __future__ import annotations

from trajudge.rewards.rewarder import Rewarder
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey


class JudgedEnvironment:
    """Records its run, and awaits its reward from the judge; None where the judge abstains."""

    def __init__(self, rewarder: Rewarder) -> None:
        self._rewarder = rewarder
        self._run: Trajectory | None = None

    def _begin(self, goal: str, key: TrajectoryKey) -> None:
        """Begin a run anew."""
        self._run = Trajectory(key=key, raw_task_id=key.task_id, goal=goal)

    def _see(self, observation: Observation) -> str:
        """Take down the page that the policy sees next; return its accessibility tree."""
        run = self._begun()
        step = Step(index=len(run.steps), observation=observation)
        self._run = run.model_copy(update={"steps": (*run.steps, step)})
        return observation.axtree or ""

    def _act(self, action: str, reasoning: str | None = None) -> None:
        """Take down what the policy does on the page that it saw last."""
        run = self._begun()
        if not run.steps:
            raise RuntimeError("nothing was seen yet: call _see() first")
        told = {"action": action, "reasoning": reasoning}
        steps = (*run.steps[:-1], run.steps[-1].model_copy(update=told))
        self._run = run.model_copy(update={"steps": steps})

    def _answer(self, text: str) -> None:
        """Take down the policy's last message."""
        self._run = self._begun().model_copy(update={"answer": text, "terminated": True})

    async def get_reward(self) -> float | None:
        """Judge the run."""
        return (await self._rewarder.reward(self._begun())).value

    def _begun(self) -> Trajectory:
        if self._run is None:
            raise RuntimeError("no run was begun: call _begin() in reset()")
        return self._run
