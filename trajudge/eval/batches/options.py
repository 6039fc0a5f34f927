"""The options of ``trajudge judge`` about batches."""

from __future__ import annotations

from typing import Any

from trajudge.util.commands import OptionAdder


def batch_options(group: Any) -> None:
    """Add the options. Their fields are those of ``eval.batches.settings.BatchConfig``."""
    add = OptionAdder(group)
    add.switch("--batch", "ask through the provider's batch interface (OpenAI, Azure, Anthropic)")
    add.output_folder(
        "--batch-files",
        "write the requests into files for  vllm run-batch; started again, read its output",
    )
    add.switch("--batch-submit-only", "submit and leave: the same command collects and goes on")
    add.choice(
        "--batch-fallback",
        ("live",),
        "ask the last 1%% singly, at the full price, when a batch expired before their turn",
    )
    add.value(
        "--batch-options",
        "NAME=N,...",
        "limits of a file (lines, bytes, tokens), tokens under way (enqueued), seconds "
        "(poll, grace)",
    )
