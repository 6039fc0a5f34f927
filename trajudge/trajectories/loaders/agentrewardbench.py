"""The published AgentRewardBench dataset in a folder (Lu et al. 2025, section 3.1).

``cleaned/<benchmark>/<agent>/<exp_name>/<task_id>.json`` has one trajectory per file, of 1 to 20
MB, most of which (element trees, chat messages, bounding boxes) no judge reads: only needed fields
are decoded, from a memory-mapped file.

``screenshot_path`` begins ``trajectories/screenshots/...``, relative to the folder into which the
dataset was downloaded. Because the file is untrusted, paths outside the dataset's own folder,
whether by ``..`` or by a link, are never used.
"""

from __future__ import annotations

import csv
import io
import mmap
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from trajudge.trajectories.actions import last_message_to_user
from trajudge.trajectories.hub import (
    FileUnavailable,
    HubCopy,
    default_folder,
    fetch_progress,
    prefetch,
)
from trajudge.trajectories.images import is_image_file
from trajudge.trajectories.loaders._files import readable
from trajudge.trajectories.loaders._run import RunReader, RunSource, read_all, read_one
from trajudge.trajectories.loaders.browsergym import read_summary
from trajudge.trajectories.model import (
    ImageRef,
    Loaded,
    Observation,
    Step,
    Trajectory,
    TrajectoryKey,
    Unreadable,
    Want,
    accept_all,
)
from trajudge.trajectories.needs import EVERYTHING, NO_NEEDS, NOT_READ, Needs, Shown, last
from trajudge.util import jsonl as python_json
from trajudge.util.errors import UserError
from trajudge.util.files import MARK_BYTES, DataFolder, read_regular, read_text, utf8

_MISSING = "is missing"
_MEND = {
    _MISSING: ": fetch it, for instance with  trajudge data fetch agentrewardbench "
    "--screenshots all"
}


def _screenshots(run: RunReader, paths: Sequence[str | None]) -> list[ImageRef | None]:
    """Return a reference for the screenshot of each step, None if the file names none. Missing
    or unreadable ones have the problem, with a warning for each kind."""
    if not run.with_pictures:
        return [NOT_READ if path else None for path in paths]
    key, root = run.key, run.data.path
    folder = root / "screenshots" / _name(key.benchmark) / _name(key.agent) / _name(run.raw_task_id)
    refs = list[ImageRef | None]()
    missing = dict[str, list[int]]()
    for index, path in enumerate(paths):
        location, reason = _find_screenshot(run.data, path, folder) if path else (None, "")
        if reason:
            missing.setdefault(reason, []).append(index)
            shown = readable(path or "")[-200:]
            refs.append(ImageRef(problem=f"{shown} {reason}{_MEND.get(reason, '')}"))
        else:
            refs.append(ImageRef(path=location) if location else None)
    run.warnings += [
        f"The screenshot of step {_steps(indices)} {reason}." for reason, indices in missing.items()
    ]
    return refs


def _find_screenshot(dataset: DataFolder, path: str, folder: Path) -> tuple[Path | None, str]:
    """Look up the recorded path in the dataset's folder, then the name where it belongs. Return
    the file, or why there is none."""
    problem = _MISSING
    # Plain strings: a run of 50 steps looks up 100 names, and pathlib would cost more than
    # decoding the file.
    stated = os.path.join(dataset.path, path.removeprefix("trajectories/"))  # noqa: PTH118
    usual = os.path.join(folder, path.rpartition("/")[2])  # noqa: PTH118
    for name in () if "\0" in path else (stated, usual):
        if not os.path.lexists(name):
            continue
        if not dataset.holds(name):
            problem = "lies outside the dataset's folder and is not read"
            continue
        candidate = Path(name)
        problem = is_image_file(candidate) or ""
        if not problem:
            return candidate, ""
    return None, problem


def _name(part: str) -> str:
    """Reduce to a single harmless path segment."""
    return PurePosixPath(part.replace("\0", "")).name or "_"


def _steps(indices: list[int]) -> str:
    """Format indices as ``0``, or ``0, 1, 2``, without the middle of a long list."""
    if len(indices) <= 4:
        return ", ".join(map(str, indices))
    return f"{indices[0]}, {indices[1]}, ..., {indices[-1]} ({len(indices)} steps)"


KIND = "agentrewardbench"
LEAKS = ("annotations.csv", "cleaned/**/*.json:summary_info.cum_reward")
MAX_FILE_BYTES = 512 * 2**20

# A second download of the same file: "webarena.414(1).json".
_DUPLICATE = re.compile(r"(?P<original>.+?) ?\(\d+\)")


