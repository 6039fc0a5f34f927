"""Lazy local mirror of a Hugging Face dataset: the hub's client, files and parts of files fetched
when they are needed, progress on standard error.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import sha1, sha256
from itertools import count
from pathlib import Path, PurePosixPath
from tempfile import NamedTemporaryFile
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar, cast

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    wait_exponential,
)

from trajudge.util.errors import UserError
from trajudge.util.files import read_regular, write_bytes
from trajudge.util.terminal import progress_bar

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class RangeFile(io.RawIOBase):
    """A readable, seekable file of ``size`` bytes at ``url``, read by HTTP ranges.

    ``transferred`` counts the bytes that came. Reading raises OSError if the server gives another
    part than the one asked for, and what the client raises for its errors.
    """

    def __init__(self, url: str, size: int, headers: dict[str, str] | None = None) -> None:
        super().__init__()
        self._url, self._size, self._place = url, size, 0
        self._headers = {**(headers or {}), "Accept-Encoding": "identity"}
        self.transferred = 0

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def seekable(self) -> bool:
        """Tell that any part can be read."""
        return True

    def tell(self) -> int:
        """Return the place of the next byte that is read."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place; nothing is transferred."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        self._place = max(0, start + offset)
        return self._place

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read the next bytes into a buffer, as many as it takes; 0 at the end of the file."""
        view = memoryview(buffer).cast("B")
        content = self._part(self._place, min(self._place + len(view), self._size))
        view[: len(content)] = content
        self._place += len(content)
        return len(content)

    def _part(self, start: int, end: int) -> bytes:
        from huggingface_hub.utils import (  # type: ignore[attr-defined] # noqa: PLC0415
            get_session,
            hf_raise_for_status,
        )

        if start >= end:
            return b""
        span = {"Range": f"bytes={start}-{end - 1}"}
        response = get_session().get(self._url, headers={**self._headers, **span})
        hf_raise_for_status(response)
        content: bytes = response.content
        self.transferred += len(content)
        stated = response.headers.get("Content-Range", "")
        if stated != f"bytes {start}-{end - 1}/{self._size}" or len(content) != end - start:
            raise OSError(
                f"the server gave {stated or 'the whole file'} for bytes {start}-{end - 1}"
            )
        return content


T = TypeVar("T")

_ATTEMPTS = 5

_MAX_WAIT_SECONDS = 300.0

_BLOCK = 2**20


class Listed(NamedTuple):
    """A file in a listing; ``hash`` is of its content, ``sha256`` of a large file's and git's own
    otherwise."""

    size: int
    hash: str


class FileUnavailable(UserError):
    """One file cannot be had now, though the hub can be reached: it answers with an error of its
    own, or what it sends is broken."""


class _Broken(Exception):
    """What came is not the file that was listed."""


class HubClient:
    """Requests for dataset ``repo`` at ``endpoint`` (the client's default if None), which loaders
    read as ``kind``."""

    def __init__(self, repo: str, endpoint: str | None, kind: str = "agentrewardbench") -> None:
        self.repo = repo
        self.endpoint = endpoint
        self.kind = kind

    def resolve(self, revision: str) -> str | None:
        """Resolve a branch, tag or commit to its commit."""
        from huggingface_hub import get_hf_file_metadata, hf_hub_url  # noqa: PLC0415

        url = hf_hub_url(self.repo, "annotations.csv", revision=revision, **self._dataset)
        return get_hf_file_metadata(url, endpoint=self.endpoint).commit_hash

    def download(self, path: str, revision: str, folder: Path) -> str:
        """Download a file that was not listed into its place below ``folder``."""
        from huggingface_hub import hf_hub_download  # noqa: PLC0415

        self._be_quiet()
        return str(
            hf_hub_download(self.repo, path, revision=revision, local_dir=folder, **self._dataset)
        )

    def fetch(self, path: str, revision: str, listed: Listed, target: Path) -> Path:
        """Download a file that was listed: it is at ``target`` complete, or not at all."""
        from huggingface_hub import hf_hub_url  # noqa: PLC0415
        from huggingface_hub.file_download import http_get  # noqa: PLC0415
        from huggingface_hub.utils import (  # type: ignore[attr-defined] # noqa: PLC0415
            build_hf_headers,
        )

        self._be_quiet()
        target.parent.mkdir(parents=True, exist_ok=True)
        url = hf_hub_url(self.repo, path, revision=revision, **self._dataset)
        with NamedTemporaryFile(dir=target.parent, prefix=".fetching-", delete=False) as file:
            try:
                stream = cast(BinaryIO, file)
                http_get(url, stream, headers=build_hf_headers(), expected_size=listed.size)
                _check(stream, listed)
                os.replace(file.name, target)  # noqa: PTH105
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
        return target

    def open(self, path: str, revision: str, listed: Listed) -> RangeFile:
        """Open a file that was listed, to read parts of it. Raises _Broken if the hub now gives
        another one."""
        from huggingface_hub import get_hf_file_metadata, hf_hub_url  # noqa: PLC0415
        from huggingface_hub.utils import (  # type: ignore[attr-defined] # noqa: PLC0415
            build_hf_headers,
        )

        url = hf_hub_url(self.repo, path, revision=revision, **self._dataset)
        metadata = get_hf_file_metadata(url, endpoint=self.endpoint)
        etag = metadata.etag or ""
        # Behind a redirect to the same host, an entity tag is the server's own, of another length.
        is_other = len(etag) == len(listed.hash) and etag != listed.hash
        if is_other or metadata.size != listed.size:
            raise _Broken("it is not the file that the dataset lists")
        is_signed = metadata.location.split("/")[2] != url.split("/")[2]
        headers = {} if is_signed else build_hf_headers()
        return RangeFile(metadata.location, listed.size, headers)

    def list(self, folder: str, revision: str) -> dict[str, Listed]:
        """List all files in a folder by path, at any depth."""
        from huggingface_hub import HfApi, RepoFile  # noqa: PLC0415

        entries = HfApi(endpoint=self.endpoint).list_repo_tree(
            self.repo, folder, recursive=True, revision=revision, repo_type="dataset"
        )
        return {
            entry.path: Listed(entry.size, entry.lfs.sha256 if entry.lfs else entry.blob_id)
            for entry in entries
            if isinstance(entry, RepoFile)
        }

    def ask(self, path: str, revision: str, folder: Path, request: Callable[[], T]) -> T | None:
        """Make the request and return its answer, None for "no such file"; repeated when that may
        help.

        Raises FileUnavailable if it is this file that fails, UserError if it is the hub, the
        access to it, or the disk.
        """
        from huggingface_hub.errors import (  # type: ignore[attr-defined] # noqa: PLC0415
            GatedRepoError,
            HTTPError,
            RemoteEntryNotFoundError,
            RepositoryNotFoundError,
            RevisionNotFoundError,
        )

        retrying = Retrying(
            retry=retry_if_exception(_may_pass),
            wait=_wait,
            stop=stop_after_attempt(_ATTEMPTS),
            reraise=True,
        )
        try:
            return retrying(request)
        except RemoteEntryNotFoundError:
            return None
        except GatedRepoError as error:
            raise UserError(self._gated()) from error
        except RepositoryNotFoundError as error:
            raise UserError(f"{self.where}: there is no such dataset to be read") from error
        except RevisionNotFoundError as error:
            raise UserError(f"{self.where} has no revision {revision!r}") from error
        except (OSError, HTTPError, _Broken) as error:
            raise self._failure(path, folder, error) from error

    @property
    def where(self) -> str:
        """The dataset's address."""
        from huggingface_hub import constants  # noqa: PLC0415

        return f"{self.endpoint or constants.ENDPOINT}/datasets/{self.repo}"

    @property
    def _dataset(self) -> Mapping[str, Any]:
        return {"repo_type": "dataset", "endpoint": self.endpoint}

    def _gated(self) -> str:
        from huggingface_hub import get_token  # noqa: PLC0415

        start = f"{self.where} is gated: accept its terms on that page with"
        if get_token():
            return f"{start} the account whose token is set"
        return (
            f"{start} your account, then set HF_TOKEN to a token of that account that may read "
            "gated repositories"
        )

    def _failure(self, path: str, folder: Path, error: Exception) -> UserError:
        status = _status(error)
        start = f"cannot fetch {path} from {self.where}"
        elsewhere = (
            f"set HF_ENDPOINT to a mirror, or give a copy that you have as --data {self.kind}:PATH"
        )
        if status in (401, 403):
            hint = "set HF_TOKEN to a token that may read it"
            return UserError(f"{start}: it answered {status}; {hint}")
        if status is not None:
            kind = UserError if status == 429 else FileUnavailable
            return kind(f"{start}: it answered {status}; try again later, {elsewhere}")
        if isinstance(error, OSError) and error.errno is not None:
            return UserError(f"cannot write {path} to {folder}: {error.strerror}")
        name = next((type(e).__name__ for e in _chain(error) if "Connect" in type(e).__name__), "")
        if name:
            return UserError(f"{start}: no connection ({name}); check the network, {elsewhere}")
        why = " ".join(str(error).split())[:200] or type(error).__name__
        return FileUnavailable(f"{start}: what it sends is broken ({why}); try again later")

    def _be_quiet(self) -> None:
        """Disable the bars of single files, which would drown the overall progress."""
        from huggingface_hub.utils.tqdm import disable_progress_bars  # noqa: PLC0415

        for bar in ("huggingface_hub.http_get", "huggingface_hub.xet_get"):
            disable_progress_bars(bar)


def _check(file: BinaryIO, listed: Listed) -> None:
    """Raise _Broken unless the file has the content that was listed."""
    file.seek(0)
    digest = sha256()
    if len(listed.hash) == 40:
        # As git hashes a file: not for security, but to know it again.
        digest = sha1(b"blob %d\0" % listed.size, usedforsecurity=False)
    while block := file.read(_BLOCK):
        digest.update(block)
    if digest.hexdigest() != listed.hash:
        raise _Broken("its content is not what the dataset lists")


def _chain(error: BaseException | None) -> list[BaseException]:
    """List the error and its causes: the client hides the hub's answer behind its own errors."""
    chain = list[BaseException]()
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__
    return chain


def _status(error: BaseException) -> int | None:
    """Return the HTTP status that an error is about, None if there was no answer."""
    responses = (getattr(e, "response", None) for e in _chain(error))
    return next((r.status_code for r in responses if r is not None), None)


def _may_pass(error: BaseException) -> bool:
    status = _status(error)
    return isinstance(error, _Broken) or (status is not None and (status == 429 or status >= 500))


def _wait(state: RetryCallState) -> float:
    """Return the seconds to wait: as the hub asked for, else exponentially longer."""
    error = state.outcome.exception() if state.outcome else None
    for cause in _chain(error):
        seconds = getattr(getattr(cause, "response", None), "headers", {}).get("Retry-After", "")
        if seconds.isdigit():
            return min(float(seconds), _MAX_WAIT_SECONDS)
    return wait_exponential(multiplier=0.5, max=30)(state)


_RECORD = ".trajudge"

# Files are listed by the folders of this depth: cleaned/BENCHMARK/AGENT.
_LISTED_AT = 3

# So many requests that fail on end are the hub's trouble, not that of single files.
_GIVE_UP = 8


class DownloadCounts(NamedTuple):
    """What a copy did since it was opened: files, and ``bytes`` of those downloaded."""

    downloaded: int = 0
    bytes: int = 0
    present: int = 0
    missing: int = 0

    def sentence(self) -> str:
        """Say what was downloaded, what was there and what does not exist."""
        return (
            f"{self.downloaded} files fetched ({self.bytes / 1e6:.1f} MB), {self.present} were "
            f"here already, {self.missing} not in the dataset"
        )


class HubCopy:
    """The files of dataset ``repo`` in ``folder``; safe to use from several threads.

    ``revision`` is a branch, tag or commit, used the first time (later ones must agree with it);
    ``endpoint`` is the hub's address (the environment's ``HF_ENDPOINT`` if None).
    """

    def __init__(
        self, folder: Path, repo: str, revision: str | None = None, endpoint: str | None = None
    ) -> None:
        self.folder = folder
        self.repo = repo
        self._client = HubClient(repo, endpoint or os.environ.get("HF_ENDPOINT") or None)
        self.counts = DownloadCounts()
        self.missing = list[str]()
        self._lock = Lock()
        self._resolving = Lock()
        self._listing = Lock()
        self._folders = dict[str, dict[str, Listed]]()
        self._failed_on_end = 0
        self._record = folder / _RECORD / "copy.json"
        self._known = _read(self._record)
        recorded = {self._known.get("revision"), self._known.get("asked")}
        if revision and self._known and revision not in recorded:
            raise UserError(
                f"{folder} holds revision {self._known['revision']} of {repo}, not {revision}: "
                "give another folder with --dest, or leave --revision out"
            )
        self._asked = revision or "main"

    @property
    def revision(self) -> str:
        """The commit that every file is of. Raises UserError if the hub cannot be asked."""
        with self._resolving:
            if not self._known:
                commit = self._ask("annotations.csv", lambda: self._client.resolve(self._asked))
                if commit is None:
                    raise UserError(
                        f"{self._client.where} has no annotations.csv at revision {self._asked}: "
                        "it is not AgentRewardBench"
                    )
                known = {"repo": self.repo, "asked": self._asked, "revision": commit}
                self._write_record({**known, "missing": []})
            return str(self._known["revision"])

    def get(self, path: str) -> Path | None:
        """Return the local file, downloaded if need be; None if the dataset has no such file.

        Raises UserError if the hub cannot be reached, refuses, or the disk is full, and
        FileUnavailable if it is this file that fails: it is asked for again the next time.
        """
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or _RECORD in parts:
            raise UserError(f"{path!r} in the dataset's own files leads outside of its folder")
        local = self.folder.joinpath(*parts)
        if local.is_file():
            self._count(present=1)
            return local
        if path in self._known.get("missing", ()):
            self._count(missing=1, path=path)
            return None
        if not self._download(path, local):
            with self._lock:
                self._write_record({**self._known, "missing": [*self._known["missing"], path]})
            self._count(missing=1, path=path)
            return None
        self._count(downloaded=1, size=local.stat().st_size)
        return local

    def names(self, folder: str) -> list[str]:
        """Return paths of all files in a folder of the dataset, at any depth; listed once, then
        kept."""
        kept = self._record.with_name(f"{folder.replace('/', '--')}.json")
        if kept.is_file():  # of an earlier version
            return list(json.loads(read_regular(kept)))
        return list(self._listed(folder))

    def _listed(self, folder: str) -> dict[str, Listed]:
        """Return all files in a folder, at any depth; listed once, then kept."""
        with self._listing:
            if folder not in self._folders:
                kept = self._record.parent / "tree" / f"{folder.replace('/', '--')}.json"
                if kept.is_file():
                    files = {
                        path: Listed(*row) for path, row in json.loads(read_regular(kept)).items()
                    }
                else:
                    revision = self.revision
                    files = self._ask(folder, lambda: self._client.list(folder, revision)) or {}
                    _write(kept, json.dumps(files))
                self._folders[folder] = files
            return self._folders[folder]

    def _download(self, path: str, local: Path) -> bool:
        """Download a file and tell whether the dataset has it."""
        revision, folder = self.revision, "/".join(path.split("/")[:_LISTED_AT])
        if folder == path or path.count("/") < _LISTED_AT:
            downloaded = self._ask(path, lambda: self._client.download(path, revision, self.folder))
            return downloaded is not None
        listed = self._listed(folder).get(path)
        if listed is None:
            return False
        self._ask(path, lambda: self._client.fetch(path, revision, listed, local))
        return True

    def _ask(self, path: str, request: Callable[[], T]) -> T | None:
        """Ask the client; None for "no such file". Raises UserError, FileUnavailable."""
        try:
            answer = self._client.ask(path, self._asked, self.folder, request)
        except FileUnavailable as error:
            with self._lock:
                self._failed_on_end += 1
                if self._failed_on_end >= _GIVE_UP:
                    message = f"{error} ({self._failed_on_end} requests failed on end)"
                    raise UserError(message) from error
            raise
        with self._lock:
            self._failed_on_end = 0
        return answer

    def _count(self, *, path: str = "", size: int = 0, **more: int) -> None:
        with self._lock:
            counts = self.counts._asdict()
            for name, number in {**more, "bytes": size}.items():
                counts[name] += number
            self.counts = DownloadCounts(**counts)
            if path:
                self.missing.append(path)

    def _write_record(self, known: dict[str, Any]) -> None:
        _write(self._record, json.dumps(known, indent=1))
        self._known = known


def revision_of(folder: Path) -> str | None:
    """Return the revision that ``folder``, or one around it, is a copy of; None for other files."""
    for place in (folder, *folder.resolve().parents):
        if (place / _RECORD / "copy.json").is_file():
            known = _read(place / _RECORD / "copy.json")
            return str(known["revision"]) if known else None
    return None


def _read(record: Path) -> dict[str, Any]:
    try:
        known = json.loads(read_regular(record))
        return {"missing": [], **known} if isinstance(known.get("revision"), str) else {}
    except (OSError, ValueError, AttributeError):
        return {}


def _write(path: Path, text: str) -> None:
    """Write a small file completely or not at all. Raises UserError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, text.encode())
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error


_LINE_EVERY_SECONDS = 10.0


@contextmanager
def fetch_progress(copy: HubCopy, total: int) -> Iterator[Callable[[], None]]:
    """Yield the function that counts one more of ``total`` files and shows what was downloaded.

    Silent until something is really downloaded, so that a complete local copy reads without a word.
    """
    numbers = count(1)
    last_line = 0.0

    def advance() -> None:
        nonlocal last_line
        done = next(numbers)
        if not copy.counts.downloaded:
            return
        if sys.stderr.isatty():
            show(f"fetching ({_downloads(copy.counts)})", done, total)
        elif monotonic() - last_line > _LINE_EVERY_SECONDS or done == total:
            last_line = monotonic()
            sys.stderr.write(f"fetching: {done}/{total}, {_downloads(copy.counts)}\n")

    with progress_bar() as show:
        yield advance


def _downloads(counts: DownloadCounts) -> str:
    missing = f", {counts.missing} not in the dataset" if counts.missing else ""
    return f"{counts.downloaded} files, {counts.bytes / 1e6:.1f} MB{missing}"


R = TypeVar("R")

# Enough to hide latency; the hub limits requests, not bandwidth.
_WORKERS = 4


def prefetch(function: Callable[[T], R], items: Iterable[T]) -> Iterator[tuple[T, R]]:
    """Yield ``(item, function(item))`` in order, computed in threads a few items ahead."""
    pool = ThreadPoolExecutor(_WORKERS)
    pending = deque[tuple[T, Future[R]]]()
    try:
        for item in items:
            pending.append((item, pool.submit(function, item)))
            if len(pending) > _WORKERS:
                first, future = pending.popleft()
                yield first, future.result()
        for first, future in pending:
            yield first, future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
