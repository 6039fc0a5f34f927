"""Fetch CUAVerifierBench: whole files checked against their hash, or all but the screenshots.

The published revision is pinned: name, size and SHA-256 of every file stand here, and the hub must
list the same. Without images, only the footer of a file and the column chunks of its text are
transferred, and written as ``NAME.text.parquet`` beside the place of the whole file.
"""

from __future__ import annotations

import json
import os
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from trajudge.trajectories.hub.mirror import HubClient, Listed
from trajudge.trajectories.loaders.cuaverifierbench import (
    SCREENSHOTS,
    SUFFIX,
    TEXT_SUFFIX,
)
from trajudge.util.errors import UserError
from trajudge.util.files import read_regular, write_bytes

REPO = "microsoft/CUAVerifierBench"
LICENCE = "MIT"
REVISION = "c19eb323cd802add5c3d2840ff13044061364867"
FILES = {
    "annotations/fara7b_om2w_browserbase-00000-of-00001.parquet": Listed(
        77_932, "10d459cf76e888de082534be156f60974176617242ce5ebdaac554461468ab84"
    ),
    "annotations/internal-00000-of-00001.parquet": Listed(
        15_450, "3741e6927bc1d2f1b346d346bbf7813561c44d24e80b9975451c7773b6fd21e4"
    ),
    "trajectories/fara7b_om2w_browserbase-00000-of-00002.parquet": Listed(
        461_305_772, "00f6083c3465d9644a51ec6279d6bc13795375d2c5f6deb00e2322210076654a"
    ),
    "trajectories/fara7b_om2w_browserbase-00001-of-00002.parquet": Listed(
        414_473_352, "79b22396664658e548c2c0ef3e4e5b28760265cf701724bb6a1edae6ae47122e"
    ),
    "trajectories/internal-00000-of-00002.parquet": Listed(
        626_005_617, "923ae24f2ff72fba6e43a7302f58fd374e1e53fef497ead70fc4b2cb345a522e"
    ),
    "trajectories/internal-00001-of-00002.parquet": Listed(
        732_069, "aeb7de912a8e853df07c02a97f390849362872d7a8a56916241ccb135135c319"
    ),
}
_FOLDERS = ("annotations", "trajectories")
_RECORD = Path(".trajudge") / "copy.json"


class Fetched(NamedTuple):
    """The copy, its revision, how many files came and how many were here, and the bytes that were
    transferred."""

    folder: Path
    revision: str
    files: int
    present: int
    transferred: int


def folder() -> Path:
    """Return where the copy is kept unless told otherwise: in the user's cache."""
    return Path("~/.cache/trajudge/cuaverifierbench").expanduser()


def fetch(out: Path, *, images: bool = True, revision: str | None = None) -> Fetched:
    """Fetch all files into ``out`` that are not there yet; a complete copy makes no request.

    Raises UserError if the hub cannot be reached or lists other content than was published, or
    ``out`` holds another revision.
    """
    wanted = revision or REVISION
    client = HubClient(REPO, os.environ.get("HF_ENDPOINT") or None, kind="cuaverifierbench")
    record = _record(out, wanted)
    listed = {name: Listed(*entry) for name, entry in record["files"].items()}
    if not listed:
        listed = _listed(client, wanted, out)
        record["files"] = listed
        _write(out, record)
    fetched = transferred = 0
    for name, entry in sorted(listed.items()):
        whole = out / name
        text = whole.with_name(whole.name.removesuffix(SUFFIX) + TEXT_SUFFIX)
        with_images = images or not name.startswith("trajectories/")
        if whole.is_file() or (not with_images and _is_complete(text, record["texts"].get(name))):
            continue
        fetched += 1
        if with_images:
            _fetch_whole(client, name, wanted, entry, whole)
            transferred += entry.size
            text.unlink(missing_ok=True)
        else:
            digest, size = _fetch_text(client, name, wanted, entry, text)
            record["texts"][name] = digest
            transferred += size
            _write(out, record)
    return Fetched(out, wanted, fetched, len(listed) - fetched, transferred)


