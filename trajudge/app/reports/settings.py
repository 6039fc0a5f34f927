"""What a report is asked to hold."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from trajudge.eval.settings import ScoreConfig
from trajudge.util.settings import Only, Option, Output, Positive, Settings

Redaction = Literal["goals", "urls", "answers"]
REDACTIONS: tuple[Redaction, ...] = ("goals", "urls", "answers")


class ReportConfig(Settings):
    """Write one HTML file about runs: the judges' precision with intervals, figures, comparisons,
    and the trajectories that they got wrong, each with goal, answer, pictures and every verdict. It
    opens from the disk, without scripts and without a network.

      trajudge report runs/*
      trajudge report --judgments DIR --split test --out report.html
    """

    first: ClassVar = (
        *("out", "folder", "judgments", "annotations", "split", "data", "show", "no_images"),
        *("redact", "max_size"),
    )
    sections: ClassVar[Mapping[str, str]] = {"score": "what is scored", "out": "the file"}

    score: Annotated[
        ScoreConfig,
        Only(
            *("runs", "judgments", "annotations", "labels_by", "split", "task_id", "question"),
            *("missing", "protocol", "training_set", "baselines", "data"),
        ),
    ] = ScoreConfig()
    out: Annotated[Path, Output("the file to write", "FILE")] = Path("report.html")
    folder: Annotated[
        Path | None,
        Output(
            "write DIR/index.html with every picture as a file in DIR/img, instead of one file",
            "DIR",
        ),
    ] = None
    show: Annotated[
        int,
        Field(ge=0),
        Option(
            "trajectories with wrong verdicts that are shown, those that most judges wrongly "
            "accept first",
            "N",
        ),
    ] = 100
    no_images: Annotated[bool, Option("leave the pictures out")] = False
    redact: Annotated[
        tuple[Redaction, ...],
        Option(
            "leave out goals, urls or answers, and with any of them the pictures; with goals or "
            "answers also what judges wrote, which repeats them",
            "WHAT,...",
        ),
    ] = ()
    max_size: Annotated[
        Positive, Option("pictures are left out until the file is this small", "MB")
    ] = 8.0

    @field_validator("redact", mode="before")
    @classmethod
    def _parts(cls, given: Any) -> Any:
        if not isinstance(given, tuple):
            return given
        return tuple(part.strip() for each in given for part in str(each).split(","))

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
