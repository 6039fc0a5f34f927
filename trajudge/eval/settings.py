"""Settings of ``trajudge score``, and those that several commands share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from trajudge.annotations import LABELS_BY, LabelsBy, labels_by, with_columns
from trajudge.judges.calls.settings import CallConfig
from trajudge.util.settings import Argument, Only, Option, Output, Seed, Settings

Split = Literal["dev", "test", "all"]

TaskId = Literal["recorded", "goal"]

Runs = Annotated[
    tuple[Path, ...],
    Argument("RUN", "folder of a run, or a table of judgments"),
]

TaskIdOption = Annotated[
    TaskId,
    Option("goal: runs of one goal and start page are of one task, whatever their task ids"),
]

TableFormat = Annotated[
    Literal["table", "csv", "markdown", "latex"], Option("of the tables (default: table)")
]


AnnotationsOption = Annotated[
    str | None,
    Option("labels, a table or KIND:PATH (default: the data's)", "KIND:PATH"),
]

ColumnsOption = Annotated[
    str | None,
    Option(
        "of a table of labels, where their names do not say it: label, run (or task, agent, "
        "benchmark, attempt), annotator, side_effect, repetition",
        "ROLE=COLUMN,...",
    ),
]

WordsOption = Annotated[
    str | None, Option("what words in a table of labels mean: yes or no", "WORD=yes,WORD=no")
]


def name_columns(values: Any) -> Any:
    """Name the columns and words of a table in ``annotations`` itself, of a command's words. Raises
    UserError."""
    if not isinstance(values, dict) or not (values.get("columns") or values.get("words")):
        return values
    given = values.get("annotations"), values.get("columns"), values.get("words")
    return {**values, "annotations": with_columns(*given), "columns": None, "words": None}


class LabelConfig(Settings):
    """Which labels count: ``annotations`` names them, with the policy of ``labels_by`` where that
    is given (``KIND/POLICY:PATH``), and the columns of a table (``table[COLUMNS]:FILE``)."""

    annotations: AnnotationsOption = None
    labels_by: Annotated[
        LabelsBy | None,
        Option(
            "primary, majority, unanimous or any: of several annotators' labels (default: refuse "
            "those that differ)",
            "POLICY",
        ),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _name_policy(cls, values: Any) -> Any:
        values = name_columns(values)
        if not isinstance(values, dict) or (by := values.get("labels_by")) not in LABELS_BY:
            return values
        return {**values, "annotations": labels_by(values.get("annotations"), by)}


CHECK_TARGETS = ("precision", "recall", "agreement")


class CheckSettings(Settings):
    """How a table of verdicts is read, and which target is tested."""

    columns: Annotated[
        str | None,
        Option(
            "which column is what (judge, name, label, task, run, agent, benchmark, rule, answer, "
            "annotator), as in judge=verdict,label=human; several judges: judge=a,judge=b "
            "(default: by their names)",
            "ROLE=COLUMN,...",
        ),
    ] = None
    words: Annotated[
        str | None, Option("what words mean, beyond yes, pass, success, ...", "WORD=yes,WORD=no")
    ] = None
    threshold: Annotated[
        float | None, Option("the least score that is a yes, where judges give scores", "T")
    ] = None
    labels_by: Annotated[
        LabelsBy | None,
        Option(
            "primary, majority, unanimous or any: of several labels of a run (default: refuse "
            "those that differ)",
            "POLICY",
        ),
    ] = None
    target: Annotated[
        str | None,
        Option(
            "rates to be shown: precision, recall or agreement, as in precision=0.8,recall=0.5 "
            "(default: name the highest that hold)",
            "METRIC=RATE,...",
        ),
    ] = None
    confidence: Annotated[
        float, Field(gt=0.5, lt=1), Option("of what is said of a target", "LEVEL")
    ] = 0.95

    @field_validator("columns", "target", mode="before")
    @classmethod
    def _write_out(cls, value: Any) -> Any:
        """Write what Python gives as a mapping as the command line has it."""
        if not isinstance(value, Mapping):
            return value
        several = {k: [v] if isinstance(v, str | float | int) else v for k, v in value.items()}
        return ",".join(f"{key}={each}" for key, values in several.items() for each in values)

    @field_validator("target")
    @classmethod
    def _check_target(cls, value: str | None) -> str | None:
        _targets(value)
        return value

    @property
    def targets(self) -> dict[str, float]:
        """The rates to be shown, by metric."""
        return _targets(self.target)


def _targets(text: str | None) -> dict[str, float]:
    rates: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in (text or "").split(","))):
        metric, _, number = (each.strip() for each in part.partition("="))
        if metric not in CHECK_TARGETS:
            raise ValueError(f"name {', '.join(CHECK_TARGETS[:-1])} or {CHECK_TARGETS[-1]}=RATE")
        try:
            rate = float(number)
        except ValueError:
            raise ValueError(f"write it as {metric}=0.8") from None
        if not 0 < rate < 1:
            raise ValueError(f"{metric} must lie between 0 and 1, as in {metric}=0.8")
        if metric in rates:
            raise ValueError(f"{metric} is given twice: give it once")
        rates[metric] = rate
    return rates


class CheckConfig(CheckSettings):
    """Check whether the verdicts in a table can be trusted. A row is a judgment: what a judge said
    (verdict), what is true (label), and of which task. Neither trajectories nor a model are needed.
    Ends with 0 where the targets hold, 1 where one does not, 3 where the labels cannot tell.

      trajudge check verdicts.csv
      trajudge check verdicts.csv --target precision=0.8
      trajudge check log.jsonl --columns judge=pass,label=human
    """

    table: Annotated[
        Path, Argument("TABLE", "CSV, JSON, JSON lines or Parquet file, one row a judgment")
    ]
    report: Annotated[Path | None, Output("write one HTML page", "FILE")] = None


class AuditConfig(LabelConfig):
    """Find where a rule-based evaluator is wrong, and what that changes. Compares the official
    rewards (or, with --evaluator, a judge's verdicts) of runs or published judgments with expert
    labels and with the judges.

      trajudge audit runs/*
      trajudge audit --judgments DIR --split test --templates test.raw.json
    """

    runs: Runs = ()
    judgments: Annotated[Path | None, Option("judgments in the published layout", "DIR")] = None
    split: Annotated[Split, Option("of the annotations")] = "all"
    task_id: TaskIdOption = "recorded"
    evaluator: Annotated[str | None, Option("audit this judge instead of the official reward")] = (
        None
    )
    data: Annotated[
        str | None,
        Option(
            "trajectories, for goals and last steps of the cases (default: those of the runs)",
            "KIND:PATH",
        ),
    ] = None
    task_tables: Annotated[Path | None, Option("folder with webarena.csv and the like", "DIR")] = (
        None
    )
    templates: Annotated[Path | None, Option("WebArena's tasks, for their templates")] = None
    full: Annotated[bool, Option("print all tables and sentences instead of one screen")] = False
    out: Annotated[Path, Output("default: audit/", "DIR")] = Path("audit")


class TelemetryConfig(LabelConfig):
    """Train the telemetry judge on numbers of runs (steps, tokens, seconds, errors, actions) and
    expert labels, score it on tasks that it was not trained on, and write it for
    --judge telemetry --judge-option model=FILE.

      trajudge judges train --split dev --save model.json
      trajudge judges train --cross-fit fitted
    """

    data: Annotated[
        str | None, Option("the trajectories (default: as trajudge judge)", "KIND:PATH")
    ] = None
    split: Annotated[Split, Option("train on this split of the annotations")] = "all"
    folds: Annotated[int, Field(ge=2), Option("task-grouped folds of the held-out score")] = 5
    seed: Annotated[Seed, Option("of the folds (default: 0)")] = 0
    target_precision: Annotated[
        float, Option("the threshold aims at this precision, on training data only", "RATE")
    ] = 0.85
    without: Annotated[tuple[str, ...], Option("leave a feature out", "FEATURE")] = ()
    save: Annotated[Path | None, Output("the model, trained on all runs of the split")] = None
    cross_fit: Annotated[
        Path | None,
        Output(
            "write the held-out verdicts as a run, in which every trajectory is judged by a model "
            "that saw nothing of its task",
            "DIR",
        ),
    ] = None


class ScoreConfig(LabelConfig):
    """Score runs, or published judgments, again without a call: every rate with its interval,
    judges against each other, tables as in the paper, plots, and the cases that a judge got wrong.

      trajudge score runs/*
      trajudge score --judgments DIR --split test --protocol agentrewardbench --table 1
      trajudge score runs/* --ranks --html ranks.html
    """

    first: ClassVar = (
        *("judgments", "annotations", "split", "ranks", "checks", "full", "format", "json"),
        *("plots", "mismatches"),
    )
    sections: ClassVar[Mapping[str, str]] = {
        "annotations": "what is scored",
        "table": "output",
        "mismatches": "wrong verdicts, and how --explain calls its model",
    }
    exclusive: ClassVar = (("csv", "json_output"), ("ranks", "checks"))

    runs: Runs = ()
    judgments: Annotated[
        Path | None, Option("judgments in AgentRewardBench's published layout", "DIR")
    ] = None
    columns: ColumnsOption = None
    words: WordsOption = None
    split: Annotated[Split, Option("of the annotations")] = "all"
    task_id: TaskIdOption = "recorded"
    question: Annotated[
        Literal["success", "process"] | None,
        Option(
            "process: whether the run was sound on its way, with the faults that judges find and "
            "place (default: success, or what the judges answer)"
        ),
    ] = None
    missing: Annotated[
        Literal["negative", "exclude", "agentrewardbench"] | None,
        Option("what a failed judgment counts as (default: negative, not accepted)"),
    ] = None
    protocol: Annotated[
        Literal["default", "agentrewardbench"] | None,
        Option(
            "agentrewardbench: the paper's arithmetic; implies its --missing (default: the run's)"
        ),
    ] = None
    training_set: Annotated[
        Literal["exclude", "include"],
        Option(
            "trajectories that a judge was trained on: left out of its metrics and counted in its "
            "coverage, or scored with a warning"
        ),
    ] = "exclude"
    baselines: Annotated[
        Literal["auto", "on", "off"],
        Option(
            "score trivial baselines (always-fail, claim-of-success, tfidf-answer, telemetry) "
            "beside the judges; auto: where there are labels and the trajectories are on this "
            "machine and below 512 MiB"
        ),
    ] = "auto"
    transfer: Annotated[
        bool,
        Option(
            "leave one benchmark out: baselines that are trained, and judges and thresholds that "
            "are chosen, on the other benchmarks, scored on each"
        ),
    ] = False
    by: Annotated[Literal["agent"] | None, Option("agent: also agent by agent")] = None
    compare: Annotated[
        Literal["overall", "benchmark", "none"],
        Option("judges against each other over all benchmarks, or also benchmark by benchmark"),
    ] = "overall"
    seed: Annotated[
        Seed, Option("of the baselines' folds; no interval depends on it (default: 0)")
    ] = 0
    table: Annotated[
        tuple[Literal[1, 2, 3, 6, 7, 8], ...],
        Option(
            "print this table of the paper instead of all, a long one whole with --full; may be "
            "repeated"
        ),
    ] = ()
    full: Annotated[bool, Option("print all tables and notes instead of one screen")] = False
    ranks: Annotated[
        bool,
        Option(
            "rank the judges, with ties; runs with an error (--checks) are left out (exit code 1)"
        ),
    ] = False
    html: Annotated[Path | None, Output("write --ranks as one page")] = None
    checks: Annotated[bool, Option("only list the reasons against comparing the runs")] = False
    format: TableFormat = "table"
    csv: Annotated[bool, Option("print results.csv instead of tables")] = False
    json_output: Annotated[bool, Option("print results.json instead of tables", name="json")] = (
        False
    )
    calibration: Annotated[
        Literal["auto", "isotonic", "platt", "log-odds", "verdict"] | None,
        Option(
            "fit judges' scores, or verdicts, to the labels on the dev split and show their "
            "reliability on test; auto takes what the split is large enough for"
        ),
    ] = None
    calibration_out: Annotated[Path | None, Output("write map and reliability as JSON")] = None
    plots: Annotated[Path | None, Output("write plots, PNG and SVG", "DIR")] = None
    submission: Annotated[Path | None, Output("write the leaderboard's fields, hashed")] = None
    mismatches: Annotated[
        Path | None,
        Output(
            "write false positives and negatives with goal, last steps and reasoning (JSON Lines)"
        ),
    ] = None
    data: Annotated[
        tuple[str, ...],
        Option(
            "trajectories of --mismatches and --baselines (default: those of the runs); may be "
            "repeated",
            "KIND:PATH",
        ),
    ] = ()
    explain: Annotated[
        str | None, Option("sort --mismatches by the paper's kinds with this model", "MODEL")
    ] = None
    calls: Annotated[
        CallConfig, Only("adapter", "base_url", "script", "prices", "max_cost", "cache")
    ] = CallConfig()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.explain and self.mismatches is None:
            raise ValueError(
                "--explain sorts wrong verdicts: name their file with --mismatches FILE"
            )
        for name in ("adapter", "base_url", "script"):
            if getattr(self.calls, name) and not self.explain:
                raise ValueError(
                    f"--{name.replace('_', '-')} is for the model of --explain: give --explain "
                    "MODEL, or leave it out"
                )
        figures = self.csv or self.json_output
        if figures and (self.table or self.format != "table"):
            raise ValueError("--csv and --json print every figure: leave out --table and --format")
        if figures and self.calibration and not self.calibration_out:
            raise ValueError(
                "--csv and --json hold no calibration: leave out --calibration, or write it to a "
                "file with --calibration-out FILE"
            )
        return self
