"""Settings of ``trajudge proxy results``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from trajudge.util.settings import Argument, Option, Output, Settings


class ResilienceConfig(Settings):
    """Compare runs with and without faults.

      trajudge proxy results RECORDED

    Reads what trajudge env record --faults wrote, or folders of trajudge proxy run of any agent
    (--clean DIR --faulted DIR --outcomes FILE). Shows by fault the success retained, exposure,
    recovery and McNemar's test, and what recovering took in steps, tokens, dollars and seconds;
    with --judge and --judged how precise judges are on the faulted runs. Writes results.json and
    CSV tables. The exit code is 1 if no run met a fault.
    """

    recordings: Annotated[tuple[Path, ...], Argument("RECORDED", "of env record --faults")] = ()
    clean: Annotated[Path | None, Option("proxy runs without faults", "DIR")] = None
    faulted: Annotated[
        tuple[Path, ...], Option("proxy runs with faults, by plan", "DIR", several=True)
    ] = ()
    outcomes: Annotated[
        Path | None,
        Option("CSV or JSON Lines with task, arm (clean, or a faulted folder's name) and success"),
    ] = None
    judge: Annotated[
        tuple[str, ...], Option("a judge that needs no model; may be repeated", "NAME")
    ] = ()
    judged: Annotated[
        tuple[Path, ...],
        Option(
            "run folders of  trajudge judge  on the arms, any judge; one for each arm",
            "RUN",
            several=True,
        ),
    ] = ()
    judge_option: Annotated[
        dict[str, Any], Option("of the judges that take it; may be repeated", "NAME=VALUE")
    ] = Field(default_factory=dict)
    prices: Annotated[
        str | None, Option("prices of models that the table does not know", "FILE")
    ] = None
    out: Annotated[Path, Output("folder to write", "DIR")] = Path("resilience")
    full: Annotated[bool, Option("print all tables, not one screen")] = False
    plots: Annotated[Path | None, Output("write plots, PNG and SVG", "DIR")] = None
