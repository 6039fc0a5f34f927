"""Anthropic's message batches: all requests in one body, results in one download."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Sequence
from typing import Any

import orjson

from trajudge.judges.adapters.failures import read_error
from trajudge.judges.adapters.sdk import http_library
from trajudge.judges.adapters.wire import json_bytes, json_object
from trajudge.judges.batch.records import (
    BatchLine,
    BatchResults,
    BatchRow,
    LineResult,
    ProviderState,
)
from trajudge.judges.batch.service import BatchMatch, SdkBatches, json_lines

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


class AnthropicBatches(SdkBatches):
    """Message batches. They carry no metadata: a submission is found again by its time and its
    number of requests, and known for certain by our name for it in those of its results: another
    run may ask the same requests."""

    def line(self, request_hash: str, body: dict[str, Any]) -> bytes:
        """Return a request whose ``custom_id`` is the request's hash, until it is submitted."""
        return json_bytes({"custom_id": request_hash, "params": body})

    async def submit(self, batch: str, lines: Sequence[BatchLine]) -> str:
        """Create the batch: the lines go out as they are, for their images are encoded already."""
        sdk = self.adapter.sdk
        try:
            response = await self.client.post(
                "/v1/messages/batches",
                content=json_bytes({"requests": [_tagged(n, batch) for n in lines]}),
                cast_to=http_library(sdk).Response,
                options={"headers": {"Content-Type": "application/json"}},
            )
        except sdk.APIError as error:
            raise self.failure(error, submitting=True) from None
        return str(json_object(response.content, self.adapter.where)["id"])

    async def find(
        self, row: BatchRow, requests: Collection[str], known: Collection[str]
    ) -> BatchMatch:
        """Look through the batches since the intent for one of the same size. One that has not
        ended cannot be told from a stranger's, and has to be waited for."""
        must_wait = False
        try:
            async for one in self.client.messages.batches.list(limit=100):
                if one.created_at.timestamp() < row.intent_at - _SKEW:
                    break
                counts = one.request_counts
                total = sum(vars(counts)[name] for name in type(counts).model_fields)
                if one.id in known or total != row.lines:
                    continue
                if one.processing_status != "ended":
                    must_wait = True
                elif _is_of(row.id, await self._names(one.id), requests):
                    return BatchMatch(str(one.id))
        except self.adapter.sdk.APIError as error:
            raise self.failure(error) from None
        return BatchMatch(must_wait=must_wait)

    async def state(self, provider_id: str) -> ProviderState:
        """Ask how far the batch is. Raises CallFailed."""
        try:
            batch = await self.client.messages.batches.retrieve(provider_id)
        except self.adapter.sdk.APIError as error:
            raise self.failure(error) from None
        counts = batch.request_counts
        through = counts.succeeded + counts.errored + counts.canceled + counts.expired
        word = batch.processing_status
        return ProviderState(word == "ended", word, through, through + counts.processing)

    async def results(self, provider_id: str) -> BatchResults:
        """Download the results."""
        try:
            counts = (await self.client.messages.batches.retrieve(provider_id)).request_counts
        except self.adapter.sdk.APIError as error:
            raise self.failure(error) from None
        lines = [*map(_result, await self._download(provider_id))]
        return BatchResults(lines, counts.succeeded)

    async def _names(self, provider_id: str) -> set[str]:
        return {str(line.get("custom_id")) for line in await self._download(provider_id)}

    async def _download(self, provider_id: str) -> list[dict[str, Any]]:
        """Download the lines of the results. Raises CallFailed."""
        sdk = self.adapter.sdk
        try:
            response = await self.client.get(
                f"/v1/messages/batches/{provider_id}/results",
                cast_to=http_library(sdk).Response,
                options={"headers": {"Accept": "application/binary"}},
            )
        except sdk.APIError as error:
            raise self.failure(error) from None
        return [*json_lines(response.content, self.adapter.where)]

    async def cancel(self, provider_id: str) -> bool:
        """Ask for the end of the batch; what is done by then is answered. Raises CallFailed."""
        try:
            await self.client.messages.batches.cancel(provider_id)
        except self.adapter.sdk.APIError as error:
            raise self.failure(error) from None
        return False


def _tagged(line: BatchLine, batch: str) -> orjson.Fragment:
    """Name a line by its request and by the batch in which it goes out."""
    short = urlsafe_b64encode(bytes.fromhex(line.request)).rstrip(b"=")
    name = short + b"_" + batch[:_TAG].encode()
    return orjson.Fragment(line.content.replace(line.request.encode(), name, 1))


def _is_of(batch: str, names: Collection[str], requests: Collection[str]) -> bool:
    """Tell whether results are those of a batch; earlier versions named lines by the hash alone."""
    tags = {match[2] for name in names if (match := _TAGGED.fullmatch(name))}
    return batch[:_TAG] in tags if tags else bool(names) and {*names} <= {*requests}


def _request(name: str) -> str:
    """Return the hash of the request that a line is named by."""
    match = _TAGGED.fullmatch(name)
    return urlsafe_b64decode(match[1] + "=").hex() if match else name


def _result(line: dict[str, Any]) -> LineResult:
    request, outcome = _request(str(line.get("custom_id"))), line.get("result") or {}
    kind, message = outcome.get("type"), outcome.get("message")
    if kind == "succeeded" and isinstance(message, dict):
        return LineResult(request, message)
    error = outcome.get("error") or {"message": f"the line is {kind}"}
    inner = error["error"] if isinstance(error.get("error"), dict) else error
    status = _STATUS.get(str(inner.get("type")), 500)
    told = read_error(orjson.dumps(error))
    return LineResult(request, None, status, told, kind in ("expired", "canceled"))
