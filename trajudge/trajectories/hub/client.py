"""The hub's own client, for one dataset: what is asked of it, and what its errors mean.

A file that was listed is fetched at once: its size and hash are known from the listing, so that
nothing has to be asked about it before, and what came is checked against them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from hashlib import sha1, sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, BinaryIO, NamedTuple, TypeVar, cast

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    wait_exponential,
)

from trajudge.trajectories.hub.ranges import RangeFile
from trajudge.trajectories.util.errors import UserError

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
