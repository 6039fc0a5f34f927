"""OpenAI's batch interface, which Azure has too: a file of lines, then a batch of that file; and
the same files on this machine, for ``vllm run-batch``."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from trajudge.judges.adapters.failures import ErrorBody, read_error
from trajudge.judges.adapters.provider import ProviderAdapter
from trajudge.judges.adapters.wire import json_bytes
from trajudge.judges.batch.ledger import BatchLine, BatchRow
from trajudge.judges.batch.service import (
    BatchService,
    LineResult,
    ProviderState,
    json_lines,
    whole,
)
from trajudge.util.errors import UserError
from trajudge.util.files import make_folder, open_regular, write_bytes
from trajudge.util.jsonl import read_lines

_ENDED = {"completed", "expired", "cancelled", "failed"}
_SKEW = 3600.0  # seconds that the provider's clock may be behind ours


class OpenAIBatches(BatchService):
    """Files and batches. A submission is found again by its metadata."""

    path = "/v1/chat/completions"

    def __init__(self, adapter: ProviderAdapter) -> None:
        super().__init__(adapter)
        if adapter.name == "azure":
            self.path = "/chat/completions"

    def line(self, request_hash: str, body: dict[str, Any]) -> bytes:
        """Return a line whose ``custom_id`` is the request's hash (64 characters)."""
        line = {"custom_id": request_hash, "method": "POST", "url": self.path, "body": body}
        return json_bytes(line)

    async def submit(self, batch: str, lines: Sequence[BatchLine]) -> str:
        """Upload the file, create the batch. An upload that fails has created no batch."""
        content = file_bytes(lines)
        with self._sdk_errors() as client:
            file = (f"{sha256(content).hexdigest()}.jsonl", content)
            uploaded = await client.files.create(file=file, purpose="batch")
        with self._sdk_errors(submitting=True):
            made = await client.batches.create(
                input_file_id=uploaded.id,
                endpoint=self.path,
                completion_window="24h",
                metadata={"trajudge": batch},
            )
        return str(made.id)

    async def find(self, row: BatchRow, requests: Collection[str], known: Collection[str]) -> str:
        """Look through the batches since the intent for its metadata."""
        with self._sdk_errors() as client:
            async for batch in client.batches.list(limit=100):
                if (batch.metadata or {}).get("trajudge") == row.id:
                    return str(batch.id)
                if batch.created_at < row.intent_at - _SKEW:
                    break
        return ""

    async def state(self, provider_id: str) -> ProviderState:
        with self._sdk_errors() as client:
            batch = await client.batches.retrieve(provider_id)
        counts = batch.request_counts
        through = counts.completed + counts.failed if counts else 0
        if batch.status != "failed":
            return ProviderState(batch.status in _ENDED, through)
        errors = (batch.errors.data if batch.errors else None) or []
        why = "; ".join(str(e.message or e.code) for e in errors) or "no reason given"
        is_full = any(e.code == "token_limit_exceeded" for e in errors)
        return ProviderState(True, through, why, is_full)

    async def results(self, provider_id: str) -> list[LineResult]:
        """Download the file of answers and the file of errors, where they exist."""
        with self._sdk_errors() as client:
            batch = await client.batches.retrieve(provider_id)
            contents = [
                (await client.files.content(file)).content
                for file in (batch.output_file_id, batch.error_file_id)
                if file
            ]
        counts, where = batch.request_counts, self.adapter.where
        lines = [_result(line) for part in contents for line in json_lines(part, where)]
        return whole(lines, counts.completed if counts else 0, provider_id)

    async def cancel(self, provider_id: str) -> bool:
        with self._sdk_errors() as client:
            await client.batches.cancel(provider_id)
        return False


