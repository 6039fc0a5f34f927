"""A local copy of a Hugging Face dataset that grows file by file, as files are asked for.

The revision is resolved once and recorded in the copy, so that what is fetched later belongs to
what is there already. A file that is there is never asked for again, nor is one that the hub said
it does not have: a complete copy works offline.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from tempfile import NamedTemporaryFile
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    wait_exponential,
)

from trajectories.errors import UserError

T = TypeVar("T")
_ATTEMPTS = 5
_MAX_WAIT_SECONDS = 300.0
_RECORD = ".trajudge"


class Counts(NamedTuple):
    """What a copy did since it was opened: files, and ``bytes`` of those downloaded."""

    downloaded: int = 0
    bytes: int = 0
    present: int = 0
    missing: int = 0


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
        self.endpoint = endpoint or os.environ.get("HF_ENDPOINT") or None
        self.counts = Counts()
        self.missing = list[str]()
        self._lock = Lock()
        self._resolving = Lock()
        self._record = folder / _RECORD / "copy.json"
        self._known = self._read_record()
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
                commit = self._ask("annotations.csv", self._resolve)
                if commit is None:
                    raise UserError(
                        f"{self._where()} has no annotations.csv at revision {self._asked}: "
                        "it is not AgentRewardBench"
                    )
                known = {"repo": self.repo, "asked": self._asked, "revision": commit}
                self._write_record({**known, "missing": []})
            return str(self._known["revision"])

    def get(self, path: str) -> Path | None:
        """The local file, downloaded if need be; None if the dataset has no such file.

        Raises UserError if the hub cannot be reached, refuses, or the disk is full.
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
        revision = self.revision
        if self._ask(path, lambda: self._download(path, revision)) is None:
            with self._lock:
                self._write_record({**self._known, "missing": [*self._known["missing"], path]})
            self._count(missing=1, path=path)
            return None
        self._count(downloaded=1, size=local.stat().st_size)
        return local

    def names(self, folder: str) -> list[str]:
        """Paths of all files in a folder of the dataset, at any depth; listed once, then kept."""
        kept = self._record.with_name(f"{folder.replace('/', '--')}.json")
        if kept.is_file():
            return list(json.loads(kept.read_text()))
        revision = self.revision
        found = self._ask(folder, lambda: self._list(folder, revision))
        _write(kept, json.dumps(found or []))
        return found or []

    def _resolve(self) -> str | None:
        from huggingface_hub import get_hf_file_metadata, hf_hub_url  # noqa: PLC0415

        where = {"repo_type": "dataset", "endpoint": self.endpoint}
        url = hf_hub_url(self.repo, "annotations.csv", revision=self._asked, **where)
        return get_hf_file_metadata(url, endpoint=self.endpoint).commit_hash

    def _download(self, path: str, revision: str) -> str:
        from huggingface_hub import hf_hub_download  # noqa: PLC0415
        from huggingface_hub.utils.tqdm import disable_progress_bars  # noqa: PLC0415

        # One bar a file would drown the progress of the whole.
        for bar in ("huggingface_hub.http_get", "huggingface_hub.xet_get"):
            disable_progress_bars(bar)
        return hf_hub_download(
            self.repo,
            path,
            repo_type="dataset",
            revision=revision,
            endpoint=self.endpoint,
            local_dir=self.folder,
        )

    def _list(self, folder: str, revision: str) -> list[str]:
        from huggingface_hub import HfApi, RepoFile  # noqa: PLC0415

        entries = HfApi(endpoint=self.endpoint).list_repo_tree(
            self.repo, folder, recursive=True, revision=revision, repo_type="dataset"
        )
        return [entry.path for entry in entries if isinstance(entry, RepoFile)]

    def _ask(self, path: str, request: Callable[[], T]) -> T | None:
        """The request's answer, None for "no such file"; repeated when that may help."""
        from huggingface_hub.errors import (  # type: ignore[attr-defined] # noqa: PLC0415
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
        except RepositoryNotFoundError as error:
            raise UserError(f"{self._where()}: there is no such dataset to be read") from error
        except RevisionNotFoundError as error:
            raise UserError(f"{self._where()} has no revision {self._asked!r}") from error
        except (OSError, HTTPError) as error:
            raise UserError(self._sentence(path, error)) from error

    def _where(self) -> str:
        from huggingface_hub import constants  # noqa: PLC0415

        return f"{self.endpoint or constants.ENDPOINT}/datasets/{self.repo}"

    def _sentence(self, path: str, error: Exception) -> str:
        status = _status(error)
        mend = (
            "check the network, set HF_ENDPOINT to a mirror, or give a copy that you have as "
            "--data agentrewardbench:PATH"
        )
        if status is not None:
            told = f"it answered {status}"
            if status in (401, 403):
                mend = "set HF_TOKEN to a token that may read it"
        elif isinstance(error, OSError) and error.errno is not None:
            return f"cannot write {path} to {self.folder}: {error.strerror}"
        else:
            told = f"no connection ({type(_root(error)).__name__})"
        return f"cannot fetch {path} from {self._where()}: {told}; {mend}"

    def _count(self, *, path: str = "", size: int = 0, **more: int) -> None:
        with self._lock:
            counts = self.counts._asdict()
            for name, number in {**more, "bytes": size}.items():
                counts[name] += number
            self.counts = Counts(**counts)
            if path:
                self.missing.append(path)

    def _read_record(self) -> dict[str, Any]:
        try:
            found = json.loads(self._record.read_text())
            return {"missing": [], **found} if isinstance(found.get("revision"), str) else {}
        except (OSError, ValueError, AttributeError):
            return {}

    def _write_record(self, known: dict[str, Any]) -> None:
        _write(self._record, json.dumps(known, indent=1))
        self._known = known


def _write(path: Path, text: str) -> None:
    """Writes a small file so that it is there whole or not at all. Raises UserError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
            file.write(text)
        os.replace(file.name, path)  # noqa: PTH105
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error


def _chain(error: BaseException | None) -> list[BaseException]:
    """The error and what it came from: the client hides the hub's answer behind its own errors."""
    found = list[BaseException]()
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _root(error: BaseException) -> BaseException:
    """The client's own first error, not the operating system's below it."""
    return next((e for e in _chain(error) if "Connect" in type(e).__name__), error)


def _status(error: BaseException) -> int | None:
    """The HTTP status that an error is about, None if there was no answer."""
    responses = (getattr(e, "response", None) for e in _chain(error))
    return next((r.status_code for r in responses if r is not None), None)


def _may_pass(error: BaseException) -> bool:
    status = _status(error)
    return status is not None and (status == 429 or status >= 500)


def _wait(state: RetryCallState) -> float:
    """As long as the hub asked for, else exponentially longer. Seconds."""
    error = state.outcome.exception() if state.outcome else None
    for cause in _chain(error):
        asked = getattr(getattr(cause, "response", None), "headers", {}).get("Retry-After", "")
        if asked.isdigit():
            return min(float(asked), _MAX_WAIT_SECONDS)
    return wait_exponential(multiplier=0.5, max=30)(state)
