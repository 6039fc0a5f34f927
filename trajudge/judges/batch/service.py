"""A provider's batch interface, as the protocol of submission needs it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import orjson

from trajudge.judges.adapters.errors import BadReply, CallFailed
from trajudge.judges.adapters.failures import ErrorBody, failure, read_error
from trajudge.judges.adapters.provider import ProviderAdapter
from trajudge.judges.adapters.sdk import no_answer
from trajudge.judges.batch.records import (
    BatchLine,
    BatchResults,
    BatchRow,
    LineResult,
    MaybeAccepted,
    ProviderState,
)


class BatchMatch(NamedTuple):
    """What the provider's list says of a submission without an answer: the batch that it became
    ("": none), or that one which may be it has to be waited for."""

    provider_id: str = ""
    must_wait: bool = False


class BatchService(Protocol):
    """One provider. ``name`` is its row in the table of limits."""

    name: str

    def line(self, request_hash: str, body: dict[str, Any]) -> bytes:
        """Return a request's line."""
        ...

    async def submit(self, batch: str, lines: Sequence[BatchLine]) -> str:
        """Submit a batch and return the provider's name for it. Raises MaybeAccepted where nobody
        can tell whether it was taken, another CallFailed where it was not."""
        ...

    async def find(
        self, row: BatchRow, requests: Collection[str], known: Collection[str]
    ) -> BatchMatch:
        """Look for a batch that may have been taken; ``known`` are names of other batches of
        ours."""
        ...

    async def state(self, provider_id: str) -> ProviderState: ...

    async def results(self, provider_id: str) -> BatchResults:
        """Download the results. Raises CallFailed."""
        ...

    async def cancel(self, provider_id: str) -> bool:
        """Ask for the end of the batch; return whether it is over at once, and nothing of it will
        be answered. Raises CallFailed."""
        ...


class SdkBatches:
    """What the services behind an SDK have in common: errors."""

    def __init__(self, adapter: ProviderAdapter) -> None:
        self.adapter = adapter
        self.name = {"http": "openai"}.get(adapter.name, adapter.name)
        if adapter.endpoint.startswith("http"):
            self.name = adapter.endpoint  # another server than the provider's: other limits

    @property
    def client(self) -> Any:
        return self.adapter.sdk_client

    def failure(self, error: Exception, *, submitting: bool = False) -> CallFailed:
        """Map an error of the SDK to one of ours; MaybeAccepted where a submission's fate is
        open: no answer, or a 5xx, after which providers have been seen to go on."""
        adapter, sdk = self.adapter, self.adapter.sdk
        if isinstance(error, sdk.APIStatusError):
            status, body = int(error.status_code), read_error(error.response.content)
            if submitting and (status >= 500 or status in (408, 409)):
                return MaybeAccepted(f"{adapter.where} answered {status}")
            headers = dict(error.response.headers.items())
            return failure(
                status, body, headers, where=adapter.where, key_variable=adapter.key_variable
            )
        answer = no_answer(error, adapter.where)
        return MaybeAccepted(str(answer)) if submitting else answer


def json_lines(content: bytes, where: str) -> Iterable[dict[str, Any]]:
    """Decode lines of JSON objects. Raises BadReply for a line that is cut."""
    for line in content.split(b"\n"):
        if not line.strip():
            continue
        try:
            decoded = orjson.loads(line)
        except orjson.JSONDecodeError:
            raise BadReply(f"{where}: a line of the results is cut or is not JSON") from None
        if isinstance(decoded, dict):
            yield decoded


def chat_result(line: dict[str, Any]) -> LineResult:
    """Parse a line of OpenAI's results, which ``vllm run-batch`` writes too."""
    request, response, error = (line.get(name) for name in ("custom_id", "response", "error"))
    response = response if isinstance(response, dict) else {}
    status, body = int(response.get("status_code") or 0), response.get("body")
    if status == 200 and isinstance(body, dict) and not error:
        return LineResult(str(request), body)
    wrong = error if isinstance(error, dict) else body
    told = read_error(orjson.dumps(wrong)) if wrong else ErrorBody("no answer")
    expired = isinstance(error, dict) and error.get("code") == "batch_expired"
    return LineResult(str(request), None, status if status >= 400 else 500, told, expired)
