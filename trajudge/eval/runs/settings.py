"""Settings of ``trajudge judge``: what a run is asked to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from trajudge.annotations import LabelsBy
from trajudge.eval.settings import (
    AnnotationsOption,
    ColumnsOption,
    Split,
    WordsOption,
    name_columns,
)
from trajudge.judges.calls.settings import PARAMETERS, CallConfig
from trajudge.util.commands import MOST_SAMPLES
from trajudge.util.files import check_folder
from trajudge.util.settings import Argument, Count, Only, Option, Output, Settings, options_of
from trajudge.util.terminal import log_as_json

RepresentationName = Literal["axtree", "screenshot", "both", "none"]

# Models beside the judge's own; each is named with --ROLE-model.
ROLES = ("captioner", "describer", "light")

# The fields of CallConfig that say whose answers come, and how they are made.
OF_ANSWERS = (
    *("adapter", "script", "base_url", "wait", "context", "extra_body", "extra_headers"),
    *(name for name in PARAMETERS if name != "seed"),
)


class JudgeConfig(Settings):
    """One judge with one model (None: it needs none) and its options."""

    judge: Annotated[str, Option("the judge to ask")] = "simplified"
    model: Annotated[str | None, Option("the model that it asks")] = None
    options: Annotated[
        dict[str, Any],
        Option(
            "an option of this judge, or of the members that take it, see  "
            "trajudge judges show NAME; may be repeated",
            "NAME=VALUE",
            name="judge_option",
        ),
    ] = Field(default_factory=dict)
    members: Annotated[
        str | None, Option("members of --judge panel or cascade", "NAME[:MODEL],...")
    ] = None
    rule: Annotated[
        Literal["majority", "unanimous", "mean"] | None,
        Option("how a panel's verdicts are combined (default: majority)"),
    ] = None
    quorum: Annotated[
        Count | None, Option("minimum number of member verdicts (default: majority)")
    ] = None
    tie: Annotated[
        Literal["success", "failure"] | None,
        Option("verdict when a panel's votes tie (default: failure)"),
    ] = None
    captioner_model: Annotated[str | None, Option("describes screenshots (default: --model)")] = (
        None
    )
    describer_model: Annotated[str | None, Option("describes changes (default: --model)")] = None
    light_model: Annotated[
        str | None, Option("takes a judge's lighter stages (default: --model)")
    ] = None
    representation: Annotated[
        RepresentationName | None,
        Option("what the judge sees of the final page (default: the judge's own)"),
    ] = None
    structured: bool | None = None
    """Whether answers may be asked for by a JSON schema; None: as the model takes it."""
    success_last: Annotated[bool, Option("ask for success after the other labels")] = False
    repair: Annotated[
        int | None,
        Field(ge=0, le=3),
        Option(
            "corrective turns after a reply that cannot be read (default: 1, with published "
            "prompts 0)",
            "N",
        ),
    ] = None
    prompt: Annotated[
        Path | None,
        Option(
            "your own, for --judge simplified: a template (to start from:  trajudge judges show "
            "simplified --prompt), and system.jinja beside it where there is one",
            "FILE",
        ),
    ] = None
    prompts: Annotated[
        str | None,
        Option(
            "trajudge (default), or the source's own, read from an installed package "
            "(agentrewardbench, browser-use) or a checkout (online-mind2web:PATH, "
            "webvoyager:PATH, insta:PATH, fara:PATH)",
            "SOURCE[:PATH]",
        ),
    ] = None

    @field_validator("prompts")
    @classmethod
    def _known_source(cls, prompts: str | None) -> str | None:
        if prompts is not None:
            from trajudge.prompts.published import (  # noqa: PLC0415 - where it is named
                check_source,
            )

            check_source(prompts)
        return prompts


# What the judges of a request have in common.
_OF_ALL = Only(*(one.name for one in options_of(JudgeConfig) if one.name not in ("judge", "model")))


class DataConfig(Settings):
    """Which trajectories are judged, and the labels they are scored against."""

    data: Annotated[
        str | None,
        Option(
            "a file or folder, KIND:PATH (an unknown KIND lists them), a loader or Python file "
            "(default: the AgentRewardBench copy here, else the sample)",
            "KIND:PATH",
        ),
    ] = None
    annotations: AnnotationsOption = None
    columns: ColumnsOption = None
    words: WordsOption = None
    labels_by: Annotated[
        LabelsBy | None,
        Option(
            "primary, majority, unanimous or any: of several annotators' labels (default: refuse "
            "those that differ)",
            "POLICY",
        ),
    ] = None
    goals: Annotated[
        Path | None,
        Option("JSON, JSON Lines or CSV of task_id and goal, for logs that do not hold them"),
    ] = None
    split: Annotated[
        Split | None, Option("default: test where the annotations have splits, else all")
    ] = None
    benchmark: Annotated[tuple[str, ...], Option("only this benchmark; may be repeated")] = ()
    agent: Annotated[tuple[str, ...], Option("only this agent; may be repeated")] = ()
    task: Annotated[tuple[str, ...], Option("only this task; may be repeated", "ID")] = ()
    limit: Annotated[Count | None, Option("at most N trajectories")] = None
    stratified: Annotated[bool, Option("spread --limit over benchmarks and agents")] = False
    strict: Annotated[bool, Option("stop at the first trajectory that cannot be read")] = False

    @model_validator(mode="before")
    @classmethod
    def _name_columns(cls, values: Any) -> Any:
        return name_columns(values)

    @model_validator(mode="after")
    def _check_stratified(self) -> Self:
        if self.stratified and not self.limit:
            raise ValueError("--stratified goes with --limit N")
        return self


class BatchConfig(Settings):
    """Whether calls go in batches, and how."""

    batch: Annotated[
        bool, Option("ask through the provider's batch interface (OpenAI, Azure, Anthropic)")
    ] = False
    batch_files: Annotated[
        Path | None,
        Output(
            "write the requests into files for  vllm run-batch; started again, read its output",
            "DIR",
        ),
    ] = None
    batch_submit_only: Annotated[
        bool, Option("submit and leave: the same command collects and goes on")
    ] = False
    batch_options: Annotated[
        str | None,
        Option(
            "limits of a file (lines, bytes, tokens), tokens under way (enqueued), seconds "
            "(poll, grace)",
            "NAME=N,...",
        ),
    ] = None

    @property
    def is_on(self) -> bool:
        return self.batch or self.batch_files is not None

    @model_validator(mode="after")
    def _check_batch(self) -> Self:
        if (self.batch_submit_only or self.batch_options) and not self.is_on:
            raise ValueError("--batch-submit-only and --batch-options go with --batch")
        if self.batch and self.batch_files:
            raise ValueError(
                "--batch asks the provider, --batch-files writes files for  vllm run-batch: give "
                "one"
            )
        return self


class BatchAction(Settings):
    """Show the batches that  trajudge judge --batch  submitted, cancel them, or collect those that
    have ended.

    Replies go into the cache; the same  trajudge judge  command then writes the judgments.

      trajudge run batch status
      trajudge run batch cancel BATCH
      trajudge run batch resume
    """

    action: Annotated[Literal["status", "cancel", "resume"], Argument("ACTION", "what to do")]
    batches: Annotated[
        tuple[str, ...], Argument("BATCH", "these batches only (default: all open ones)")
    ] = ()
    cache: Annotated[
        str | None, Option("replies, as of trajudge judge; the ledger stands next to it", "FILE")
    ] = None


def _failures(value: Any) -> Any:
    """Read a count, or a share such as ``5%``."""
    most = float("inf")
    with suppress(ValueError):
        if isinstance(value, str) and value.endswith("%"):
            value, most = float(value[:-1]) / 100, 1
        elif isinstance(value, str):
            value = int(value)
    if not isinstance(value, int | float) or not 0 <= value <= most:
        raise ValueError("neither a count nor a share such as 5%")
    return value


def _export(value: Any) -> Any:
    return ("agentrewardbench", value) if isinstance(value, str | Path) else value


class RunConfig(Settings):
    """How often each trajectory is judged, what counts as a failed run, and where it is kept."""

    samples: Annotated[
        int,
        Field(ge=1, le=MOST_SAMPLES),
        Option("judgments per trajectory, each with the next seed"),
    ] = 1
    retry_failed: Annotated[bool, Option("ask again where an earlier try failed")] = False
    max_failures: Annotated[
        int | float,
        BeforeValidator(_failures),
        Option("failed judgments that still exit with 0 (default: 0)", "N|N%"),
    ] = 0
    protocol: Annotated[
        Literal["default", "agentrewardbench"],
        Option("what a failed judgment counts as, and how figures are rounded (default: default)"),
    ] = "default"
    out: Annotated[
        Path | None, Output("the run's folder (default: runs/, named by its settings)", "DIR")
    ] = None
    export: Annotated[
        tuple[Literal["agentrewardbench"], Path] | None,
        BeforeValidator(_export),
        Option("agentrewardbench DIR: the judgments in the published layout as well", "FORMAT DIR"),
    ] = None
    export_restricted: Annotated[
        bool,
        Option("also of data whose card forbids redistribution (trajudge data sources)"),
    ] = False
    ray: Annotated[
        Count | None,
        Option("judge with N actors of Ray, in the cluster at RAY_ADDRESS or on this machine"),
    ] = None

    @model_validator(mode="after")
    def _check_export(self) -> Self:
        if self.export:
            check_folder(self.export[1], "--export agentrewardbench")
        elif self.export_restricted:
            raise ValueError("--export-restricted goes with --export agentrewardbench DIR")
        return self


class RunRequest(Settings):
    """Ask a judge whether web agents succeeded, caused side effects or repeated themselves, and
    measure the judge against expert annotations, the rule-based baseline beside it.

      trajudge judge --model gpt-4o
      trajudge judge --judge heuristic
      trajudge judge --model my-model --base-url http://127.0.0.1:8000/v1 --limit 20
    """

    epilog: ClassVar[str] = """\
