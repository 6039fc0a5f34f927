"""trajudge tells whether a judge of web-agent trajectories can be trusted.

The names below are the public ones; each is imported when it is first used. The rooms of the
library (``trajudge.judges``, ``trajudge.eval``, ...) are subpackages.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trajudge import stats
    from trajudge.annotations.model import Label
    from trajudge.eval.check import check
    from trajudge.face.data import labels, load
    from trajudge.face.decisions import Decision, accept, audit, select
    from trajudge.face.judging import ajudge, judge, panel
    from trajudge.face.results import Run, Scores, compare, read_run, score
    from trajudge.judges.model import Judge, Judgment, Message, Model, Status, Text, Verdict
    from trajudge.judges.replies import ParseFailure
    from trajudge.prompts.render import Prompt
    from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey
    from trajudge.util.errors import UserError

__version__ = "0.1.0"

_HOMES = {
    "Decision": "face.decisions",
    "Judge": "judges.model",
    "Judgment": "judges.model",
    "Label": "annotations.model",
    "Message": "judges.model",
    "Model": "judges.model",
    "Observation": "trajectories.model",
    "ParseFailure": "judges.replies",
    "Prompt": "prompts.render",
    "Run": "face.results",
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
    "check": "eval.check",
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
    "Decision",
    "Judge",
    "Judgment",
    "Label",
    "Message",
    "Model",
    "Observation",
    "ParseFailure",
    "Prompt",
    "Run",
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
    "check",
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
