"""``trajudge data fetch agentrewardbench``: the published benchmark, file by file.

Only what is asked for is fetched: every path follows from a row of the dataset's annotations.csv,
and of the screenshots (4 GB) those come that a judge needs (``trajectories.needs``), or by the
command line the last one of a trajectory unless told otherwise.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from trajudge.trajectories.hub.client import FileUnavailable
from trajudge.trajectories.hub.mirror import HubCopy
from trajudge.trajectories.hub.prefetch import prefetch
from trajudge.trajectories.loaders import agentrewardbench
from trajudge.trajectories.loaders.agentrewardbench_screenshots import Screenshots
from trajudge.trajectories.loading import Loaded, Want, accept_all
from trajudge.trajectories.model import Trajectory, TrajectoryKey, Unreadable
from trajudge.trajectories.needs import ALL, EVERYTHING, NO_NEEDS, Needs, Shown, last
from trajudge.trajectories.util import python_json
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.exits import DONE, FAILURES, Parser, user_errors
from trajudge.trajectories.util.progress import Progress
from trajudge.trajectories.util.safe_files import read_regular
from trajudge.trajectories.util.terminal import one_line

REPO = "McGill-NLP/agent-reward-bench"
WHAT = ("trajectories", "screenshots", "judgments", "annotations")
LAST_ONE = last(1)


class Row(NamedTuple):
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
    """The copy of AgentRewardBench that is on this machine; None if there is no trajectory in it.

    It may be a part of the benchmark: what was fetched so far.
    """
    place = folder()
    return place if agentrewardbench.detect(place) else None


def annotation_table(copy: HubCopy | None = None) -> Path:
    """The dataset's annotations.csv, fetched if need be. Raises UserError if it cannot be."""
    copy = copy or HubCopy(folder(), REPO)
    table = copy.get("annotations.csv")
    if table is None:
        raise UserError(f"{copy.repo} has no annotations.csv at revision {copy.revision}")
    return table


def rows(copy: HubCopy) -> list[Row]:
    """The benchmark's trajectories, each once, in the order of annotations.csv."""
    table = annotation_table(copy)
    try:
        with table.open(encoding="utf-8", newline="") as file:
            found = [
                Row(r["benchmark"], r["model_name"], r["exp_name"], r["task_id"])
                for r in csv.DictReader(file)
            ]
    except (KeyError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{table} is not AgentRewardBench's annotations.csv: {error!r}") from error
    return list(dict.fromkeys(found))


def fetched(
    want: Want = accept_all,
    *,
    copy: HubCopy | None = None,
    needs: Needs = EVERYTHING,
    progress: Progress | None = None,
) -> Loaded:
    """The wanted trajectories with the screenshots that are needed, fetched a few ahead of the one
    that is being read.

    Raises UserError at once if the hub is needed and cannot be reached. A trajectory that the
    dataset lacks gives Unreadable.
    """
    copy = copy or HubCopy(folder(), REPO)
    wanted = [row for row in rows(copy) if want(row.key)]
    return _fetched(copy, wanted, needs, progress or Progress(copy, len(wanted)))


def _fetched(copy: HubCopy, wanted: list[Row], needs: Needs, progress: Progress) -> Loaded:
    found = Screenshots(copy.folder)
    with progress:
        for row, path in prefetch(lambda row: _fetch_trajectory(copy, row, needs), wanted):
            progress.advance()
            result: Trajectory | Unreadable | None
            if isinstance(path, FileUnavailable):
                result = Unreadable(row.path, str(path), row.key)
            elif path is None:
                reason = f"is not in the dataset {copy.repo} at revision {copy.revision}"
                result = Unreadable(row.path, reason, row.key)
            else:
                source = agentrewardbench.TrajectoryFile(path, row.key, row.task_id, row.experiment)
                result = agentrewardbench.read_file(source, found)
            if result is not None:
                yield result


def _fetch_trajectory(copy: HubCopy, row: Row, needs: Needs) -> Path | FileUnavailable | None:
    """Fetches the trajectory and the screenshots that are needed of it; None if the dataset lacks
    it, and why one of its files cannot be had."""
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
    wanted: Sequence[Row],
    what: Sequence[str] = WHAT[:2],
    *,
    screenshots: tuple[Shown, ...] = LAST_ONE,
    judges: Sequence[str] = (),
) -> list[FileUnavailable]:
    """Fetches everything that ``what`` names for the rows; ``judges`` empty means all of them.
    Gives what could not be had."""
    needs = Needs(screenshots=screenshots) if "screenshots" in what else NO_NEEDS
    jobs: list[Callable[[], object]] = []
    if {"trajectories", "screenshots"} & set(what):
        jobs += [partial(_fetch_trajectory, copy, row, needs) for row in wanted]
    if "judgments" in what:
        jobs += [partial(copy.get, path) for path in _judgment_paths(copy, wanted, judges)]
    failed = []
    with Progress(copy, len(jobs)) as progress:
        for _, found in prefetch(_tried, jobs):
            progress.advance()
            if isinstance(found, FileUnavailable):
                failed.append(found)
    return failed


