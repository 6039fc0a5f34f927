"""trajudge tells whether a judge of web-agent trajectories can be trusted.

The names below are the public ones; each is imported when it is first used. The rooms of the
library (``trajudge.judges``, ``trajudge.eval``, ...) are subpackages.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trajudge import stats
    from trajudge.annotations.model import Annotation
    from trajudge.face.data import labels, load
    from trajudge.face.decisions import accept, audit, select
    from trajudge.face.judging import ajudge, judge, panel
    from trajudge.face.results import (
        Judgments,
        Scores,
        compare,
        read_run,
        score,
    )
    from trajudge.judges.model import (
        Judgment,
        Message,
        ModelClient,
        Picture,
        Reply,
        Status,
        Text,
        Verdict,
    )
    from trajudge.judges.replies import ParseFailure
    from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey
    from trajudge.trajectories.needs import Needs
    from trajudge.util.errors import UserError

__version__ = "0.1.0"

_HOMES = {
    "Annotation": "annotations.model",
    "Judgment": "judges.model",
    "Judgments": "face.results",
    "Message": "judges.model",
    "ModelClient": "judges.model",
    "Needs": "trajectories.needs",
    "Observation": "trajectories.model",
    "ParseFailure": "judges.replies",
    "Picture": "judges.model",
    "Reply": "judges.model",
    "Scores": "face.results",
    "Status": "judges.model",
    "Step": "trajectories.model",
    "Text": "judges.model",
    "Trajectory": "trajectories.model",
    "TrajectoryKey": "trajectories.model",
    "UserError": "util.errors",
    "Verdict": "judges.model",
    "accept": "face.decisions",
    "ajudge": "face.judging",
    "audit": "face.decisions",
    "compare": "face.results",
    "judge": "face.judging",
    "labels": "face.data",
    "load": "face.data",
    "panel": "face.judging",
    "read_run": "face.results",
    "score": "face.results",
    "select": "face.decisions",
}

__all__ = [
    "Annotation",
    "Judgment",
    "Judgments",
    "Message",
    "ModelClient",
    "Needs",
    "Observation",
    "ParseFailure",
    "Picture",
    "Reply",
    "Scores",
    "Status",
    "Step",
    "Text",
    "Trajectory",
    "TrajectoryKey",
    "UserError",
    "Verdict",
    "accept",
    "ajudge",
    "audit",
    "compare",
    "judge",
    "labels",
    "load",
    "panel",
    "read_run",
    "score",
    "select",
    "stats",
]


def __getattr__(name: str) -> object:
    if name == "stats":
        return import_module("trajudge.stats")
    if name not in _HOMES:
        raise AttributeError(f"module 'trajudge' has no attribute {name!r}")
    value = getattr(import_module(f"trajudge.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
