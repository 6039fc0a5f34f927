"""Published data sets on the Hugging Face Hub: what ``trajudge data fetch`` downloads.

Only needed files are fetched, each checked against the hash that the hub lists for it. A copy's
folder keeps ``.trajudge/copy.json`` (its revision) and the listings of folders, so that a complete copy is
read without a request.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha1, sha256
from itertools import count
from pathlib import Path, PurePosixPath
from threading import RLock
from time import monotonic
from typing import Any, BinaryIO, Literal, NamedTuple, TypeVar

import msgspec
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    wait_exponential,
)

from trajudge.trajectories.loaders import agentrewardbench, cuaverifierbench
from trajudge.trajectories.loading import Loaded, Want, accept_all
from trajudge.trajectories.model import Record, Trajectory, TrajectoryKey, Unreadable
from trajudge.trajectories.needs import ALL, EVERYTHING, NO_NEEDS, Needs, Shown, last
from trajudge.util import jsonl as python_json
from trajudge.util.commands import FAILURES, OK
from trajudge.util.errors import UserError
from trajudge.util.files import read_regular, read_text, replacing, write_bytes
from trajudge.util.terminal import one_line, progress_bar

T = TypeVar("T")
R = TypeVar("R")

_RECORD = ".trajudge"
_ATTEMPTS = 5
_MAX_WAIT_SECONDS = 300.0
# So many failing requests in a row are the hub's trouble, not that of single files.
_GIVE_UP = 8
# The hub lists a folder of this depth with all that is in it: cleaned/BENCHMARK/AGENT.
_LISTED_DEPTH = 3
_COMMIT = re.compile(r"[0-9a-f]{40}")


class Listed(NamedTuple):
    """Size and hash of a file: SHA-256 of a large one's content, otherwise git's SHA-1."""

    size: int
    hash: str


class FileUnavailable(UserError):
    """One file cannot be fetched now, although the hub can be reached."""


class _Broken(Exception):
    """The content is not the one that was listed."""


@dataclass
class Counts:
    """Files that a copy downloaded, their bytes, and files that were present or are missing."""

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
    """The files of dataset ``repo`` in ``folder``; safe to use from several threads.

    ``revision`` is a branch, tag or commit, resolved once (later ones must agree with it);
    ``endpoint`` is the hub's address (``HF_ENDPOINT`` if None); ``kind`` is the loader's.
    """

    def __init__(
        self,
        folder: Path,
        repo: str,
        revision: str | None = None,
        endpoint: str | None = None,
        kind: str = agentrewardbench.KIND,
    ) -> None:
        self.folder, self.repo, self.kind = folder, repo, kind
        self.endpoint = endpoint or os.environ.get("HF_ENDPOINT") or None
        self.counts, self.missing = Counts(), list[str]()
        self._asked = revision or "main"
        self._lock = RLock()
        self._folders = dict[str, dict[str, Listed]]()
        self._failed_in_a_row = 0
        self._record = _read_record(folder)
        if revision and self._record and revision not in self._revisions():
            raise UserError(
                f"{folder} holds revision {self._record['revision']} of {repo}, not {revision}: "
                "give another folder with --out, or leave --revision out"
            )

    @property
    def revision(self) -> str:
        """The commit of every file. Raises UserError if the hub cannot be asked."""
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
        from huggingface_hub import constants  # noqa: PLC0415

        return f"{self.endpoint or constants.ENDPOINT}/datasets/{self.repo}"

    def get(self, path: str) -> Path | None:
        """Return the local file, downloaded if need be; None if the dataset has no such file.

        Raises UserError if the hub cannot be reached, refuses, or the disk is full, and
        FileUnavailable if only this file fails: it is asked for again the next time.
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
        the root); asked for once, then kept."""
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
        """Write a Parquet file without one column, whose bytes are not transferred, unless it is
        there unchanged. Raises UserError, FileUnavailable."""
        digests: dict[str, str] = self._record.get("texts", {})
        if target.is_file() and sha256(read_regular(target)).hexdigest() == digests.get(path):
            self._count(present=1)
            return
        listed = self.listed(_listed_folder(path))[path]
        content = self._request(path, partial(self._read_columns, path, listed, left_out)) or b""
        self._save(target, content)
        digests = {**self._record.get("texts", {}), path: sha256(content).hexdigest()}
        self._write({"texts": digests})
        self._count(downloaded=1, bytes=len(content))

    def _resolve(self) -> str | None:
        from huggingface_hub import HfApi  # noqa: PLC0415

        return HfApi(endpoint=self.endpoint).dataset_info(self.repo, revision=self._asked).sha

    def _list(self, folder: str) -> dict[str, Listed]:
        from huggingface_hub import HfApi, RepoFile  # noqa: PLC0415

        entries = HfApi(endpoint=self.endpoint).list_repo_tree(
            self.repo,
            folder or None,
            recursive=bool(folder),
            revision=self.revision,
            repo_type="dataset",
        )
        return {
            entry.path: Listed(entry.size, entry.lfs.sha256 if entry.lfs else entry.blob_id)
            for entry in entries
            if isinstance(entry, RepoFile)
        }

    def _download(self, path: str, listed: Listed, target: Path) -> None:
        """Download a listed file: it is at ``target`` complete, or not at all."""
        from huggingface_hub import hf_hub_url  # noqa: PLC0415
        from huggingface_hub.file_download import http_get  # noqa: PLC0415
        from huggingface_hub.utils import (  # type: ignore[attr-defined] # noqa: PLC0415
            build_hf_headers,
            disable_progress_bars,
        )

        disable_progress_bars("huggingface_hub.http_get")  # it would drown the overall progress
        url = hf_hub_url(
            self.repo, path, revision=self.revision, repo_type="dataset", endpoint=self.endpoint
        )
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target, durable=False) as file:
            http_get(url, file, headers=build_hf_headers(), expected_size=listed.size)  # type: ignore[arg-type]
            file.flush()
            with Path(file.name).open("rb") as written:
                _check(written, listed)

    def _read_columns(self, path: str, listed: Listed, left_out: str) -> bytes:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415
        from huggingface_hub import HfFileSystem  # noqa: PLC0415

        files = HfFileSystem(endpoint=self.endpoint, skip_instance_cache=True)
        name = f"datasets/{self.repo}@{self.revision}/{path}"
        about = files.info(name)
        if (about["lfs"] or {}).get("sha256") != listed.hash:
            raise _Broken("it is not the file that the dataset lists")
        with files.open(name, "rb", cache_type="none") as file:
            try:
                parquet = pq.ParquetFile(file)
                columns = [name for name in parquet.schema_arrow.names if name != left_out]
                table = parquet.read(columns=columns)
            except pa.ArrowInvalid as error:
                raise _Broken(f"it is no Parquet file: {error}") from error
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        content: bytes = sink.getvalue().to_pybytes()
        return content

    def _request(self, path: str, request: Callable[[], T]) -> T | None:
        """Make a request, repeated where that may help; None for "no such file".

        Raises FileUnavailable if it is this file that fails, UserError if it is the hub, the
        access to it, or the disk, or if many files fail in a row.
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
        from huggingface_hub import get_token  # noqa: PLC0415

        start = f"{self.address} is gated: accept its terms on that page with"
        if get_token():
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

    def _revisions(self) -> tuple[object, ...]:
        return self._record.get("revision"), self._record.get("asked")

    def _write(self, changes: dict[str, Any]) -> None:
        with self._lock:
            self._record = {**self._record, **changes}
            _write_json(self.folder / _RECORD / "copy.json", self._record)

    def _save(self, target: Path, content: bytes) -> None:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(target, content)
        except OSError as error:
            raise UserError(f"cannot write {target}: {error.strerror or error}") from error


