"""The ``summary_info`` that BrowserGym's experiment loop writes beside every run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from trajudge.trajectories.loaders.files import numbers, text

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


def read_summary(info: Mapping[str, object]) -> ExperimentSummary:
    """Read the parts of ``summary_info`` that a trajectory keeps; values of a wrong type are
    None."""
    error = text(info.get("err_msg"))
    terminated, truncated = info.get("terminated"), info.get("truncated")
    return ExperimentSummary(
        official_reward=numbers({"reward": info.get("cum_reward")}).get("reward"),
        terminated=terminated if isinstance(terminated, bool) else None,
        truncated=truncated if isinstance(truncated, bool) else None,
        telemetry={
            name.removeprefix("stats."): value
            for name, value in numbers(info).items()
            if name not in _REWARDS
        }
        | {"error": float(error is not None)},
        error=error,
    )
