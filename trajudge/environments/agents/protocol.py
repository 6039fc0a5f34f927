"""What an agent is to a recording: the job that it gets, its interface, and how its run may end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from trajudge.environments.agents.script import STEP_LIMIT, miss_name
from trajudge.environments.model.config import Config
from trajudge.environments.model.payload import Payload
from trajudge.environments.model.variant import MARK, RunVariant
from trajudge.trajectories.model import Record, TrajectoryKey

if TYPE_CHECKING:
    from trajudge.environments.chromium import AgentObservation


ENDING = 14  # actions that the ending of a variant has room for


class Job(Record):
    """What to record. ``goal`` replaces the scenario's wording; ``attempt`` tells runs of the same
    agent on the same configuration apart; ``shortest`` is the oracle's number of actions,
    ``fewest`` that of the shortest way where it is known. ``payload`` stands in the application's
    user content. ``variant`` says what is changed in a run that is recorded once more."""

    config: Config
    agent: str
    attempt: int = 0
    goal: str | None = None
    shortest: int
    fewest: int | None = None
    payload: Payload | None = None
    variant: RunVariant | None = None

    @property
    def budget(self) -> int:
        """The number of actions after which the run is cut off: twice the oracle's way and some,
        at most 50 (WebForge section 4.1); a variant may do more at its end."""
        further = 0 if self.variant is None else ENDING
        return min(STEP_LIMIT, 2 * self.shortest + 12) + further

    @property
    def key(self) -> TrajectoryKey:
        agent = miss_name(self.agent, self.attempt)
        return TrajectoryKey(
            benchmark=self.config.app,
            agent=agent if self.variant is None else f"{agent}{MARK}{self.variant}",
            task_id=self.config.id,
            attempt=0 if agent != self.agent else self.attempt,
        )


class GaveUp(Exception):
    """The agent ends its run without a word; the run counts. The message says what failed, "" where
    nothing did."""


class NotPlayed(Exception):
    """There is no run to record, and trying again changes nothing; the message says why."""


class Halted(Exception):
    """No run can be played any more (the budget is spent); the message says why."""


class Agent(Protocol):
    """``act`` gives the next action as text with the thought before it; a ``send_msg_to_user``,
    a ``report_infeasible`` or an ``answer`` (a declared answer: ``answer('$12.34')``, a list where
    several things are asked for) ends the run, and so does GaveUp. ``telemetry`` are numbers of
    the run so far."""

    @property
    def telemetry(self) -> Mapping[str, float]: ...

    def act(self, view: AgentObservation) -> tuple[str, str]: ...
