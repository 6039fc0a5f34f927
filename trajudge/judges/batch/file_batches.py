"""Batches as files for ``vllm run-batch``: written into a folder, read back when it has run."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import orjson

from trajudge.judges.adapters.wire import json_bytes
from trajudge.judges.batch.ledger import file_bytes
from trajudge.judges.batch.records import (
    BatchLine,
    BatchResults,
    BatchRow,
    LineResult,
    ProviderState,
)
from trajudge.judges.batch.service import BatchMatch, chat_result
from trajudge.util.errors import UserError
from trajudge.util.files import make_folder, open_regular, write_bytes
from trajudge.util.jsonl import read_lines

WAITING = "waiting for its output"
UNSERVED = "start the same command again, and run the file that it writes with the lines' --model"
GONE = "its file is not there any more; start the same command again, which writes it anew"


class FileBatches:
    """``FOLDER/ID.in.jsonl`` and ``FOLDER/ID.out.jsonl``: OpenAI's lines in, its results out.

    ``vllm run-batch`` writes its output file in one piece, when all lines are through.
    """

    name = "files"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def line(self, request_hash: str, body: dict[str, Any]) -> bytes:
        """Return a line whose ``custom_id`` is the request's hash (64 characters)."""
        url = "/v1/chat/completions"
        return json_bytes({"custom_id": request_hash, "method": "POST", "url": url, "body": body})

    async def submit(self, batch: str, lines: Sequence[BatchLine]) -> str:
        """Write the file, whole or not at all. Raises UserError."""
        path = self.folder / f"{batch}.in.jsonl"
        make_folder(self.folder, "--batch-files")
        try:
            write_bytes(path, file_bytes(lines))
        except OSError as error:
            raise UserError(
                f"--batch-files {self.folder}: cannot be written ({error.strerror}): make room, or "
                "name another folder"
            ) from error
        return str(path.resolve())

    async def find(
        self, row: BatchRow, requests: Collection[str], known: Collection[str]
    ) -> BatchMatch:
        """Look whether the file was written."""
        path = self.folder / f"{row.id}.in.jsonl"
        return BatchMatch(str(path.resolve()) if path.is_file() else "")

    async def state(self, provider_id: str) -> ProviderState:
        """Look whether the output is there, a line for every request. Without file and output the
        batch has failed: nobody will run it."""
        return _state(Path(provider_id), output_of(provider_id))

    async def results(self, provider_id: str) -> BatchResults:
        """Read the output. A line that is cut is named on stderr; nothing will make it whole, so
        that its request is one without a result."""
        path = output_of(provider_id)
        results, cut = list[LineResult](), list[int]()
        for line in read_lines(path):
            try:
                where = f"vllm run-batch (line {line.number} of {path.name})"
                result = chat_result(dict(orjson.loads(line.data)))
                results.append(result._replace(where=where, unserved=UNSERVED))
            except (ValueError, TypeError):
                cut.append(line.number)
        if cut:
            more = f" (and {len(cut) - 1} more)" if len(cut) > 1 else ""
            sys.stderr.write(
                f"warning: {path} line {cut[0]} is cut{more}: its request is asked again\n"
            )
        return BatchResults(results, 0)

    async def cancel(self, provider_id: str) -> bool:
        """Remove the file that was to be run; where its output is there already, that is read."""
        return _removed(Path(provider_id), output_of(provider_id))


def output_of(provider_id: str) -> Path:
    """Return where the output of a written file is expected."""
    return Path(provider_id.removesuffix(".in.jsonl") + ".out.jsonl")


def _state(written: Path, output: Path) -> ProviderState:
    if not written.is_file() and not output.is_file():
        return ProviderState(False, "gone", 0, 0, failed=GONE)
    lines = _count_lines(written) if written.is_file() else 0
    through = _count_lines(output) if output.is_file() else 0
    ended = through >= lines
    return ProviderState(ended, "completed" if ended else WAITING, through, lines)


def _count_lines(path: Path) -> int:
    with open_regular(path, sparse=False) as file:
        return sum(1 for line in file if line.strip())


def _removed(written: Path, output: Path) -> bool:
    """Remove what was written; tell whether there is no output of it."""
    written.unlink(missing_ok=True)
    return not output.is_file()
