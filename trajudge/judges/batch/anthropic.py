"""Anthropic's message batches: all requests in one body, results in one download."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Sequence
from typing import Any

import orjson

from trajudge.judges.adapters.errors import Unreachable
from trajudge.judges.adapters.failures import read_error
from trajudge.judges.adapters.sdk import http_library
from trajudge.judges.adapters.wire import json_bytes, json_object
from trajudge.judges.batch.ledger import BatchLine, BatchRow
from trajudge.judges.batch.service import (
    BatchService,
    LineResult,
    ProviderState,
    json_lines,
    whole,
)

_SKEW = 900.0  # seconds that the provider's clock may be behind ours
# A custom_id has 64 characters at most: the request's hash in 43, and 20 of the batch's own name.
_TAGGED = re.compile(r"([A-Za-z0-9_-]{43})_([0-9a-f]{20})")
_TAG = 20
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class AnthropicBatches(BatchService):
    """Message batches. They carry no metadata: a submission is found again by its time and its
    number of requests, and known for certain by our name for it in those of its results: another
    run may ask the same requests."""

    def line(self, request_hash: str, body: dict[str, Any]) -> bytes:
        """Return a request whose ``custom_id`` is the request's hash, until it is submitted."""
        return json_bytes({"custom_id": request_hash, "params": body})

    async def submit(self, batch: str, lines: Sequence[BatchLine]) -> str:
        """Create the batch: the lines go out as they are, for their images are encoded already."""
        with self._sdk_errors(submitting=True) as client:
            response = await client.post(
                "/v1/messages/batches",
                content=json_bytes({"requests": [_tagged(n, batch) for n in lines]}),
                cast_to=http_library(self.adapter.sdk).Response,
                options={"headers": {"Content-Type": "application/json"}},
            )
        return str(json_object(response.content, self.adapter.where)["id"])

    async def find(self, row: BatchRow, requests: Collection[str], known: Collection[str]) -> str:
        """Look through the batches since the intent for one of the same size. One that has not
        ended cannot be told from a stranger's, and has to be waited for."""
        waits = False
        with self._sdk_errors() as client:
            async for batch in client.messages.batches.list(limit=100):
                if batch.created_at.timestamp() < row.intent_at - _SKEW:
                    break
                counts = batch.request_counts
                total = sum(vars(counts)[name] for name in type(counts).model_fields)
                if batch.id in known or total != row.lines:
                    continue
                if batch.processing_status != "ended":
                    waits = True
                elif row.id[:_TAG] in await self._tags(batch.id):
                    return str(batch.id)
        if waits:
            raise Unreachable("a batch of its size, which may be it, has not ended")
        return ""

    async def state(self, provider_id: str) -> ProviderState:
        with self._sdk_errors() as client:
            batch = await client.messages.batches.retrieve(provider_id)
        counts = batch.request_counts
        through = counts.succeeded + counts.errored + counts.canceled + counts.expired
        return ProviderState(batch.processing_status == "ended", through)

    async def results(self, provider_id: str) -> list[LineResult]:
        with self._sdk_errors() as client:
            counts = (await client.messages.batches.retrieve(provider_id)).request_counts
        lines = [*map(_result, await self._download(provider_id))]
        return whole(lines, counts.succeeded, provider_id)

    async def cancel(self, provider_id: str) -> bool:
        with self._sdk_errors() as client:
            await client.messages.batches.cancel(provider_id)
        return False

    async def _tags(self, provider_id: str) -> set[str]:
        names = (str(line.get("custom_id")) for line in await self._download(provider_id))
        return {match[2] for name in names if (match := _TAGGED.fullmatch(name))}

    async def _download(self, provider_id: str) -> list[dict[str, Any]]:
        with self._sdk_errors() as client:
            response = await client.get(
                f"/v1/messages/batches/{provider_id}/results",
                cast_to=http_library(self.adapter.sdk).Response,
                options={"headers": {"Accept": "application/binary"}},
            )
        return [*json_lines(response.content, self.adapter.where)]


def _tagged(line: BatchLine, batch: str) -> orjson.Fragment:
    """Name a line by its request and by the batch in which it goes out."""
    short = urlsafe_b64encode(bytes.fromhex(line.request)).rstrip(b"=")
    name = short + b"_" + batch[:_TAG].encode()
    return orjson.Fragment(line.content.replace(line.request.encode(), name, 1))


def _result(line: dict[str, Any]) -> LineResult:
    name, outcome = str(line.get("custom_id")), line.get("result") or {}
    match = _TAGGED.fullmatch(name)
    request = urlsafe_b64decode(match[1] + "=").hex() if match else name
    kind, message = outcome.get("type"), outcome.get("message")
    if kind == "succeeded" and isinstance(message, dict):
        return LineResult(request, message)
    error = outcome.get("error") or {"message": f"the line is {kind}"}
    inner = error["error"] if isinstance(error.get("error"), dict) else error
    status = _STATUS.get(str(inner.get("type")), 500)
    expired = kind in ("expired", "canceled")
    return LineResult(request, None, status, read_error(orjson.dumps(error)), expired)