class FileBatches(OpenAIBatches):
    """``FOLDER/ID.in.jsonl`` and ``FOLDER/ID.out.jsonl``: OpenAI's lines in, its results out.

    ``vllm run-batch`` writes its output file in one piece, when all lines are through.
    """

    path = "/v1/chat/completions"
    unserved = (
        "start the same command again, and run the file that it writes with the lines' --model"
    )

    def __init__(self, adapter: ProviderAdapter, folder: Path) -> None:
        self.adapter, self.folder, self.name = adapter, folder, "files"

    def _written(self, batch: str) -> Path:
        return (self.folder / f"{batch}.in.jsonl").resolve()

    async def submit(self, batch: str, lines: Sequence[BatchLine]) -> str:
        """Write the file, whole or not at all. Raises UserError."""
        path = self._written(batch)
        make_folder(self.folder, "--batch-files")
        try:
            write_bytes(path, file_bytes(lines))
        except OSError as error:
            raise UserError(
                f"--batch-files {self.folder}: cannot be written ({error.strerror}): make room, or "
                "name another folder"
            ) from error
        return str(path)

    async def find(self, row: BatchRow, requests: Collection[str], known: Collection[str]) -> str:
        """Look whether the file was written."""
        path = self._written(row.id)
        return str(path) if path.is_file() else ""

    async def state(self, provider_id: str) -> ProviderState:
        """Look whether the output is there, a line for every request. Without file and output the
        batch has failed: nobody will run it."""
        lines, through = _count_lines(Path(provider_id)), _count_lines(output_of(provider_id))
        if lines is None and through is None:
            gone = "its file is not there any more; start the same command again, which writes it"
            return ProviderState(False, 0, failed=f"{gone} anew")
        return ProviderState((through or 0) >= (lines or 0), through or 0)

    async def results(self, provider_id: str) -> list[LineResult]:
        """Read the output. A line that is cut is named on stderr; nothing will make it whole, so
        that its request is one without a result."""
        path = output_of(provider_id)
        results, cut = list[LineResult](), list[int]()
        for line in read_lines(path):
            try:
                result = _result(dict(orjson.loads(line.data)))
            except (ValueError, TypeError):
                cut.append(line.number)
                continue
            where = f"vllm run-batch (line {line.number} of {path.name})"
            results.append(replace(result, where=where))
        if cut:
            more = f" (and {len(cut) - 1} more)" if len(cut) > 1 else ""
            sys.stderr.write(
                f"warning: {path} line {cut[0]} is cut{more}: its request is asked again\n"
            )
        return results

    async def cancel(self, provider_id: str) -> bool:
        """Remove the file that was to be run; where its output is there already, that is read."""
        _remove(Path(provider_id))
        return _count_lines(output_of(provider_id)) is None


def output_of(provider_id: str) -> Path:
    """Return where the output of a written file is expected."""
    return Path(provider_id.removesuffix(".in.jsonl") + ".out.jsonl")


def file_bytes(lines: Sequence[BatchLine]) -> bytes:
    """Return the bytes of a file of these lines."""
    return b"".join(line.content + b"\n" for line in lines)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _count_lines(path: Path) -> int | None:
    """Count the lines that are not empty; None without a file."""
    if not path.is_file():
        return None
    with open_regular(path, sparse=False) as file:
        return sum(1 for line in file if line.strip())


def _result(line: dict[str, Any]) -> LineResult:
    """Parse a line of OpenAI's results, which ``vllm run-batch`` writes too."""
    request, response, error = (line.get(name) for name in ("custom_id", "response", "error"))
    response = response if isinstance(response, dict) else {}
    status, body = int(response.get("status_code") or 0), response.get("body")
    if status == 200 and isinstance(body, dict) and not error:
        return LineResult(str(request), body)
    wrong = error if isinstance(error, dict) else body
    reported = read_error(orjson.dumps(wrong)) if wrong else ErrorBody("no answer")
    expired = isinstance(error, dict) and error.get("code") == "batch_expired"
    return LineResult(str(request), None, status if status >= 400 else 500, reported, expired)
