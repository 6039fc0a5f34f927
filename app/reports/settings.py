"""What a report is asked to hold."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from trajudge.eval.runs.settings import ScoreConfig
from trajudge.trajectories.model import Record

Redaction = Literal["goals", "urls", "answers"]
REDACTIONS: tuple[Redaction, ...] = ("goals", "urls", "answers")


class ReportConfig(Record):
    """``score`` is what is scored, and how. ``show`` trajectories are shown at most, with a
    screenshot each unless ``no_images``; the file stays below ``max_size`` megabytes (10^6 bytes).
    ``redact`` names what is left out of it."""

    score: ScoreConfig
    out: Path = Path("report.html")
    show: int = Field(default=100, ge=0)
    no_images: bool = False
    redact: tuple[Redaction, ...] = ()
    max_size: float = Field(default=8.0, gt=0)

    @property
    def max_bytes(self) -> int:
        return round(self.max_size * 1e6)

    @property
    def shows_pictures(self) -> bool:
        """A screenshot shows address, answer and often the goal: it goes with any of them."""
        return not self.no_images and not self.redact
