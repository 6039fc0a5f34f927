"""trajudge tells whether a judge of web-agent trajectories can be trusted.

The names below are the public ones; each is imported when it is first used. The rooms of the
library (``trajudge.judges``, ``trajudge.eval``, ...) are subpackages.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trajudge.annotations.model import Annotation
    from trajudge.face import labels, load
    from trajudge.judges.model import Judgment, Message, Picture, Reply, Status, Text, Verdict
    from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey
    from trajudge.trajectories.needs import Needs
    from trajudge.trajectories.util.errors import UserError

_HOMES = {
    "Annotation": "annotations.model",
    "Judgment": "judges.model",
    "Message": "judges.model",
    "Needs": "trajectories.needs",
    "Observation": "trajectories.model",
    "Picture": "judges.model",
    "Reply": "judges.model",
    "Status": "judges.model",
    "Step": "trajectories.model",
    "Text": "judges.model",
    "Trajectory": "trajectories.model",
    "TrajectoryKey": "trajectories.model",
    "UserError": "trajectories.util.errors",
    "Verdict": "judges.model",
    "labels": "face",
    "load": "face",
}

__all__ = [
    "Annotation",
    "Judgment",
    "Message",
    "Needs",
    "Observation",
    "Picture",
    "Reply",
    "Status",
    "Step",
    "Text",
    "Trajectory",
    "TrajectoryKey",
    "UserError",
    "Verdict",
    "labels",
    "load",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'trajudge' has no attribute {name!r}")
    value = getattr(import_module(f"trajudge.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
