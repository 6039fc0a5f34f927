"""The options of ``trajudge judge`` about batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def batch_options(group: Any) -> None:
    """Add the options. Their fields are those of ``eval.batches.settings.BatchConfig``."""
    add = group.add_argument
    add(
        "--batch",
        action="store_true",
        help="ask through the provider's batch interface (OpenAI, Azure, Anthropic)",
    )
    add(
        "--batch-files",
        type=Path,
        metavar="DIR",
        help="write the requests into files for  vllm run-batch; started again, read its output",
    )
    add(
        "--batch-submit-only",
        action="store_true",
        help="submit and leave: the same command collects and goes on",
    )
    add(
        "--batch-fallback",
        choices=("live",),
        help="ask the last 1%% singly, at the full price, when a batch expired before their turn",
    )
    add(
        "--batch-options",
        metavar="NAME=N,...",
        help="limits of a file (lines, bytes, tokens), tokens under way (enqueued), seconds "
        "(poll, grace)",
    )
