"""Settings of ``trajudge data fetch``, ``data convert`` and ``data sources``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from trajudge.util.settings import Argument, Option, Output, Settings


class FetchConfig(Settings):
    """Fetch a benchmark, or a part of it, from the Hugging Face Hub."""

    dataset: Annotated[
        Literal["agentrewardbench", "cuaverifierbench"], Argument("DATASET", "the benchmark")
    ]
    benchmark: Annotated[tuple[str, ...], Option("only this benchmark; may be repeated")] = ()
    agent: Annotated[tuple[str, ...], Option("only this agent; may be repeated")] = ()
    task: Annotated[tuple[str, ...], Option("only this task; may be repeated", "ID")] = ()
    what: Annotated[
        str | None,
        Option(
            "of trajectories,screenshots,judgments,annotations (default: trajectories,screenshots)",
            "KIND,...",
        ),
    ] = None
    screenshots: Annotated[
        str | None,
        Option(
            "per trajectory: the last one (default), all, none, or the last N", "last|all|none|N"
        ),
    ] = None
    judge: Annotated[tuple[str, ...], Option("judgments of this judge only")] = ()
    no_images: Annotated[
        bool, Option("of cuaverifierbench: all but the screenshots, without transferring them")
    ] = False
    revision: Annotated[
        str | None, Option("branch, tag or commit (default: main, or as pinned)")
    ] = None
    out: Annotated[
        Path | None,
        Output("default: the user's cache; of agentrewardbench: TRAJUDGE_DATA first", "DIR"),
    ] = None


class ConvertConfig(Settings):
    """Read trajectories of any format and write them in trajudge's own: a folder with one line a
    trajectory and the pictures beside it. Labels are not part of it.

      trajudge data convert logs/run.eval converted/
      trajudge data convert ./my_loader.py:logs/ converted/
    """

    source: Annotated[
        str, Argument("IN", "KIND:PATH, a path whose kind is detected, or FILE.py:PATH")
    ]
    target: Annotated[Path, Argument("OUT", "a new folder, or one without trajectories")]
    goals: Annotated[
        Path | None, Option("JSON, JSON Lines or CSV of task_id and goal, for logs without them")
    ] = None


class SourcesConfig(Settings):
    """Show the register of data sets, with licence, labels and caveats."""

    name: Annotated[str | None, Argument("NAME", "everything known of one data set")] = None
    json_output: Annotated[bool, Option("print the register as JSON", name="json")] = False
