"""Settings of the commands that show runs: inspect, label serve, report."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from trajudge.eval.settings import LabelConfig, Runs, ScoreConfig
from trajudge.util.settings import Argument, Only, Option, Output, Port, Positive, Settings

Redaction = Literal["goals", "urls", "answers"]


class ServerConfig(Settings):
    """Where the application listens, and who may reach it; port 0 is any free one."""

    port: Annotated[Port, Option("port to listen on (default: any free)")] = 0
    host: Annotated[
        str,
        Option(
            "address to listen on (default: 127.0.0.1, this machine alone; 0.0.0.0: all of them)",
            "ADDRESS",
        ),
    ] = "127.0.0.1"
    no_token: Annotated[
        bool, Option("ask for no token (only with an address that others cannot reach)")
    ] = False
    keys: Annotated[Path | None, Option("TOML file that gives pages other keys")] = None
    allow_host: Annotated[
        tuple[str, ...],
        Option(
            "answer requests for this host name, too (of a proxy in front, or a name that this "
            "machine does not know); may be repeated"
        ),
    ] = ()


class InspectConfig(LabelConfig):
    """Look at runs in a browser: what judges scored, every judgment in a table that filters and
    sorts, and the trajectories behind them. Pages are served on this machine alone, to whoever has
    the address that is printed, which holds a token; the runs are not changed.

      trajudge inspect runs/*
      trajudge inspect RUN --data agentrewardbench:PATH --port 8000
    """

    sections: ClassVar[Mapping[str, str]] = {"server": "where it listens"}

    runs: Runs = ()
    data: Annotated[
        tuple[str, ...],
        Option("trajectories (default: those of the runs); may be repeated", "KIND:PATH"),
    ] = ()
    queues: Annotated[
        Path,
        Option(
            "where queues to label are written that are made from ticked rows (default: queues)",
            "DIR",
        ),
    ] = Path("queues")
    server: ServerConfig = ServerConfig()


class LabelServeConfig(Settings):
    """Label the trajectories of a queue in a browser: the evidence and a form beside it, without
    any verdict. Whoever opens the address that is printed chooses their name; with --auth each
    person signs in with a token of their own, which  trajudge label people  printed.

      trajudge label QUEUE
      trajudge label serve QUEUE --auth --host 0.0.0.0
      trajudge label serve QUEUE --data agentrewardbench:PATH --port 8000
    """

    sections: ClassVar[Mapping[str, str]] = {"auth": "where it listens"}

    queue: Annotated[Path, Argument("QUEUE", "folder of a queue")]
    data: Annotated[
        tuple[str, ...],
        Option(
            "trajectories (default: those that the queue was built with); may be repeated",
            "KIND:PATH",
        ),
    ] = ()
    tasks: Annotated[Path | None, Option("the task file, for the audit's text of rules")] = None
    auth: Annotated[
        bool, Option("ask each person for their own token, which trajudge label people printed")
    ] = False
    server: ServerConfig = ServerConfig()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.auth and self.server.no_token:
            raise ValueError("--auth and --no-token exclude each other: give one of them")
        return self


def _parts(value: Any) -> Any:
    """Divide ``goals,urls`` at its commas."""
    return tuple(part.strip() for each in value for part in str(each).split(","))


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
            *("runs", "judgments", "annotations", "columns", "words", "labels_by", "split"),
            *("task_id", "question", "missing", "protocol", "training_set", "baselines", "data"),
        ),
    ] = ScoreConfig()
    out: Annotated[Path, Output("the file to write (default: report.html)")] = Path("report.html")
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
            "trajectories with wrong verdicts that are shown, those that most judges and the "
            "rule wrongly accept first"
        ),
    ] = 50
    no_images: Annotated[bool, Option("leave the pictures out")] = False
    redact: Annotated[
        tuple[Redaction, ...],
        BeforeValidator(_parts),
        Option(
            "leave out goals, urls or answers, and with any of them the pictures; with goals or "
            "answers also what judges wrote, which repeats them",
            "WHAT,...",
        ),
    ] = ()
    max_size: Annotated[
        Positive, Option("pictures are left out until the file is this small", "MB")
    ] = 8.0

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