def _listed_folder(path: str) -> str:
    """Return the folder whose listing names a file."""
    return "/".join(PurePosixPath(path).parts[:-1][:_LISTED_DEPTH])


def _check(file: BinaryIO, listed: Listed) -> None:
    """Raise _Broken unless the file has the content that was listed."""
    digest = sha256()
    if len(listed.hash) == 40:  # git's hash: here it only recognizes the content
        digest = sha1(b"blob %d\0" % listed.size, usedforsecurity=False)
    while block := file.read(2**20):
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


def revision_of(folder: Path) -> str | None:
    """Return the revision that ``folder``, or one around it, is a copy of; None for other files."""
    records = map(_read_record, (folder, *folder.resolve().parents))
    return next((str(record["revision"]) for record in records if record), None)


def _read_record(folder: Path) -> dict[str, Any]:
    """Read what a copy says of itself; empty if it is none."""
    try:
        record = json.loads(read_regular(folder / _RECORD / "copy.json"))
    except (OSError, ValueError):
        return {}
    is_record = isinstance(record, dict) and isinstance(record.get("revision"), str)
    return record if is_record else {}


def _write_json(path: Path, content: object) -> None:
    """Write a small file completely or not at all. Raises UserError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, json.dumps(content, indent=1).encode())
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def _fetch_progress(copy: HubCopy, total: int) -> Iterator[Callable[[], None]]:
    """Yield the function that counts one more of ``total`` files and shows what was downloaded.

    Silent until something is downloaded, so that a complete copy reads without a word.
    """
    numbers, last_line = count(1), 0.0

    def advance() -> None:
        nonlocal last_line
        done, counts = next(numbers), copy.counts
        if not counts.downloaded:
            return
        missing = f", {counts.missing} not in the dataset" if counts.missing else ""
        downloads = f"{counts.downloaded} files, {counts.bytes / 1e6:.1f} MB{missing}"
        if sys.stderr.isatty():
            show(f"fetching ({downloads})", done, total)
        elif monotonic() - last_line > 10 or done == total:
            last_line = monotonic()
            sys.stderr.write(f"fetching: {done}/{total}, {downloads}\n")

    with progress_bar() as show:
        yield advance


def _prefetch(function: Callable[[T], R], items: Iterable[T]) -> Iterator[tuple[T, R]]:
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


# AgentRewardBench: every path follows from a row of annotations.csv.

REPO = "McGill-NLP/agent-reward-bench"
PARTS = ("trajectories", "screenshots", "judgments", "annotations")


@dataclass(frozen=True)
class LabelledRun:
    """One trajectory of AgentRewardBench, as annotations.csv names it."""

    benchmark: str
    agent: str
    experiment: str
    task_id: str

    @property
    def path(self) -> str:
        """Where the trajectory is in the dataset."""
        return f"cleaned/{self.benchmark}/{self.agent}/{self.experiment}/{self.task_id}.json"

    @property
    def key(self) -> TrajectoryKey:
        return TrajectoryKey(benchmark=self.benchmark, agent=self.agent, task_id=self.task_id)


class _Shot(msgspec.Struct):
    screenshot_path: str | None = None


class _Shots(msgspec.Struct):
    steps: list[_Shot]


_SHOTS = msgspec.json.Decoder(_Shots)


def default_folder(dataset: str = agentrewardbench.KIND) -> Path:
    """Return the folder of a copy: ``TRAJUDGE_DATA`` for AgentRewardBench, else in the cache."""
    named = os.environ.get("TRAJUDGE_DATA") if dataset == agentrewardbench.KIND else None
    return Path(named or f"~/.cache/trajudge/{dataset}").expanduser()


def local_copy() -> Path | None:
    """Return the copy of AgentRewardBench on this machine, possibly a part of it; None if it has no
    trajectory."""
    folder = default_folder()
    return folder if agentrewardbench.detect(folder) else None


def annotation_table(copy: HubCopy | None = None) -> Path:
    """Return the dataset's annotations.csv, fetched if need be. Raises UserError if it cannot."""
    copy = copy or HubCopy(default_folder(), REPO)
    table = copy.get("annotations.csv")
    if table is None:
        raise UserError(f"{copy.address} has no annotations.csv at revision {copy.revision}")
    return table