class _Step(msgspec.Struct):
    """The decoded fields of a step."""

    num: int | None = None
    reasoning: str | None = None
    action: str | None = None
    screenshot_path: str | None = None
    url: str | None = None
    last_action_error: str | None = None
    axtree: str | None = None
    axtree_pruned: str | None = None


class _File(msgspec.Struct):
    """The decoded fields of a trajectory file."""

    benchmark: str
    goal: str
    agent: str
    steps: list[_Step]
    summary_info: dict[str, Any]
    valid: bool | None = True
    model: str | None = None
    experiment: str | None = None
    seed: int | None = None


_DECODER = msgspec.json.Decoder(_File)


def detect(path: Path) -> bool:
    """Return True if there is a ``cleaned`` folder with trajectory files at the usual depth."""
    root = find_root(path)
    return root is not None and next(_files(root), None) is not None


def load(path: Path, want: Want = accept_all, needs: Needs = EVERYTHING) -> Loaded:
    """Yield trajectories by benchmark, agent, experiment and task; unwanted ones are not opened.

    ``path`` is the dataset's folder, its ``cleaned`` folder, or a folder with the dataset as
    ``trajectories``. Runs marked as not valid are excluded. Raises UserError without a trajectory
    file.
    """
    root = find_root(path)
    if root is None or next(_files(root), None) is None:
        raise UserError(
            f"{path} holds no AgentRewardBench trajectories: there is no file "
            "cleaned/<benchmark>/<agent>/<experiment>/<task>.json in it; name the folder above "
            "cleaned, or download one:  trajudge data fetch --help"
        )
    return read_all(sources(root), _read, want, needs)


def find_root(path: Path) -> Path | None:
    """Return the dataset's folder, which has the folder ``cleaned``."""
    for candidate in (path, path / "trajectories"):
        if (candidate / "cleaned").is_dir():
            return candidate
    return path.absolute().parent if path.name == "cleaned" and path.is_dir() else None


def sources(root: Path) -> Iterator[RunSource]:
    """Yield every trajectory file once, in stable order. A task run in several experiments of the
    same agent gets attempts 0, 1, ... in the order of the experiments' names."""
    attempts, folder = Counter[TrajectoryKey](), DataFolder(root)
    for file in _files(root):
        task_id = original_name(file.stem)
        if task_id != file.stem and not _is_first_copy(file, task_id):
            continue
        *_, benchmark, agent, _, _ = file.parts
        key = TrajectoryKey(benchmark=benchmark, agent=agent, task_id=task_id)
        attempt = attempts[key]
        attempts[key] += 1
        yield RunSource(key.model_copy(update={"attempt": attempt}), task_id, file, folder)


def original_name(stem: str) -> str:
    """Return the name without the "(1)" of a duplicate download."""
    match = _DUPLICATE.fullmatch(stem)
    return match["original"] if match else stem


def _is_first_copy(file: Path, task_id: str) -> bool:
    """Return True if this is the first duplicate of a missing original."""
    if file.with_name(f"{task_id}.json").exists():
        return False
    copies = [f for f in file.parent.glob("*.json") if original_name(f.stem) == task_id]
    return file == min(copies)


def _files(root: Path) -> Iterator[Path]:
    """Yield the files folder by folder, so that the first one is available before the whole
    dataset is listed."""

    def folders(parents: Iterator[Path]) -> Iterator[Path]:
        for parent in parents:
            yield from sorted(child for child in parent.iterdir() if child.is_dir())

    for experiment in folders(folders(folders(iter([root / "cleaned"])))):
        names = sorted(child for child in experiment.iterdir() if child.suffix == ".json")
        yield from (child for child in names if not child.name.startswith("."))


def _read(run: RunReader) -> Trajectory | None:
    """Read one trajectory; None if it is marked as not valid."""
    with run.data.open(run.path, MAX_FILE_BYTES) as opened:
        if not os.fstat(opened.fileno()).st_size:
            raise ValueError("the file is empty")
        with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            utf8(mapped[:MARK_BYTES], run.path)
            file = python_json.decode(mapped, _DECODER)
    if file.valid is False:
        return None
    run.key = TrajectoryKey(
        benchmark=file.benchmark,
        agent=file.agent,
        task_id=run.raw_task_id,
        attempt=run.key.attempt,
    )
    refs = _screenshots(run, [step.screenshot_path for step in file.steps])
    summary = read_summary(file.summary_info, run)
    return run.trajectory(
        file.goal,
        map(_step, range(len(refs)), file.steps, refs),
        answer=last_message_to_user(step.action for step in file.steps),
        official_reward=summary.official_reward,
        terminated=summary.terminated,
        truncated=summary.truncated,
        telemetry=summary.telemetry,
        metadata={
            "model": file.model,
            "experiment": file.experiment or run.path.parent.name,
            "seed": file.seed,
            "error": summary.error,
        },
    )