def card(*, images: bool) -> str:
    """Say what is about to be fetched: data set, licence, size."""
    size = f"{sum(entry.size for entry in FILES.values()) / 1e9:.2f} GB"
    parts = size if images else f"text only, of {size}"
    return f"{REPO} ({LICENCE}), revision {REVISION[:7]}: {len(FILES)} files, {parts}"


def _listed(client: HubClient, revision: str, out: Path) -> dict[str, Listed]:
    """List the Parquet files of the revision; of the pinned one, they must be those published."""
    listed: dict[str, Listed] = {}
    for part in _FOLDERS:
        listing = client.ask(part, revision, out, partial(client.list, part, revision)) or {}
        listed |= {name: entry for name, entry in listing.items() if name.endswith(SUFFIX)}
    if not listed:
        raise UserError(f"{client.where} has no Parquet files at revision {revision}")
    if revision == REVISION and listed != FILES:
        name = min(n for n in {*listed, *FILES} if listed.get(n) != FILES.get(n))
        raise UserError(
            f"{client.where}: lists {name} as {listed.get(name)}, where {FILES.get(name)} was "
            "published under this revision: the hub gives other data; set HF_ENDPOINT to another"
        )
    return listed


def _fetch_whole(client: HubClient, name: str, revision: str, entry: Listed, target: Path) -> None:
    """Fetch a file, checked against its hash. Raises UserError, FileUnavailable."""
    fetched = client.ask(
        name, revision, target.parent, lambda: client.fetch(name, revision, entry, target)
    )
    if fetched is None:
        raise UserError(f"{client.where} has no {name} at revision {revision}")


def _fetch_text(
    client: HubClient, name: str, revision: str, entry: Listed, target: Path
) -> tuple[str, int]:
    """Write all columns of a file but the screenshots; return the SHA-256 of what was written, and
    how many bytes were transferred. Raises UserError, FileUnavailable."""

    def read() -> tuple[bytes, int]:
        import pyarrow as pa  # noqa: PLC0415 - only this format needs it
        import pyarrow.parquet as pq  # noqa: PLC0415

        with client.open(name, revision, entry) as file:
            try:
                parquet = pq.ParquetFile(file)
                columns = [c for c in parquet.schema_arrow.names if c != SCREENSHOTS]
                table = parquet.read(columns=columns)
            except pa.ArrowInvalid as error:
                raise OSError(f"is no Parquet file: {error}") from error
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink)
            return sink.getvalue().to_pybytes(), file.transferred

    answer = client.ask(name, revision, target.parent, read)
    if answer is None:
        raise UserError(f"{client.where} has no {name} at revision {revision}")
    content, transferred = answer
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(target, content)
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror or error}") from error
    return sha256(content).hexdigest(), transferred


def _is_complete(path: Path, digest: str | None) -> bool:
    """Tell whether a file without images is what was written."""
    return path.is_file() and sha256(read_regular(path)).hexdigest() == digest


def _record(out: Path, revision: str) -> dict[str, Any]:
    """Read what the copy says of itself. Raises UserError if it is of another revision."""
    try:
        record = json.loads(read_regular(out / _RECORD))
    except (OSError, ValueError):
        record = None
    if not isinstance(record, dict) or record.get("repo") != REPO:
        return {"repo": REPO, "revision": revision, "files": {}, "texts": {}}
    if record["revision"] != revision:
        raise UserError(
            f"{out} holds revision {record['revision']} of {REPO}, not {revision}: give another "
            "folder with --out, or leave --revision out"
        )
    return record


def _write(out: Path, record: dict[str, Any]) -> None:
    try:
        (out / _RECORD).parent.mkdir(parents=True, exist_ok=True)
        write_bytes(out / _RECORD, json.dumps(record, indent=1).encode())
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror or error}") from error
