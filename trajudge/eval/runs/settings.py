"""What a run is asked to do, as typed records that the command line, ``--config`` and the public
functions build alike.

The fields are named as the options of ``trajudge judge``; a default here is the option's default.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from trajudge.eval.settings import LabelsBy, Split
from trajudge.judges.calls.settings import CallConfig
from trajudge.trajectories.model import Record
from trajudge.util.commands import MOST_SAMPLES
from trajudge.util.errors import UserError
from trajudge.util.files import check_folder


class BatchConfig(Record):
    """Whether calls go in batches, and how. ``batch_files``: into a folder, for ``vllm
    run-batch``; ``batch_options`` are limits and times (``judges.batch.limits``)."""

    batch: bool = False
    batch_files: Path | None = None
    batch_submit_only: bool = False
    batch_fallback: Literal["live"] | None = None
    batch_options: str | None = None

    @property
    def is_on(self) -> bool:
        return self.batch or self.batch_files is not None


def check_batch(config: BatchConfig) -> None:
    """Raise UserError for options of batches without batches, and for options that clash."""
    needs_batch = config.batch_submit_only or config.batch_fallback or config.batch_options
    if needs_batch and not config.is_on:
        raise UserError("--batch-submit-only, --batch-fallback and --batch-options go with --batch")
    if config.batch and config.batch_files:
        raise UserError(
            "--batch asks the provider, --batch-files writes files for  vllm run-batch: give one"
        )
    if config.batch_files and config.batch_fallback:
        raise UserError("--batch-fallback goes with --batch, not with --batch-files")


RepresentationName = Literal["axtree", "screenshot", "both", "none"]

# Models beside the judge's own; each is named with --ROLE-model.
ROLES = ("captioner", "describer", "light")

# The fields of CallConfig that say whose answers come, and how they are made.
OF_ANSWERS = (
    *("adapter", "script", "base_url", "wait", "context", "temperature", "max_tokens"),
    *("reasoning_effort", "thinking_budget", "extra_body", "extra_headers"),
)


class JudgeConfig(Record):
    """One judge with one model (None: it needs none) and its options.

    ``options`` are those of ``--judge-option``, ``members`` those of a panel or cascade.
    """

    judge: str = "simplified"
    model: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    members: str | None = None
    rule: Literal["majority", "unanimous", "mean"] | None = None
    quorum: int | None = Field(default=None, ge=1)
    tie: Literal["success", "failure"] | None = None
    captioner_model: str | None = None
    describer_model: str | None = None
    light_model: str | None = None
    representation: RepresentationName | None = None
    success_last: bool = False
    prompts: Literal["trajudge", "agentrewardbench", "browser-use", "fara"] | None = None


class DataConfig(Record):
    """Which trajectories are judged, and the labels they are scored against."""

    data: str | None = None
    annotations: str | None = None
    labels_by: LabelsBy | None = None
    goals: Path | None = None
    split: Split | None = None
    benchmark: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    task: tuple[str, ...] = ()
    limit: int | None = Field(default=None, ge=1)
    stratified: bool = False
    strict: bool = False


class RunConfig(Record):
    """How often each trajectory is judged, what counts as a failed run, and where it is kept;
    ``ray``: by how many actors of Ray (None: in this process)."""

    samples: int = Field(default=1, ge=1, le=MOST_SAMPLES)
    retry_failed: bool = False
    max_failures: int | float = 0
    protocol: Literal["default", "agentrewardbench"] = "default"
    out: Path | None = None
    export: tuple[str, Path] | None = None
    export_restricted: bool = False
    ray: int | None = Field(default=None, ge=1)


class RunRequest(Record):
    """What one command asks for: every judge with every model, on the same data.

    ``judge`` holds what all judges have in common; ``yes``: do not ask before a dear run;
    ``full``: show every table instead of one screen.
    """

    judges: tuple[str, ...] = ("simplified",)
    models: tuple[str, ...] = ()
    judge: JudgeConfig = JudgeConfig()
    batch: BatchConfig = BatchConfig()
    data: DataConfig = DataConfig()
    calls: CallConfig = CallConfig()
    run: RunConfig = RunConfig()
    yes: bool = False
    full: bool = False


def _check_export(form: str, folder: Path) -> None:
    if form != "agentrewardbench":
        raise UserError(f"--export: no format {form!r}: use agentrewardbench")
    check_folder(folder, f"--export {form}")


def check_request(request: RunRequest) -> None:
    """Check what no field refuses by itself. Raises UserError for settings that do not go together,
    and for an adapter that is not there."""
    judge, calls, run = request.judge, request.calls, request.run
    if run.export:
        _check_export(*run.export)
    elif run.export_restricted:
        raise UserError("--export-restricted goes with --export agentrewardbench DIR")
    if calls.adapter:
        from trajudge.judges.adapters.routing import check_adapter  # noqa: PLC0415 - where it is named

        check_adapter(calls.adapter)
    check_batch(request.batch)
    if run.ray and request.batch.is_on:
        raise UserError("--ray spreads live calls, and --batch makes none: give one of them")
    if calls.script and calls.adapter not in (None, "scripted"):
        raise UserError("--script goes with --adapter scripted")
    if not {"panel", "cascade"} & set(request.judges):
        for name in ("members", "rule", "quorum", "tie"):
            if getattr(judge, name) is not None:
                raise UserError(f"--{name} goes with --judge panel or cascade")
    if request.data.stratified and not request.data.limit:
        raise UserError("--stratified goes with --limit N")
