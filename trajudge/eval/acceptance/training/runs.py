"""The runs that may become training data, listed while they are accepted or rejected."""

from __future__ import annotations

from collections import Counter

from trajudge.eval.acceptance.acceptance import OK, AcceptanceFilter, AcceptDecision
from trajudge.eval.acceptance.conversations import ChatTurn, without_observation
from trajudge.eval.acceptance.training.choosing import JudgedRun, written_hash
from trajudge.eval.acceptance.training.formats import FORMATS
from trajudge.eval.acceptance.training.settings import TrainingConfig
from trajudge.trajectories.model import Trajectory
from trajudge.util.errors import UserError


class RunCollector:
    """Lists what may become training data; ``agents`` counts the accepted runs of each.

    Raises UserError for a ``rejected_below`` above the threshold.
    """

    def __init__(
        self, config: TrainingConfig | None, choice: AcceptanceFilter, bare_turns: bool
    ) -> None:
        self.listed: list[JudgedRun] = []
        self.agents: Counter[str] = Counter()
        self.both = config is not None and FORMATS[config.format].both
        below = None if config is None else config.rejected_below
        below = choice.threshold if below is None else below
        if below > choice.threshold:
            raise UserError(
                f"--rejected-below {below:g} is above the threshold {choice.threshold:g}: "
                "accepted runs would be examples of failure"
            )
        self._below = below
        self._bare_turns = bare_turns
        self._screenshots = config is not None and config.with_screenshots

    def __call__(
        self, trajectory: Trajectory, decision: AcceptDecision, turns: list[ChatTurn]
    ) -> None:
        """Count an accepted run's agent, and list the run; a clearly rejected one where the format
        learns from both."""
        if decision.kind == OK:
            self.agents[trajectory.key.agent] += 1
        if decision.kind != OK and not self._is_failure(trajectory, decision, turns):
            return
        written = written_hash(turns, trajectory.goal)
        score = 0.0 if decision.score is None else decision.score
        self.listed.append(JudgedRun(trajectory.key, score, decision.kind == OK, written))

    def _is_failure(
        self, trajectory: Trajectory, decision: AcceptDecision, turns: list[ChatTurn]
    ) -> bool:
        return (
            self.both
            and decision.kind == "below the threshold"
            and decision.score is not None
            and decision.score < self._below
            and bool(turns)
            and (
                self._bare_turns
                or not without_observation(trajectory, screenshots=self._screenshots)[0]
            )
        )
