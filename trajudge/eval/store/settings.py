"""Settings of the commands that make runs of what is recorded already."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from trajudge.annotations import LabelsBy
from trajudge.util.settings import Argument, Option, Output, Settings

Labels = Annotated[str | None, Option("expert labels (default: those of the data)", "KIND:PATH")]

Policy = Annotated[
    LabelsBy | None,
    Option(
        "primary, majority, unanimous or any: of several annotators' labels (default: refuse those "
        "that differ)",
        "POLICY",
    ),
]


class ImportConfig(Settings):
    """Write the verdicts that were published beside a data set as runs, a folder for each judge
    (universal-verifier@published, ...), which score, compare and rank like our own. No model is
    asked.

      trajudge data verdicts fara:runs/ --out verdicts/
      trajudge score verdicts/*
    """

    source: Annotated[str, Argument("KIND:PATH", "the data that the verdicts were published with")]
    out: Annotated[Path, Output("gets a folder for each judge", "DIR")]
    annotations: Labels = None
    labels_by: Policy = None
    aborted: Annotated[
        Literal["keep", "exclude"], Option("runs that broke off (Fara's authors: exclude)")
    ] = "keep"
    over_budget: Annotated[
        Literal["keep", "failure"],
        Option("verdicts on runs that gave no answer (Fara's authors: failure)"),
    ] = "keep"

    @property
    def policies(self) -> dict[str, str]:
        """The policies that are not the default: each verdict counts as it was published."""
        chosen: dict[str, str] = {"aborted": self.aborted, "over_budget": self.over_budget}
        return chosen if set(chosen.values()) != {"keep"} else {}


class ReparseConfig(Settings):
    """Read the replies that a run recorded again, as this version of trajudge reads them, and write
    the judgments into a new folder. No model is asked. A judgment stays as it was recorded where
    the model gave no reply, or where this version of the judge asks for something that was not
    recorded.

      trajudge run reparse runs/simplified-axtree_gpt-4o-1a2b3c4d --out again
    """

    run: Annotated[Path, Argument("RUN", "folder of a run")]
    out: Annotated[Path, Output("a new folder for the judgments", "DIR")]
    data: Annotated[
        str | None, Option("the trajectories (default: those of the run)", "KIND:PATH")
    ] = None
    judge: Annotated[
        str | None, Option("the judge, where the run's is in a file of your own", "NAME")
    ] = None
    prompt: Annotated[
        Path | None, Option("the template that the run was asked with by --prompt", "FILE")
    ] = None
    cache: Annotated[
        str | None, Option("replies with token probabilities, as of trajudge judge", "FILE")
    ] = None