def labelled_runs(copy: HubCopy) -> list[LabelledRun]:
    """List AgentRewardBench's trajectories, each once, in the order of annotations.csv."""
    table = annotation_table(copy)
    try:
        with io.StringIO(read_text(table), newline="") as file:
            runs = [
                LabelledRun(r["benchmark"], r["model_name"], r["exp_name"], r["task_id"])
                for r in csv.DictReader(file)
            ]
    except (KeyError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{table} is not AgentRewardBench's annotations.csv: {error!r}") from error
    return list(dict.fromkeys(runs))


def load_agentrewardbench(
    want: Want = accept_all, *, copy: HubCopy | None = None, needs: Needs = EVERYTHING
) -> Loaded:
    """Read the wanted trajectories with the needed screenshots, fetched a few ahead of the reader.

    Raises UserError at once if the hub is needed and cannot be reached. A trajectory that the
    dataset lacks gives Unreadable.
    """
    copy = copy or HubCopy(default_folder(), REPO)
    return _load(copy, [run for run in labelled_runs(copy) if want(run.key)], needs)


def _load(copy: HubCopy, runs: list[LabelledRun], needs: Needs) -> Loaded:
    screenshots = agentrewardbench.Screenshots(copy.folder)
    with _fetch_progress(copy, len(runs)) as advance:
        for run, path in _prefetch(lambda run: _fetch_run(copy, run, needs), runs):
            advance()
            trajectory: Trajectory | Unreadable | None
            if isinstance(path, Path):
                source = agentrewardbench.TrajectoryFile(path, run.key, run.task_id, run.experiment)
                trajectory = agentrewardbench.read_file(source, screenshots)
            else:
                lacking = f"is not in the dataset {copy.repo} at revision {copy.revision}"
                trajectory = Unreadable(run.path, str(path or lacking), run.key)
            if trajectory is not None:
                yield trajectory


def _fetch_run(copy: HubCopy, run: LabelledRun, needs: Needs) -> Path | FileUnavailable | None:
    """Fetch a trajectory and its needed screenshots; None if the dataset lacks it."""
    try:
        path = copy.get(run.path)
        for name in _screenshot_names(path, needs) if path else ():
            copy.get(f"screenshots/{run.benchmark}/{run.agent}/{run.task_id}/{name}")
    except FileUnavailable as error:
        return error
    return path


def _screenshot_names(path: Path, needs: Needs) -> list[str]:
    """Return the file names of the needed screenshots; none of a damaged trajectory, whose reader
    reports it."""
    if not needs.screenshots:
        return []
    try:
        content = read_regular(path, agentrewardbench.MAX_FILE_BYTES)
        shots = python_json.decode(content, _SHOTS).steps
    except (OSError, ValueError, RecursionError):
        return []
    named = [shot.screenshot_path or "" for shot in shots]
    names = (named[step].rpartition("/")[2] for step in needs.screenshot_steps([*map(bool, named)]))
    return [name for name in names if name not in {"", ".", ".."}]


def download(
    copy: HubCopy,
    runs: Sequence[LabelledRun],
    parts: Sequence[str] = ("trajectories", "screenshots"),
    *,
    screenshots: tuple[Shown, ...] = last(1),
    judges: Sequence[str] = (),
) -> list[FileUnavailable]:
    """Fetch the ``parts`` of the runs (``PARTS``); ``judges`` empty means all of them.

    Returns what could not be fetched.
    """
    needs = Needs(screenshots=screenshots) if "screenshots" in parts else NO_NEEDS
    jobs: list[Callable[[], object]] = []
    if {"trajectories", "screenshots"} & set(parts):
        jobs += [partial(_fetch_run, copy, run, needs) for run in runs]
    if "judgments" in parts:
        jobs += [partial(_fetch_file, copy, path) for path in _judgment_paths(copy, runs, judges)]
    failed = []
    with _fetch_progress(copy, len(jobs)) as advance:
        for _, failure in _prefetch(lambda job: job(), jobs):
            advance()
            failed += [failure] if isinstance(failure, FileUnavailable) else []
    return failed


def _fetch_file(copy: HubCopy, path: str) -> object:
    try:
        return copy.get(path)
    except FileUnavailable as error:
        return error


def _judgment_paths(
    copy: HubCopy, runs: Sequence[LabelledRun], judges: Sequence[str]
) -> Iterator[str]:
    """Yield the judgment files of the runs, refused ones (``<task_id>_error.json``) too."""
    tasks = {(run.benchmark, run.agent, run.task_id) for run in runs}
    for benchmark, agent in dict.fromkeys((run.benchmark, run.agent) for run in runs):
        for path in copy.listed(f"judgments/{benchmark}/{agent}"):
            *_, judge, name = path.split("/")
            task_id = name.removesuffix(".json").removesuffix("_error")
            if (benchmark, agent, task_id) in tasks and (not judges or judge in judges):
                yield path


# CUAVerifierBench: the published files are pinned, and the hub must list the same.

CUA_REPO = "microsoft/CUAVerifierBench"
CUA_REVISION = "c19eb323cd802add5c3d2840ff13044061364867"
CUA_FILES = {
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


def fetch_cuaverifierbench(copy: HubCopy, *, images: bool = True) -> None:
    """Fetch the Parquet files; without ``images`` those of runs as ``NAME.text.parquet``, all
    columns but the screenshots.

    Raises UserError if the hub cannot be reached or lists other content than was published.
    """
    listed = {**copy.listed("annotations"), **copy.listed("trajectories")}
    listed = {name: file for name, file in listed.items() if name.endswith(".parquet")}
    if not listed:
        raise UserError(f"{copy.address} has no Parquet files at revision {copy.revision}")
    if copy.revision == CUA_REVISION and listed != CUA_FILES:
        name = min(n for n in {*listed, *CUA_FILES} if listed.get(n) != CUA_FILES.get(n))
        raise UserError(
            f"{copy.address}: lists {name} as {listed.get(name)}, where {CUA_FILES.get(name)} was "
            "published under this revision: the hub gives other data; set HF_ENDPOINT to another"
        )
    for name in sorted(listed):
        whole = copy.folder / name
        text = cuaverifierbench.text_of(whole)
        if images or whole.is_file() or not name.startswith("trajectories/"):
            if copy.get(name) is None:
                raise UserError(f"{copy.address} has no {name} at revision {copy.revision}")
            text.unlink(missing_ok=True)
        else:
            copy.text_columns(name, text, cuaverifierbench.SCREENSHOTS)


class FetchConfig(Record):
    """Which data set is fetched, which part of it, and where to; the fields are the options."""

    dataset: Literal["agentrewardbench", "cuaverifierbench"]
    benchmark: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    task: tuple[str, ...] = ()
    what: str | None = None
    screenshots: str | None = None
    judge: tuple[str, ...] = ()
    no_images: bool = False
    revision: str | None = None
    out: Path | None = None


def fetch(config: FetchConfig) -> int:
    """Fetch the data set, print its folder, and return the exit code. Raises UserError."""
    folder, failed = config.out or default_folder(config.dataset), list[FileUnavailable]()
    if config.dataset == agentrewardbench.KIND:
        if config.no_images:
            raise UserError("--no-images goes with cuaverifierbench: use --screenshots none")
        parts, shown = _parts(config.what), _screenshots(config.screenshots or "last")
        copy = HubCopy(folder, REPO, config.revision)
        failed = download(
            copy, _chosen(copy, config), parts, screenshots=shown, judges=config.judge
        )
    else:
        for name in ("benchmark", "agent", "task", "what", "screenshots", "judge"):
            if getattr(config, name):
                raise UserError(
                    f"--{name} goes with agentrewardbench: cuaverifierbench has --no-images"
                )
        size = f"{sum(file.size for file in CUA_FILES.values()) / 1e9:.2f} GB"
        sys.stderr.write(
            f"{CUA_REPO} (MIT), revision {CUA_REVISION[:7]}: {len(CUA_FILES)} files, "
            f"{'text only, of ' * config.no_images}{size}\n"
        )
        revision = config.revision or CUA_REVISION
        copy = HubCopy(folder, CUA_REPO, revision, kind=cuaverifierbench.KIND)
        fetch_cuaverifierbench(copy, images=not config.no_images)
    for error in failed:
        sys.stderr.write(f"not fetched: {one_line(str(error))}\n")
    for path in copy.missing:
        sys.stderr.write(f"not in the dataset: {one_line(path)}\n")
    sys.stderr.write(f"{copy.counts}; revision {copy.revision}\n")
    sys.stdout.write(f"{copy.folder}\n")
    return FAILURES if failed else OK


def _parts(text: str | None) -> list[str]:
    if text is None:
        return ["trajectories", "screenshots"]
    named = [part.strip() for part in text.split(",") if part.strip()]
    for part in named:
        if part not in PARTS:
            raise UserError(f"--what {part!r} is none of {', '.join(PARTS)}")
    return named


def _screenshots(text: str) -> tuple[Shown, ...]:
    named = {"last": last(1), "all": ALL, "none": ()}
    if text in named:
        return named[text]
    if text.isdecimal() and int(text) >= 1:
        return last(int(text))
    raise UserError(f"--screenshots {text!r} is none of last, all, none or a number from 1 on")


def _chosen(copy: HubCopy, config: FetchConfig) -> list[LabelledRun]:
    """Keep the runs of the named benchmarks, agents and tasks. Raises UserError for a name that no
    run has."""
    runs = labelled_runs(copy)
    for option, column in (("benchmark", "benchmark"), ("agent", "agent"), ("task", "task_id")):
        names: tuple[str, ...] = getattr(config, option)
        known = {getattr(run, column) for run in runs}
        for name in names:
            if name not in known:
                listed = f": there are {', '.join(sorted(known))}" if len(known) < 20 else ""
                raise UserError(f"--{option} {name!r} is not in AgentRewardBench{listed}")
        if names:
            runs = [run for run in runs if getattr(run, column) in names]
    return runs
