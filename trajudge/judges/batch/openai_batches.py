"""OpenAI's batch interface, which Azure has too: a file of lines, then a batch of that file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from trajudge.judges.adapters.wire import json_bytes
from trajudge.judges.batch.ledger import file_bytes, file_sha
from trajudge.judges.batch.records import BatchLine, BatchResults, BatchRow, ProviderState
from trajudge.judges.batch.service import BatchMatch, SdkBatches, chat_result, json_lines

_ENDED = {"completed", "expired", "cancelled", "failed"}
_SKEW = 3600.0  # seconds that the provider's clock may be behind ours


class OpenAIBatches(SdkBatches):
    """Files and batches. A submission is found again by its metadata."""

    @property
    def _path(self) -> str:
        return "/chat/completions" if self.adapter.name == "azure" else "/v1/chat/completions"

    def line(self, request_hash: str, body: dict[str, Any]) -> bytes:
        """Return a line whose ``custom_id`` is the request's hash (64 characters)."""
        return json_bytes(
            {"custom_id": request_hash, "method": "POST", "url": self._path, "body": body}
        )

    async def submit(self, batch: str, lines: Sequence[BatchLine]) -> str:
        """Upload the file, create the batch. An upload that fails has created no batch."""
        name = f"{file_sha(lines)}.jsonl"
        sdk = self.adapter.sdk
        try:
            file = await self.client.files.create(file=(name, file_bytes(lines)), purpose="batch")
        except sdk.APIError as error:
            raise self.failure(error) from None
        try:
            made = await self.client.batches.create(
                input_file_id=file.id,
                endpoint=self._path,
                completion_window="24h",
                metadata={"trajudge": batch},
            )
        except sdk.APIError as error:
            raise self.failure(error, submitting=True) from None
        return str(made.id)

    async def find(
        self, row: BatchRow, requests: Collection[str], known: Collection[str]
    ) -> BatchMatch:
        """Look through the batches since the intent for its metadata."""
        try:
            async for one in self.client.batches.list(limit=100):
                if (one.metadata or {}).get("trajudge") == row.id:
                    return BatchMatch(str(one.id))
                if one.created_at < row.intent_at - _SKEW:
                    break
        except self.adapter.sdk.APIError as error:
            raise self.failure(error) from None
        return BatchMatch()

    async def state(self, provider_id: str) -> ProviderState:
        """Ask how far the batch is. Raises CallFailed."""
        try:
            batch = await self.client.batches.retrieve(provider_id)
        except self.adapter.sdk.APIError as error:
            raise self.failure(error) from None
        counts = batch.request_counts
        through = counts.completed + counts.failed if counts else 0
        total, failed, is_full = counts.total if counts else 0, "", False
        if batch.status == "failed":
            errors = (batch.errors.data if batch.errors else None) or []
            failed = "; ".join(str(e.message or e.code) for e in errors) or "no reason given"
            is_full = any(e.code == "token_limit_exceeded" for e in errors)
        ended = batch.status in _ENDED
        return ProviderState(ended, batch.status, through, total, failed, is_full)

    async def results(self, provider_id: str) -> BatchResults:
        """Download the file of answers and the file of errors, where they exist."""
        try:
            batch = await self.client.batches.retrieve(provider_id)
            contents = [
                (await self.client.files.content(file)).content
                for file in (batch.output_file_id, batch.error_file_id)
                if file
            ]
        except self.adapter.sdk.APIError as error:
            raise self.failure(error) from None
        counts = batch.request_counts
        where = self.adapter.where
        lines = [chat_result(line) for part in contents for line in json_lines(part, where)]
        return BatchResults(lines, counts.completed if counts else 0)

    async def cancel(self, provider_id: str) -> bool:
        """Ask for the end of the batch; what is done by then is answered. Raises CallFailed."""
        try:
            await self.client.batches.cancel(provider_id)
        except self.adapter.sdk.APIError as error:
            raise self.failure(error) from None
        return False
