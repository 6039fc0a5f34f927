"""Stage 4: the interface of what tries a case in a real browser (``recording.validation``)."""

from __future__ import annotations

from typing import Protocol

from trajudge.environments.checks.integrity import Reject
from trajudge.environments.model.case import Case
from trajudge.trajectories.model import Record


class Valid(Record):
    """The oracle solved the case; ``detail`` says in which checks."""

    detail: str = ""


class Validate(Protocol):
    """Tries a case. A Reject has the reason ``browser``."""

    def __call__(self, case: Case) -> Valid | Reject: ...
