"""An agent that plays recorded actions back without looking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from trajudge.environments.agents.protocol import GaveUp

if TYPE_CHECKING:
    from trajudge.environments.chromium import AgentObservation

REPLAYER = "replay"


class ReplayAgent:
    """Agent that replays actions without looking at the page; ends when none is left."""

    telemetry: Mapping[str, float] = MappingProxyType({})

    def __init__(self, actions: Sequence[str]) -> None:
        self._actions = iter(actions)

    def act(self, _: AgentObservation) -> tuple[str, str]:
        action = next(self._actions, None)
        if action is None:
            raise GaveUp
        return action, ""
