"""Settings of ``trajudge check``.

They stand apart from those of other commands, which import the sources of expert labels: that takes
a tenth of this command's time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from trajudge.util.settings import Argument, Option, Output, Settings

Annotators = Literal["majority", "all", "any"]
"""How several annotators' labels of a run make one: most, all or any of them say yes."""


class CheckConfig(Settings):
    """Tell from a table of verdicts and human labels whether a judge can be trusted: how many of
    the runs that it accepts are right, how many of the right ones it accepts, and whether a target
    holds. A row is a judgment; CSV, JSON, JSON lines or Parquet.

      trajudge check judgments.csv
      trajudge check judgments.csv --target precision=0.8,recall=0.5
      trajudge check scores.csv --columns judge=score,label=human,task=question_id --threshold 0.5
    """

    epilog: ClassVar[str] = (
        "exit codes: 0 the target holds, or none was given; 1 it does not hold; 3 it cannot be "
        "told yet; 2 a mistake in the call or its file"
    )

    table: Annotated[Path, Argument("TABLE", "verdicts and labels, a row a judgment")]
    columns: Annotated[
        str | None,
        Option(
            "the columns, where their names do not tell: of judge, label, task, benchmark, run, "
            "agent, rule, answer, annotator, name (of the judge); judge=a,judge=b are two judges",
            "ROLE=COLUMN,...",
        ),
    ] = None
    words: Annotated[
        str | None,
        Option("further words of verdicts and labels: ja=yes,nein=no", "WORD=yes,WORD=no"),
    ] = None
    threshold: Annotated[
        float | None, Option("a judge's score of at least T accepts the run", "T")
    ] = None
    annotators: Annotated[
        Annotators | None,
        Option("how several annotators' labels of a run count: right where so many say so"),
    ] = None
    target: Annotated[
        str | None,
        Option(
            "what must hold: precision, recall, agreement; several with commas", "RATE=SHARE,..."
        ),
    ] = None
    report: Annotated[Path | None, Output("write the answer as one HTML page")] = None