def _step(index: int, step: _Step, screenshot: ImageRef | None) -> Step:
    observation = Observation(
        url=step.url,
        axtree=step.axtree,
        axtree_pruned=step.axtree_pruned,
        screenshot=screenshot,
        page_error=step.last_action_error or None,
    )
    return Step(index=index, observation=observation, reasoning=step.reasoning, action=step.action)


# The published data set: every path follows from a row of annotations.csv.

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
        """The trajectory's path in the dataset."""
        return f"cleaned/{self.benchmark}/{self.agent}/{self.experiment}/{self.task_id}.json"

    @property
    def key(self) -> TrajectoryKey:
        return TrajectoryKey(benchmark=self.benchmark, agent=self.agent, task_id=self.task_id)


class _Shot(msgspec.Struct):
    screenshot_path: str | None = None


class _Shots(msgspec.Struct):
    steps: list[_Shot]


_SHOTS = msgspec.json.Decoder(_Shots)


def local_copy() -> Path | None:
    """Return the copy of AgentRewardBench on this machine, complete or not; None without a
    trajectory."""
    folder = default_folder()
    return folder if detect(folder) else None


def annotation_table(copy: HubCopy | None = None) -> Path:
    """Return the dataset's annotations.csv, downloaded if missing. Raises UserError."""
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


def load_published(
    want: Want = accept_all, needs: Needs = EVERYTHING, copy: HubCopy | None = None
) -> Loaded:
    """Read the wanted trajectories with the needed screenshots, downloaded a few ahead of the
    reader.

    Raises UserError at once if the hub is needed and unreachable. A trajectory that the dataset
    lacks gives Unreadable.
    """
    copy = copy or HubCopy(default_folder(), REPO)
    return _load_published(copy, [run for run in labelled_runs(copy) if want(run.key)], needs)


def _load_published(copy: HubCopy, runs: list[LabelledRun], needs: Needs) -> Loaded:
    folder = DataFolder(copy.folder)
    with fetch_progress(copy, len(runs)) as advance:
        for run, path in prefetch(lambda run: _fetch_run(copy, run, needs), runs):
            advance()
            trajectory: Trajectory | Unreadable | None
            if isinstance(path, Path):
                trajectory = read_one(RunSource(run.key, run.task_id, path, folder), _read, needs)
            else:
                lacking = f"is not in the dataset {copy.repo} at revision {copy.revision}"
                trajectory = Unreadable(run.path, str(path or lacking), run.key)
            if trajectory is not None:
                yield trajectory


def _fetch_run(copy: HubCopy, run: LabelledRun, needs: Needs) -> Path | FileUnavailable | None:
    """Download a trajectory and its needed screenshots; None if the dataset lacks it."""
    try:
        path = copy.get(run.path)
        for name in _screenshot_names(path, needs) if path else ():
            copy.get(f"screenshots/{run.benchmark}/{run.agent}/{run.task_id}/{name}")
    except FileUnavailable as error:
        return error
    return path


def _screenshot_names(path: Path, needs: Needs) -> list[str]:
    """Return the file names of the needed screenshots; empty for a damaged trajectory, which its
    reader reports."""
    if not needs.screenshots:
        return []
    try:
        content = read_regular(path, MAX_FILE_BYTES)
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
    """Download the ``parts`` of the runs (``PARTS``); an empty ``judges`` means all of them.

    Returns what could not be downloaded.
    """
    needs = Needs(screenshots=screenshots) if "screenshots" in parts else NO_NEEDS
    jobs: list[Callable[[], object]] = []
    if {"trajectories", "screenshots"} & set(parts):
        jobs += [partial(_fetch_run, copy, run, needs) for run in runs]
    if "judgments" in parts:
        jobs += [partial(_fetch_file, copy, path) for path in _judgment_paths(copy, runs, judges)]
    failed = []
    with fetch_progress(copy, len(jobs)) as advance:
        for _, failure in prefetch(lambda job: job(), jobs):
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
    """Yield the judgment files of the runs, including refused ones (``<task_id>_error.json``)."""
    tasks = {(run.benchmark, run.agent, run.task_id) for run in runs}
    for benchmark, agent in dict.fromkeys((run.benchmark, run.agent) for run in runs):
        for path in copy.listed(f"judgments/{benchmark}/{agent}"):
            *_, judge, name = path.split("/")
            task_id = name.removesuffix(".json").removesuffix("_error")
            if (benchmark, agent, task_id) in tasks and (not judges or judge in judges):
                yield path
