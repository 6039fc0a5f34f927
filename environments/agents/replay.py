"""An agent that plays recorded actions back without looking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from trajudge.environments.agents.protocol import GaveUp

if TYPE_CHECKING:
    from trajudge.environments.chromium import View

REPLAYER = "replay"


class Replay:
    """Plays actions back without looking; ends when none is left."""

    telemetry: Mapping[str, float] = MappingProxyType({})

    def __init__(self, actions: Sequence[str]) -> None:
        self._actions = iter(actions)

    def act(self, _: View) -> tuple[str, str]:
        action = next(self._actions, None)
        if action is None:
            raise GaveUp
        return action, ""
