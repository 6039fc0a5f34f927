"""Choice of the batch interface for a model's adapter."""

from __future__ import annotations

from pathlib import Path

from trajudge.judges.adapters.anthropic import AnthropicAdapter
from trajudge.judges.adapters.base import Adapter
from trajudge.judges.adapters.openai import OpenAIAdapter
from trajudge.judges.adapters.provider import ProviderAdapter
from trajudge.judges.batch.anthropic_batches import AnthropicBatches
from trajudge.judges.batch.file_batches import FileBatches
from trajudge.judges.batch.openai_batches import OpenAIBatches
from trajudge.judges.batch.service import BatchService
from trajudge.util.errors import UserError

_CHAT = {"openai", "http", "azure"}


def batch_service(adapter: Adapter, model: str, files: Path | None) -> BatchService:
    """Return the service that takes batches of an adapter's requests; ``files`` the folder where
    they are written instead of sent. Raises UserError where there is none."""
    if files is not None and isinstance(adapter, OpenAIAdapter):
        return FileBatches(files)
    if files is None and isinstance(adapter, OpenAIAdapter) and adapter.name in _CHAT:
        return OpenAIBatches(adapter)
    if files is None and isinstance(adapter, AnthropicAdapter) and adapter.name == "anthropic":
        return AnthropicBatches(adapter)
    how = "--batch-files (chat completions)" if files else "--batch"
    raise UserError(
        f"{how} does not go with {model} through the adapter {adapter.name}: batches go to OpenAI, "
        "Azure and Anthropic, files to vllm run-batch; leave the option out"
    )


def batching(adapter: Adapter, model: str) -> ProviderAdapter:
    """Return the adapter as one that makes bodies. Raises UserError."""
    if not isinstance(adapter, ProviderAdapter):
        raise UserError(f"--batch does not go with {model}: leave it out")
    return adapter
