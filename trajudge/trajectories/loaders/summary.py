"""The ``summary_info`` that BrowserGym's experiment loop writes beside every run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from trajudge.trajectories.loaders.files import numbers
from trajudge.trajectories.loaders.values import Values

_REWARDS = ("cum_reward", "cum_raw_reward")


class ExperimentSummary(NamedTuple):
    """How a run ended. ``telemetry`` has no reward in it, so that what is learnt from it cannot
    know the rule-based verdict; its names are the file's without the prefix ``stats.``, and
    ``error`` is 1 if the run ended in one."""

    official_reward: float | None
    terminated: bool | None
    truncated: bool | None
    telemetry: dict[str, float]
    error: str | None


def read_summary(info: Mapping[str, object], values: Values) -> ExperimentSummary:
    """Read the parts of ``summary_info`` that a trajectory keeps; ``values`` names what is of a
    wrong type."""
    error = values.text(info.get("err_msg"), "err_msg")
    return ExperimentSummary(
        official_reward=values.number(info.get("cum_reward"), "reward cum_reward"),
        terminated=values.flag(info.get("terminated"), "terminated"),
        truncated=values.flag(info.get("truncated"), "truncated"),
        telemetry={
            name.removeprefix("stats."): value
            for name, value in numbers(info).items()
            if name not in _REWARDS
        }
        | {"error": float(error is not None)},
        error=error,
    )
