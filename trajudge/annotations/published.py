"""Published verdicts of a data set: columns of a table, score files of runs.

A module of ``annotations.sources`` reads them; its kind is the name of the loader of the
trajectories. No part of a verdict ever reaches a Trajectory.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Literal, Protocol, cast

from pydantic import Field, JsonValue

from trajudge.annotations.sources import KINDS
from trajudge.trajectories.loaders import parse_source
from trajudge.trajectories.model import Record, TrajectoryKey
from trajudge.util.errors import UserError

SUFFIX = "@published"
# The statuses of a judgment (``judges.model.Status``), which this room does not import.
Ending = Literal[
    "ok",
    "unparsable",
    "refused",
    "truncated",
    "context_overflow",
    "provider_error",
    "skipped",
]


class PublishedVerdict(Record):
    """A verdict on one trajectory by a judge that others ran.

    ``judge`` is its name without the suffix; ``sample`` counts several verdicts of one judge on one
    trajectory from 0. ``status`` is the judgment's status, and ``detail`` the reason if it is not
    ``ok``. The other fields are those of ``judges.model.Judgment``; ``record`` is the evidence for
    the verdict.
    """

    key: TrajectoryKey
    judge: str
    sample: int = Field(default=0, ge=0)
    status: Ending = "ok"
    detail: str = ""
    success: bool | None = None
    side_effect: bool | None = None
    repetition: bool | None = None
    process: bool | None = None
    failure_step: int | None = Field(default=None, ge=0)
    failure_type: str | None = None
    score: float | None = None
    scores: dict[str, float] = Field(default_factory=dict)
    reasoning: str = ""
    record: dict[str, JsonValue] | None = Field(default=None, repr=False)

    @property
    def judge_id(self) -> str:
        """The judge's id with a suffix that judges run here cannot have."""
        return self.judge + SUFFIX


class VerdictSource(Protocol):
    """The interface of a module of ``annotations.sources`` with published verdicts."""

    def read_verdicts(self, path: Path) -> Iterator[PublishedVerdict]:
        """Yield every published verdict in a stable order. Raises UserError."""


def verdict_kinds() -> dict[str, VerdictSource]:
    """Return the formats with published verdicts."""
    modules = {kind: import_module(name) for kind, name in KINDS.items()}
    return {
        kind: cast(VerdictSource, module)
        for kind, module in modules.items()
        if hasattr(module, "read_verdicts")
    }


def open_verdicts(spec: str) -> list[PublishedVerdict]:
    """Read the verdicts published in ``KIND:PATH`` or a bare ``PATH``.

    Raises UserError if the kind has no published verdicts, or the data have none.
    """
    kind, path = parse_source(spec)
    sources = verdict_kinds()
    if kind not in sources or path is None:
        raise UserError(
            f"{spec}: no published verdicts are read of kind {kind!r}: name KIND:PATH with a KIND "
            f"of {', '.join(sources)}"
        )
    verdicts = list(sources[kind].read_verdicts(path))
    if not verdicts:
        raise UserError(f"{spec}: holds no published verdict")
    return verdicts