exit codes: 0 done, 1 stopped at --max-cost or more failed judgments than --max-failures, 2 a
mistake in the call or its files, 130 interrupted (everything kept: the same command goes on)
"""
    first: ClassVar = (
        *("model", "judge", "base_url", "data", "limit", "samples", "concurrency", "max_cost"),
        *("dry_run", "out"),
    )
    sections: ClassVar[Mapping[str, str]] = {
        "models": "the judge",
        "data": "the trajectories",
        "calls": "the calls",
        "batch": "calls in batches: half the price, within a day",
        "run": "the run",
    }

    models: Annotated[
        tuple[str, ...],
        Option("e.g. gpt-4o, claude-..., provider/name; may be repeated", name="model"),
    ] = ()
    judges: Annotated[
        tuple[str, ...],
        Field(min_length=1),
        Option(
            "see  trajudge judges list  (default: simplified); may be repeated, and runs with "
            "every --model",
            name="judge",
        ),
    ] = ("simplified",)
    reproduce: Annotated[
        str | None,
        Option(
            "a row of a paper: its judge, model, prompts, parameters, split and protocol in one "
            "(agentrewardbench:NAME, an unknown NAME lists them)",
            "PAPER:ROW",
        ),
    ] = None
    judge: Annotated[JudgeConfig, _OF_ALL] = JudgeConfig()
    data: DataConfig = DataConfig()
    calls: CallConfig = CallConfig()
    batch: BatchConfig = BatchConfig()
    run: RunConfig = RunConfig()
    full: Annotated[bool, Option("show all tables and notes instead of one screen")] = False
    log_format: Annotated[
        Literal["text", "json"],
        Option(
            "of progress, notes and errors on standard error; json: an object per line (default: "
            "text)"
        ),
    ] = "text"

    @classmethod
    def prepare(cls, words: Sequence[str]) -> None:
        """Write JSON lines to standard error before anything is refused, where it is asked for."""
        if "--log-format=json" in words or ("--log-format", "json") in pairwise(words):
            log_as_json()

    @model_validator(mode="after")
    def _reproduce(self) -> Self:
        """Put in the settings of the row that is to be reproduced."""
        if self.reproduce is None:
            return self
        from trajudge.eval.runs.reproduce import (  # noqa: PLC0415 - where it is named
            find_row,
            with_row,
        )

        reproduced: Self = with_row(self, find_row(self.reproduce), f"--reproduce {self.reproduce}")
        return reproduced

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.run.ray and self.batch.is_on:
            raise ValueError("--ray spreads live calls, and --batch makes none: give one of them")
        if not {"panel", "cascade"} & set(self.judges):
            for name in ("members", "rule", "quorum", "tie"):
                if getattr(self.judge, name) is not None:
                    raise ValueError(f"--{name} goes with --judge panel or cascade")
        return self
