"""Verdicts that somebody published beside a data set: columns of a table, score files of runs.

A module of ``SOURCES`` reads them with ``read_verdicts(path)``; its kind is the kind of the loader
that reads the trajectories themselves. Nothing of a verdict ever reaches a Trajectory.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Literal, Protocol, cast

from pydantic import Field, JsonValue

from trajudge.trajectories.loaders import parse_source
from trajudge.trajectories.model import Record, TrajectoryKey
from trajudge.util.errors import UserError

SOURCES = {
    "agentrewardbench": "trajudge.annotations.agentrewardbench_results",
    "browser-use-answers": "trajudge.annotations.answers",
    "cuaverifierbench": "trajudge.annotations.cuaverifierbench",
    "browser-use": "trajudge.annotations.browser_use",
    "fara": "trajudge.annotations.fara",
    "toolcalls": "trajudge.annotations.toolcalls",
}
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
    """What a judge, run by others, said of one trajectory.

    ``judge`` is its name without the suffix; ``sample`` counts several verdicts of one judge on
    one trajectory from 0. ``status`` is how the judgment ended and ``detail`` why, if it is not
    ``ok``. The rest is as in ``judges.model.Judgment``; ``record`` is what the verdict rests on.
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
        """The id of its judgments, which no judge that is run here can have."""
        return self.judge + SUFFIX


class VerdictSource(Protocol):
    """What a module of ``SOURCES`` offers."""

    def read_verdicts(self, path: Path) -> Iterator[PublishedVerdict]:
        """Yield every published verdict in a stable order. Raises UserError."""


def open_verdicts(spec: str) -> list[PublishedVerdict]:
    """Read the verdicts published in ``KIND:PATH`` or a bare ``PATH``.

    Raises UserError if the kind publishes none, or there is none in the data.
    """
    kind, path = parse_source(spec)
    if kind not in SOURCES or path is None:
        raise UserError(
            f"{spec}: no published verdicts are read of kind {kind!r}: name KIND:PATH with a KIND "
            f"of {', '.join(SOURCES)}"
        )
    source = cast(VerdictSource, import_module(SOURCES[kind]))
    verdicts = list(source.read_verdicts(path))
    if not verdicts:
        raise UserError(f"{spec}: holds no published verdict")
    return verdicts
