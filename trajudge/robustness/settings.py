"""Settings of ``trajudge robust`` and ``trajudge data perturb``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from trajudge.eval.runs.settings import DataConfig, JudgeConfig, RunRequest
from trajudge.eval.settings import Runs
from trajudge.judges.calls.settings import CallConfig
from trajudge.util.settings import Count, Only, Option, Output, Seed, Settings, options_of

SuiteName = Literal["core", "all"]

SOURCES = 150  # runs that are changed at most

_ASKED = Only(
    *(
        "judge",
        "model",
        "data",
        "annotations",
        "columns",
        "words",
        "labels_by",
        "samples",
        "retry_failed",
    ),
    *(one.name for kind in (JudgeConfig, CallConfig) for one in options_of(kind)),
)


class RobustConfig(Settings):
    """Compare a judge's verdicts on runs changed in known ways with those on the runs as they were.

    trajudge robust --judge heuristic --judge simplified --model gpt-4o
    trajudge robust --judge simplified --model gpt-4o --defence each --dry-run
    trajudge robust runs/attacked --attacked attacked   # judged before: compared
    """

    epilog: ClassVar[str] = """\
In --out: robustness.json and robustness.csv (per judge every perturbation with its rates, and
precision under each attack), matrix.csv and matrix.svg (success of injections by carrier and
technique), cards/ (a card of each judge, to be published), cases/ (ten runs that show what moves
it), defences.csv and curve.svg (with --defence: what each gives and costs), attacked/ (the changed
runs) and runs/ (a run of each judge). A judge that failed is no "no": it lost coverage.
"""
    first: ClassVar = (
        *("judge", "model", "data", "suite", "perturbation", "limit", "max_cost", "dry_run"),
        *("attacked", "out"),
    )
    sections: ClassVar[Mapping[str, str]] = {
        "suite": "the changed runs",
        "defence": "the measurement",
    }

    runs: Runs = ()
    request: Annotated[RunRequest, _ASKED] = RunRequest()
    suite: Annotated[
        SuiteName, Option("core (default): some of every family; all: all of them")
    ] = "core"
    perturbation: Annotated[
        tuple[str, ...],
        Option("one of the catalogue, or two as A+B; may be repeated (default: --suite)"),
    ] = ()
    limit: Annotated[Count, Option("runs that are changed at most")] = SOURCES
    attacked: Annotated[Path | None, Option("what trajudge data perturb wrote", "DIR")] = None
    defence: Annotated[
        tuple[str, ...],
        Option(
            "also every judge with this option against what it reads (hide, two-pass, datamark, "
            "sandwich, nonce, canary, cross-modal; A+B for both; each for all, one by one); may "
            "be repeated",
            "NAME[=VALUE]",
        ),
    ] = ()
    adaptive: Annotated[
        Count | None,
        Option("also an attacker that learns, with N queries of each failure, such as 25"),
    ] = None
    drift: Annotated[
        Path | None,
        Option("write the verdicts here; where FILE is there, ask again and say if they moved"),
    ] = None
    full: Annotated[bool, Option("all perturbations")] = False
    out: Annotated[Path, Output("default: robustness", "DIR")] = Path("robustness")

    @property
    def seed(self) -> int:
        return self.request.calls.seed

    @property
    def measured(self) -> dict[str, Any]:
        """The settings that determine the figures, as ``robustness.json`` records them."""
        chosen = {"runs", "suite", "perturbation", "limit", "attacked", "defence", "adaptive"}
        request = self.request.model_dump(mode="json", include={"models", "judges", "data"})
        return {
            **self.model_dump(mode="json", include=chosen),
            **request.pop("data"),
            **(request if self.names_judges else {}),
            "options": self.request.judge.model_dump(mode="json")["options"],
            "samples": self.request.run.samples,
            "seed": self.seed,
        }

    @property
    def names_judges(self) -> bool:
        """Whether judges are called, instead of only comparing runs."""
        return bool({"judges", "models"} & self.request.model_fields_set)


class PerturbConfig(Settings):
    """Change labelled trajectories in ways whose effect on the truth is known, and write them as
    data that any judge can be run on: trajectories.jsonl.gz with images/, labels.jsonl (what is
    true after the change) and variants.jsonl (what was changed, field by field). The same seed
    gives the same bytes.

      trajudge data perturb --data sample --out attacked
      trajudge judge --data attacked --judge heuristic
      trajudge data perturb --list
    """

    source: Annotated[DataConfig, Only("data", "annotations", "columns", "words", "labels_by")] = (
        DataConfig()
    )
    perturbation: Annotated[
        tuple[str, ...],
        Option("one of the catalogue, or two as A+B; may be repeated (default: all)"),
    ] = ()
    limit: Annotated[Count | None, Option("N of each, spread over tasks")] = None
    seed: Annotated[Seed, Option("seed of what is drawn (default: 0)")] = 0
    out: Annotated[Path, Output("folder to write", "DIR")] = Path("attacked")
    list: Annotated[
        bool, Option("show the catalogue: what each perturbation changes, and write nothing")
    ] = False
