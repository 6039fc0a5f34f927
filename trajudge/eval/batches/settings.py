"""How a run goes in batches, as a typed record; its fields are named as the options."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError


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
