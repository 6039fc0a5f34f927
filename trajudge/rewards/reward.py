"""The reward of one judged trajectory."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from trajudge.judges.model import Status
from trajudge.trajectories.model import Record, TrajectoryKey

Abstention = Literal["", "failed", "late", "uncertain", "drift", "over_budget"]
"""Why there is no value: the judge failed, was not ready at the deadline, was not sure enough, is
no longer trusted, or may not spend more. ``""``: there is one."""


class Reward(Record):
    """What a judgment is worth to a trainer.

    ``value`` is None exactly where the judge ``abstained``: a failure is never a number.
    ``probability`` is the calibrated one of success, None without a calibration. ``penalties`` are
    named and already subtracted from ``value``. ``status`` is the judgment's, None while the judge
    is still at work. Equal trajectories and equal ``version`` give equal values. ``cost`` in US
    dollars (None: unknown), ``seconds`` of waiting.
    """

    key: TrajectoryKey
    value: float | None
    probability: float | None = None
    verdict: bool | None = None
    penalties: dict[str, float] = Field(default_factory=dict)
    status: Status | None = None
    abstained: Abstention = ""
    detail: str = ""
    judge: str
    version: str
    cost: float | None = None
    seconds: float = 0.0
    cached: bool = False

    @model_validator(mode="after")
    def _abstains_or_has_a_value(self) -> Self:
        if (self.value is None) != bool(self.abstained):
            raise ValueError("value is None exactly where the judge abstained")
        return self
