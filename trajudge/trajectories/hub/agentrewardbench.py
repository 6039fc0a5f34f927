"""Mirror the published AgentRewardBench, file by file.

Only what is asked for is fetched: every path follows from a row of the dataset's annotations.csv,
and of the screenshots (4 GB) those come that a judge needs (``trajectories.needs``), or by the
command line the last one of a trajectory unless told otherwise.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from trajudge.trajectories.hub.mirror import FileUnavailable, HubCopy, fetch_progress, prefetch
from trajudge.trajectories.loaders import agentrewardbench
from trajudge.trajectories.loaders.agentrewardbench import Screenshots
from trajudge.trajectories.loading import Loaded, Want, accept_all
from trajudge.trajectories.model import Trajectory, TrajectoryKey, Unreadable
from trajudge.trajectories.needs import ALL, EVERYTHING, NO_NEEDS, Needs, Shown, last
from trajudge.util import jsonl as python_json
from trajudge.util.errors import UserError
from trajudge.util.files import read_regular, read_text

REPO = "McGill-NLP/agent-reward-bench"
LAST_ONE = last(1)
PARTS = ("trajectories", "screenshots", "judgments", "annotations")


class LabelledRun(NamedTuple):
    """One trajectory of the benchmark, as annotations.csv names it."""

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


def folder() -> Path:
    """Where the copy is kept: ``TRAJUDGE_DATA``, else in the user's cache."""
    named = os.environ.get("TRAJUDGE_DATA")
    if named:
        return Path(named).expanduser()
    return Path("~/.cache/trajudge/agentrewardbench").expanduser()


def local_copy() -> Path | None:
    """Return the copy of AgentRewardBench on this machine; None if it has no trajectory.

    It may be a part of the benchmark: what was fetched so far.
    """
    place = folder()
    return place if agentrewardbench.detect(place) else None


def annotation_table(copy: HubCopy | None = None) -> Path:
    """Return the dataset's annotations.csv, fetched if need be. Raises UserError if it cannot."""
    copy = copy or HubCopy(folder(), REPO)
    table = copy.get("annotations.csv")
    if table is None:
        raise UserError(f"{copy.repo} has no annotations.csv at revision {copy.revision}")
    return table


def rows(copy: HubCopy) -> list[LabelledRun]:
    """List the benchmark's trajectories, each once, in the order of annotations.csv."""
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


def fetched(
    want: Want = accept_all,
    *,
    copy: HubCopy | None = None,
    needs: Needs = EVERYTHING,
) -> Loaded:
    """Read the wanted trajectories with the needed screenshots, fetched a few ahead of the reader.

    Raises UserError at once if the hub is needed and cannot be reached. A trajectory that the
    dataset lacks gives Unreadable.
    """
    copy = copy or HubCopy(folder(), REPO)
    wanted = [row for row in rows(copy) if want(row.key)]
    return _fetched(copy, wanted, needs)


def _fetched(copy: HubCopy, wanted: list[LabelledRun], needs: Needs) -> Loaded:
    screenshots = Screenshots(copy.folder)
    with fetch_progress(copy, len(wanted)) as advance:
        for row, path in prefetch(lambda row: _fetch_trajectory(copy, row, needs), wanted):
            advance()
            trajectory: Trajectory | Unreadable | None
            if isinstance(path, FileUnavailable):
                trajectory = Unreadable(row.path, str(path), row.key)
            elif path is None:
                reason = f"is not in the dataset {copy.repo} at revision {copy.revision}"
                trajectory = Unreadable(row.path, reason, row.key)
            else:
                source = agentrewardbench.TrajectoryFile(path, row.key, row.task_id, row.experiment)
                trajectory = agentrewardbench.read_file(source, screenshots)
            if trajectory is not None:
                yield trajectory


