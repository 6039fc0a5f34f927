"""What came of a shard: the files of its worker, and ``done.json``, which says whose count."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import orjson
import zstandard
from pydantic import Field, ValidationError

from trajudge.eval.data.call_log import CALLS
from trajudge.eval.data.run_folder import (
    JUDGMENTS,
    LABELS,
    RECORDS,
    REWARDS,
    read_manifest,
)
from trajudge.eval.shards.claims import ShardClaim
from trajudge.eval.shards.objects.store import ObjectStore
from trajudge.trajectories.model import Record
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import read_regular
from trajudge.trajectories.util.validation import first_error

FILES = (JUDGMENTS, CALLS, LABELS, REWARDS)
_RECORDS = f"{RECORDS}.jsonl"


class StoredFile(Record):
    """Where a file of a shard is kept, and the SHA-256 of its content."""

    name: str
    object: str
    sha256: str


class ShardOutcome(Record):
    """A finished shard: who finished it, in which turn of owners, with how many judgments, and what
    was sent for them (``RunManifest.sent``)."""

    worker: str
    turn: int
    judgments: int
    files: tuple[StoredFile, ...]
    sent: list[dict[str, Any]] = Field(default_factory=list)


def finished(store: ObjectStore) -> set[str]:
    """Return the names of the shards that are finished. Raises UserError."""
    names = (name.split("/") for name in store.names("shards/"))
    return {parts[1] for parts in names if parts[-1] == "done.json"}


def finish(store: ObjectStore, shard: str, claim: ShardClaim, folder: Path, judgments: int) -> bool:
    """Store the files of a judged shard; False if another worker has finished it in the meantime.
    Raises UserError."""
    files = []
    for name, content in _contents(folder):
        place = f"shards/{shard}/{claim.turn:04}-{claim.worker}.{name}.zst"
        store.write(place, zstandard.compress(content))
        files.append(StoredFile(name=name, object=place, sha256=sha256(content).hexdigest()))
    outcome = ShardOutcome(
        worker=claim.worker,
        turn=claim.turn,
        judgments=judgments,
        files=tuple(files),
        sent=read_manifest(folder).get("sent") or [],
    )
    return store.create(_done(shard), outcome.model_dump_json().encode())


def read_outcome(store: ObjectStore, shard: str) -> ShardOutcome:
    """Read what is known of a finished shard. Raises UserError."""
    stored = store.read(_done(shard))
    if stored is None:
        raise UserError(f"{store.address}: shard {shard} is not finished: give it to a worker")
    try:
        return ShardOutcome.model_validate_json(stored.content)
    except ValidationError as error:
        raise UserError(
            f"{store.address}, {_done(shard)}: {first_error(error, 'the whole')}: remove it, and "
            "a worker does the shard again"
        ) from error


def content_of(store: ObjectStore, shard: str, outcome: ShardOutcome, name: str) -> bytes:
    """Return a file of a finished shard, b"" if it has none of that name. Raises UserError for one
    that is missing or damaged."""
    for file in outcome.files:
        if file.name == name:
            stored = store.read(file.object)
            content = _decompressed(stored.content) if stored else b""
            if sha256(content).hexdigest() != file.sha256:
                raise UserError(
                    f"{store.address}, {file.object}: is damaged or missing: remove "
                    f"{_done(shard)}, and a worker does the shard again"
                )
            return content
    return b""


def records_of(store: ObjectStore, shard: str, outcome: ShardOutcome) -> Iterator[tuple[str, str]]:
    """Yield the names and contents of the records of a shard's judgments. Raises UserError."""
    for line in content_of(store, shard, outcome, _RECORDS).splitlines():
        name, content = orjson.loads(line)
        if "/" in name or name.startswith("."):
            raise UserError(f"{store.address}: shard {shard} has a record named {name!r}")
        yield name, content


def _contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    for name in FILES:
        if (folder / name).is_file():
            yield name, read_regular(folder / name)
    if (folder / RECORDS).is_dir():
        records = sorted((folder / RECORDS).iterdir())
        lines = (orjson.dumps([path.name, read_regular(path).decode()]) + b"\n" for path in records)
        yield _RECORDS, b"".join(lines)


def _decompressed(content: bytes) -> bytes:
    try:
        return zstandard.ZstdDecompressor().stream_reader(BytesIO(content)).read()
    except zstandard.ZstdError:
        return b""


def _done(shard: str) -> str:
    return f"shards/{shard}/done.json"
