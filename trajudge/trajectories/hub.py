"""Local copies of data sets on the Hugging Face Hub.

Only required files are downloaded, each checked against the hash in the hub's listing. A copy's
folder has ``.trajudge/copy.json`` (its revision) and the listings of folders, so that a complete
copy is read without a request.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha1, sha256
from itertools import count
from pathlib import Path, PurePosixPath
from threading import RLock
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar

import huggingface_hub
from huggingface_hub import constants, utils

from trajudge.util.errors import UserError
from trajudge.util.files import open_regular, read_regular, replacing, write_bytes
from trajudge.util.terminal import progress_bar

if TYPE_CHECKING:
    from tenacity import RetryCallState

T = TypeVar("T")
R = TypeVar("R")

_RECORD = ".trajudge"
_ATTEMPTS = 5
_MAX_WAIT_SECONDS = 300.0
# So many failing requests in a row are an error of the hub, not of single files.
_GIVE_UP = 8
# The hub lists a folder of this depth with all that is in it: cleaned/BENCHMARK/AGENT.
_LISTED_DEPTH = 3
_COMMIT = re.compile(r"[0-9a-f]{40}")


class Listed(NamedTuple):
    """Size and hash of a file: SHA-256 of a large one's content, otherwise git's SHA-1."""

    size: int
    hash: str


class FileUnavailable(UserError):
    """One file cannot be downloaded now, although the hub is reachable."""


class _Broken(Exception):
    """The content differs from the listing."""


@dataclass
class FetchCounts:
    """The numbers of downloaded files, of their bytes, and of present and missing files."""

    downloaded: int = 0
    bytes: int = 0
    present: int = 0
    missing: int = 0

    def __str__(self) -> str:
        return (
            f"{self.downloaded} files fetched ({self.bytes / 1e6:.1f} MB), {self.present} were "
            f"here already, {self.missing} not in the dataset"
        )


class HubCopy:
    """The files of dataset ``repo`` in ``folder``; thread-safe.

    ``revision`` is a branch, tag or commit, resolved once (later ones must agree with it);
    ``endpoint`` is the hub's address (``HF_ENDPOINT`` if None); ``kind`` is the loader's.
    """

    def __init__(
        self,
        folder: Path,
        repo: str,
        revision: str | None = None,
        endpoint: str | None = None,
        kind: str = "agentrewardbench",
    ) -> None:
        self.folder, self.repo, self.kind = folder, repo, kind
        self.endpoint = endpoint or os.environ.get("HF_ENDPOINT") or None
        self.counts, self.missing = FetchCounts(), list[str]()
        self._asked = revision or "main"
        self._lock = RLock()
        self._folders = dict[str, dict[str, Listed]]()
        self._failed_in_a_row = 0
        self._record = _read_record(folder)
        known = (self._record.get("revision"), self._record.get("asked"))
        if revision and self._record and revision not in known:
            raise UserError(
                f"{folder} holds revision {self._record['revision']} of {repo}, not {revision}: "
                "give another folder with --out, or leave --revision out"
            )

    @property
    def revision(self) -> str:
        """The commit of every file. Raises UserError if the hub is unreachable."""
        with self._lock:
            if not self._record:
                commit = self._asked
                if not _COMMIT.fullmatch(commit):
                    commit = self._request("the revision", self._resolve) or commit
                self._write({"repo": self.repo, "asked": self._asked, "revision": commit})
            return str(self._record["revision"])

    @property
    def address(self) -> str:
        """The dataset's page on the hub."""
        return f"{self.endpoint or constants.ENDPOINT}/datasets/{self.repo}"

    def get(self, path: str) -> Path | None:
        """Return the local file, downloaded if missing; None if the dataset has no such file.

        Raises UserError if the hub is unreachable or refuses, or the disk is full, and
        FileUnavailable if only this file fails, which is retried the next time.
        """
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or _RECORD in parts:
            raise UserError(f"{path!r} in the dataset's own files leads outside of its folder")
        local = self.folder.joinpath(*parts)
        if local.is_file():
            self._count(present=1)
            return local
        listed = self.listed(_listed_folder(path)).get(path)
        if listed is None:
            self.missing.append(path)
            self._count(missing=1)
            return None
        self._request(path, partial(self._download, path, listed, local))
        self._count(downloaded=1, bytes=listed.size)
        return local

    def listed(self, folder: str) -> dict[str, Listed]:
        """List the files in a folder of the dataset by path, at any depth ("": only the files of
        the root); requested once, then stored."""
        with self._lock:
            if folder not in self._folders:
                kept = self.folder / _RECORD / "tree" / f"{folder.replace('/', '--')}.json"
                if kept.is_file():
                    rows = json.loads(read_regular(kept))
                    files = {path: Listed(*row) for path, row in rows.items()}
                else:
                    files = self._request(folder, partial(self._list, folder)) or {}
                    _write_json(kept, files)
                self._folders[folder] = files
            return self._folders[folder]

    def text_columns(self, path: str, target: Path, left_out: str) -> None:
        """Write a Parquet file without one column, whose bytes are not downloaded, unless it
        exists unchanged. Raises UserError, FileUnavailable."""
        digests: dict[str, str] = self._record.get("texts", {})
        if target.is_file() and sha256(read_regular(target)).hexdigest() == digests.get(path):
            self._count(present=1)
            return
        listed = self.listed(_listed_folder(path))[path]
        content = self._request(path, partial(self._read_columns, path, listed, left_out)) or b""
        _save(target, content)
        digests = {**self._record.get("texts", {}), path: sha256(content).hexdigest()}
        self._write({"texts": digests})
        self._count(downloaded=1, bytes=len(content))

    def _resolve(self) -> str | None:
        return (
            huggingface_hub.HfApi(endpoint=self.endpoint)
            .dataset_info(self.repo, revision=self._asked)
            .sha
        )

    def _list(self, folder: str) -> dict[str, Listed]:
        entries = huggingface_hub.HfApi(endpoint=self.endpoint).list_repo_tree(
            self.repo,
            folder or None,
            recursive=bool(folder),
            revision=self.revision,
            repo_type="dataset",
        )
        return {
            entry.path: Listed(entry.size, entry.lfs.sha256 if entry.lfs else entry.blob_id)
            for entry in entries
            if isinstance(entry, huggingface_hub.RepoFile)
        }

    def _download(self, path: str, listed: Listed, target: Path) -> None:
        """Download a listed file atomically to ``target``."""
        from huggingface_hub.file_download import http_get  # noqa: PLC0415

        # They would drown the overall progress.
        utils.disable_progress_bars("huggingface_hub.http_get")  # type: ignore[attr-defined]
        url = huggingface_hub.hf_hub_url(
            self.repo, path, revision=self.revision, repo_type="dataset", endpoint=self.endpoint
        )
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target, durable=False) as file:
            headers = utils.build_hf_headers()  # type: ignore[attr-defined]
            http_get(url, file, headers=headers, expected_size=listed.size)  # type: ignore[arg-type]
            file.flush()
            with open_regular(file.name) as written:
                _check(written, listed)

    def _read_columns(self, path: str, listed: Listed, left_out: str) -> bytes:
        from pyarrow import ArrowInvalid, BufferOutputStream  # noqa: PLC0415 - slow
        from pyarrow import parquet as pq  # noqa: PLC0415

        files = huggingface_hub.HfFileSystem(endpoint=self.endpoint, skip_instance_cache=True)
        name = f"datasets/{self.repo}@{self.revision}/{path}"
        about = files.info(name)
        if (about["lfs"] or {}).get("sha256") != listed.hash:
            raise _Broken("it is not the file that the dataset lists")
        with files.open(name, "rb", cache_type="none") as file:
            try:
                parquet = pq.ParquetFile(file)
                columns = [name for name in parquet.schema_arrow.names if name != left_out]
                table = parquet.read(columns=columns)
            except ArrowInvalid as error:
                raise _Broken(f"it is no Parquet file: {error}") from error
        sink = BufferOutputStream()
        pq.write_table(table, sink)
        content: bytes = sink.getvalue().to_pybytes()
        return content

    def _request(self, path: str, request: Callable[[], T | None]) -> T | None:
        """Make a request, with retries where they may help; None for "no such file".

        Raises FileUnavailable for an error of this file, UserError for an error of the hub, of the
        access to it or of the disk, or if many files fail in a row.
        """
        from huggingface_hub.errors import (  # type: ignore[attr-defined] # noqa: PLC0415
            GatedRepoError,
            HTTPError,
            RemoteEntryNotFoundError,
            RepositoryNotFoundError,
            RevisionNotFoundError,
        )
        from tenacity import (  # noqa: PLC0415 - many imports, for those who ask a hub
            Retrying,
            retry_if_exception,
            stop_after_attempt,
            wait_exponential,
        )

        retrying = Retrying(
            retry=retry_if_exception(_may_pass),
            wait=partial(_wait, wait_exponential(multiplier=0.5, max=30)),
            stop=stop_after_attempt(_ATTEMPTS),
            reraise=True,
        )
        try:
            answer = retrying(request)
        except RemoteEntryNotFoundError:
            answer = None
        except GatedRepoError as error:
            raise UserError(self._gated()) from error
        except RepositoryNotFoundError as error:
            raise UserError(f"{self.address}: there is no such dataset to be read") from error
        except RevisionNotFoundError as error:
            raise UserError(f"{self.address} has no revision {self._asked!r}") from error
        except (OSError, HTTPError, _Broken) as error:
            failure = self._failure(path, error)
            if isinstance(failure, FileUnavailable):
                self._failed_in_a_row += 1
                if self._failed_in_a_row >= _GIVE_UP:
                    failure = UserError(f"{failure} ({_GIVE_UP} requests failed in a row)")
            raise failure from error
        self._failed_in_a_row = 0
        return answer

    def _gated(self) -> str:
        start = f"{self.address} is gated: accept its terms on that page with"
        if huggingface_hub.get_token():
            return f"{start} the account whose token is set"
        return (
            f"{start} your account, then set HF_TOKEN to a token of that account that may read "
            "gated repositories"
        )

    def _failure(self, path: str, error: Exception) -> UserError:
        status, start = _status(error), f"cannot fetch {path} from {self.address}"
        elsewhere = f"set HF_ENDPOINT to a mirror, or give a copy of it as --data {self.kind}:PATH"
        if status in (401, 403):
            return UserError(
                f"{start}: it answered {status}; set HF_TOKEN to a token that may read it"
            )
        if status is not None:
            kind = UserError if status == 429 else FileUnavailable
            return kind(f"{start}: it answered {status}; try again later, {elsewhere}")
        if isinstance(error, OSError) and error.errno is not None:
            return UserError(f"cannot write {path} to {self.folder}: {error.strerror}")
        name = next((type(e).__name__ for e in _chain(error) if "Connect" in type(e).__name__), "")
        if name:
            return UserError(f"{start}: no connection ({name}); check the network, {elsewhere}")
        why = " ".join(str(error).split())[:200] or type(error).__name__
        return FileUnavailable(f"{start}: what it sends is broken ({why}); try again later")

    def _count(self, **more: int) -> None:
        with self._lock:
            for name, number in more.items():
                setattr(self.counts, name, getattr(self.counts, name) + number)

    def _write(self, changes: dict[str, Any]) -> None:
        with self._lock:
            self._record = {**self._record, **changes}
            _write_json(self.folder / _RECORD / "copy.json", self._record)


