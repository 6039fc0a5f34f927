"""Lazy local mirror of a Hugging Face dataset.

The revision is resolved once and recorded in the copy, so that what is fetched later belongs to
what is there already. A file that is there is never asked for again, nor is one that the hub said
it does not have: a complete copy works offline.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from trajudge.trajectories.hub.client import FileUnavailable, HubClient, Listed
from trajudge.trajectories.util.atomic import write_bytes
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import read_regular

T = TypeVar("T")
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