def _tried(job: Callable[[], object]) -> object:
    try:
        return job()
    except FileUnavailable as error:
        return error


def _judgment_paths(copy: HubCopy, wanted: Sequence[Row], judges: Sequence[str]) -> list[str]:
    """Judgment files of the rows, refused ones (``<task_id>_error.json``) too."""
    tasks = {(row.benchmark, row.agent, row.task_id) for row in wanted}
    found = []
    for benchmark, agent in dict.fromkeys((row.benchmark, row.agent) for row in wanted):
        for path in copy.names(f"judgments/{benchmark}/{agent}"):
            *_, judge, name = path.split("/")
            task_id = name.removesuffix(".json").removesuffix("_error")
            if (benchmark, agent, task_id) in tasks and (not judges or judge in judges):
                found.append(path)
    return found


def _screenshots(text: str) -> tuple[Shown, ...]:
    """``last``, ``all``, ``none`` or a number of last ones."""
    named = {"last": LAST_ONE, "all": ALL, "none": ()}
    if text in named:
        return named[text]
    if text.isdecimal() and int(text) >= 1:
        return last(int(text))
    raise argparse.ArgumentTypeError(f"{text!r} is none of last, all, none or a number from 1 on")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="trajudge data fetch",
        description="Fetch AgentRewardBench, or a part of it, from the Hugging Face Hub.",
    )
    parser.add_argument("dataset", choices=["agentrewardbench"])
    parser.add_argument("--benchmark", action="append", help="only this benchmark (repeatable)")
    parser.add_argument("--agent", action="append", help="only this agent (repeatable)")
    parser.add_argument("--task", action="append", help="only this task id (repeatable)")
    parser.add_argument(
        "--what", default=",".join(WHAT[:2]), help=f"of {','.join(WHAT)} (default: %(default)s)"
    )
    parser.add_argument(
        "--screenshots",
        type=_screenshots,
        default=LAST_ONE,
        metavar="last|all|none|N",
        help="of a trajectory: the last one (default), all, none, or the last N",
    )
    parser.add_argument("--judge", action="append", default=[], help="judgments of this judge only")
    parser.add_argument("--revision", help="branch, tag or commit (default: main, then pinned)")
    parser.add_argument("--dest", type=Path, help="folder (default: TRAJUDGE_DATA, or the cache)")
    return parser


def _chosen(args: argparse.Namespace, found: list[Row]) -> list[Row]:
    """The rows that the options name. Raises UserError for a name that no row has."""
    for option, column in (("benchmark", "benchmark"), ("agent", "agent"), ("task", "task_id")):
        names = getattr(args, option)
        known = {getattr(row, column) for row in found}
        for name in names or ():
            if name not in known:
                listed = f": there are {', '.join(sorted(known))}" if len(known) < 20 else ""
                raise UserError(f"--{option} {name!r} is not in AgentRewardBench{listed}")
        if names:
            found = [row for row in found if getattr(row, column) in names]
    return found


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """The command; what was fetched before an interruption is kept."""
    args = _parser().parse_args(arguments)
    what = [part.strip() for part in args.what.split(",") if part.strip()]
    for part in what:
        if part not in WHAT:
            raise UserError(f"--what {part!r} is none of {', '.join(WHAT)}")
    copy = HubCopy(args.dest or folder(), REPO, args.revision)
    wanted = _chosen(args, rows(copy))
    failed = download(copy, wanted, what, screenshots=args.screenshots, judges=args.judge)
    for error in failed:
        sys.stderr.write(f"not fetched: {one_line(str(error))}\n")
    for path in copy.missing:
        sys.stderr.write(f"not in the dataset: {one_line(path)}\n")
    counts = copy.counts
    sys.stderr.write(
        f"{counts.downloaded} files fetched ({counts.bytes / 1e6:.1f} MB), {counts.present} were "
        f"here already, {counts.missing} not in the dataset; revision {copy.revision}\n"
    )
    sys.stdout.write(f"{copy.folder}\n")
    return FAILURES if failed else DONE


if __name__ == "__main__":
    sys.exit(main())