def _listed_folder(path: str) -> str:
    """Return the folder whose listing includes a file."""
    return "/".join(PurePosixPath(path).parts[:-1][:_LISTED_DEPTH])


def _check(file: BinaryIO, listed: Listed) -> None:
    """Raise _Broken unless the file has the listed content."""
    digest = sha256()
    if len(listed.hash) == 40:  # git's hash: here it only recognizes the content
        digest = sha1(b"blob %d\0" % listed.size, usedforsecurity=False)
    while block := file.read(2**20):
        digest.update(block)
    if digest.hexdigest() != listed.hash:
        raise _Broken("its content is not what the dataset lists")


def _chain(error: BaseException | None) -> list[BaseException]:
    """Return the error and its causes: the client hides the hub's response in them."""
    chain = list[BaseException]()
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__
    return chain


def _status(error: BaseException) -> int | None:
    """Return the HTTP status of an error, None without a response."""
    responses = (getattr(e, "response", None) for e in _chain(error))
    return next((r.status_code for r in responses if r is not None), None)


def _may_pass(error: BaseException) -> bool:
    status = _status(error)
    return isinstance(error, _Broken) or (status is not None and (status == 429 or status >= 500))


def _wait(otherwise: Callable[[RetryCallState], float], state: RetryCallState) -> float:
    """Return the seconds to wait: as the hub requested, else those of ``otherwise``."""
    error = state.outcome.exception() if state.outcome else None
    for cause in _chain(error):
        seconds = getattr(getattr(cause, "response", None), "headers", {}).get("Retry-After", "")
        if seconds.isdigit():
            return min(float(seconds), _MAX_WAIT_SECONDS)
    return otherwise(state)


