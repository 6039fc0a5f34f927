"""What a report is asked to hold."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from trajudge.eval.settings import ScoreConfig
from trajudge.trajectories.model import Record

Redaction = Literal["goals", "urls", "answers"]
REDACTIONS: tuple[Redaction, ...] = ("goals", "urls", "answers")


class ReportConfig(Record):
    """``score`` is what is scored, and how. ``show`` trajectories are shown at most, with a
    screenshot each unless ``no_images``; the file ``out`` stays below ``max_size`` megabytes (10^6
    bytes), the screenshots of a ``folder`` are files of their own. ``redact`` names what is left
    out."""

    score: ScoreConfig
    out: Path = Path("report.html")
    folder: Path | None = None
    show: int = Field(default=100, ge=0)
    no_images: bool = False
    redact: tuple[Redaction, ...] = ()
    max_size: float = Field(default=8.0, gt=0)

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.folder and "out" in self.model_fields_set:
            raise ValueError("--out names a file and --folder a folder: give one of them")
        return self

    @property
    def max_bytes(self) -> int:
        return sys.maxsize if self.folder else round(self.max_size * 1e6)

    @property
    def page(self) -> Path:
        """The file to open."""
        return self.folder / "index.html" if self.folder else self.out

    @property
    def shows_pictures(self) -> bool:
        """A screenshot shows address, answer and often the goal: it goes with any of them."""
        return not self.no_images and not self.redact