def _fetch_trajectory(
    copy: HubCopy, row: LabelledRun, needs: Needs
) -> Path | FileUnavailable | None:
    """Fetch the trajectory and its needed screenshots.

    None if the dataset lacks it; the reason where one of its files cannot be fetched.
    """
    try:
        path = copy.get(row.path)
        if path is not None and needs.screenshots:
            for name in _screenshot_names(path, needs):
                copy.get(f"screenshots/{row.benchmark}/{row.agent}/{row.task_id}/{name}")
    except FileUnavailable as error:
        return error
    return path


def _screenshot_names(path: Path, needs: Needs) -> list[str]:
    """File names of the needed screenshots; none if the trajectory is damaged (its reader says
    so)."""
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
    wanted: Sequence[LabelledRun],
    parts: Sequence[str] = ("trajectories", "screenshots"),
    *,
    screenshots: tuple[Shown, ...] = LAST_ONE,
    judges: Sequence[str] = (),
) -> list[FileUnavailable]:
    """Fetch everything that ``parts`` names for the rows; ``judges`` empty means all of them.

    Returns what could not be fetched.
    """
    needs = Needs(screenshots=screenshots) if "screenshots" in parts else NO_NEEDS
    jobs: list[Callable[[], object]] = []
    if {"trajectories", "screenshots"} & set(parts):
        jobs += [partial(_fetch_trajectory, copy, row, needs) for row in wanted]
    if "judgments" in parts:
        jobs += [partial(copy.get, path) for path in _judgment_paths(copy, wanted, judges)]
    failed = []
    with fetch_progress(copy, len(jobs)) as advance:
        for _, failure in prefetch(_tried, jobs):
            advance()
            if isinstance(failure, FileUnavailable):
                failed.append(failure)
    return failed


def _tried(job: Callable[[], object]) -> object:
    try:
        return job()
    except FileUnavailable as error:
        return error


def _judgment_paths(
    copy: HubCopy, wanted: Sequence[LabelledRun], judges: Sequence[str]
) -> list[str]:
    """Judgment files of the rows, refused ones (``<task_id>_error.json``) too."""
    tasks = {(row.benchmark, row.agent, row.task_id) for row in wanted}
    paths = []
    for benchmark, agent in dict.fromkeys((row.benchmark, row.agent) for row in wanted):
        for path in copy.names(f"judgments/{benchmark}/{agent}"):
            *_, judge, name = path.split("/")
            task_id = name.removesuffix(".json").removesuffix("_error")
            if (benchmark, agent, task_id) in tasks and (not judges or judge in judges):
                paths.append(path)
    return paths


def parts_of(text: str) -> list[str]:
    """Read the parts of the benchmark that ``--what`` lists. Raises UserError for another."""
    named = [part.strip() for part in text.split(",") if part.strip()]
    for part in named:
        if part not in PARTS:
            raise UserError(f"--what {part!r} is none of {', '.join(PARTS)}")
    return named


def screenshots_of(text: str) -> tuple[Shown, ...]:
    """Read ``last``, ``all``, ``none`` or a number of last ones. Raises UserError."""
    named = {"last": LAST_ONE, "all": ALL, "none": ()}
    if text in named:
        return named[text]
    if text.isdecimal() and int(text) >= 1:
        return last(int(text))
    raise UserError(f"--screenshots {text!r} is none of last, all, none or a number from 1 on")


def chosen(
    runs: list[LabelledRun],
    *,
    benchmark: Sequence[str] = (),
    agent: Sequence[str] = (),
    task: Sequence[str] = (),
) -> list[LabelledRun]:
    """Keep the rows of these benchmarks, agents and tasks; empty means all of them.

    Raises UserError for a name that no row has.
    """
    wanted = (("benchmark", "benchmark", benchmark), ("agent", "agent", agent))
    for option, column, names in (*wanted, ("task", "task_id", task)):
        known = {getattr(row, column) for row in runs}
        for name in names:
            if name not in known:
                listed = f": there are {', '.join(sorted(known))}" if len(known) < 20 else ""
                raise UserError(f"--{option} {name!r} is not in AgentRewardBench{listed}")
        if names:
            runs = [row for row in runs if getattr(row, column) in names]
    return runs