def default_folder(kind: str = "agentrewardbench") -> Path:
    """Return the folder of a copy: ``TRAJUDGE_DATA`` for AgentRewardBench, else in the cache."""
    named = os.environ.get("TRAJUDGE_DATA") if kind == "agentrewardbench" else None
    return Path(named or f"~/.cache/trajudge/{kind}").expanduser()


def revision_of(folder: Path) -> str | None:
    """Return the revision of the copy that ``folder`` is, or is in; None for other files."""
    records = map(_read_record, (folder, *folder.resolve().parents))
    return next((str(record["revision"]) for record in records if record), None)


def _read_record(folder: Path) -> dict[str, Any]:
    """Read the record of a copy; empty without one."""
    try:
        record = json.loads(read_regular(folder / _RECORD / "copy.json"))
    except (OSError, ValueError):
        return {}
    is_record = isinstance(record, dict) and isinstance(record.get("revision"), str)
    return record if is_record else {}


def _write_json(path: Path, content: object) -> None:
    _save(path, json.dumps(content, indent=1).encode())


def _save(path: Path, content: bytes) -> None:
    """Write a small file atomically. Raises UserError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, content)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def fetch_progress(copy: HubCopy, total: int) -> Iterator[Callable[[], None]]:
    """Yield the function that counts one more of ``total`` files and shows the downloads.

    Nothing is shown until something is downloaded.
    """
    numbers = count(1)
    done = 0

    def downloads() -> str:
        counts = copy.counts
        missing = f", {counts.missing} not in the dataset" if counts.missing else ""
        return f"{counts.downloaded} files, {counts.bytes / 1e6:.1f} MB{missing}"

    def advance() -> None:
        nonlocal done
        done = next(numbers)
        if copy.counts.downloaded:
            show(f"fetching ({downloads()})", done, total)

    with progress_bar() as show:
        yield advance
    if done == total and copy.counts.downloaded and not sys.stderr.isatty():
        sys.stderr.write(f"fetching: {done}/{total}, {downloads()}\n")


def prefetch(function: Callable[[T], R], items: Iterable[T]) -> Iterator[tuple[T, R]]:
    """Yield ``(item, function(item))`` in order, computed in threads a few items ahead."""
    workers = 4  # enough to hide latency; the hub limits requests, not bandwidth
    pool = ThreadPoolExecutor(workers)
    pending = deque[tuple[T, Future[R]]]()
    try:
        for item in items:
            pending.append((item, pool.submit(function, item)))
            if len(pending) > workers:
                first, future = pending.popleft()
                yield first, future.result()
        for first, future in pending:
            yield first, future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
