"""Logs of inspect_ai: ``.eval`` archives and ``.json`` logs.

A sample of one epoch is a trajectory. The benchmark is the task without its package, the agent the
model (and the solver, where a folder has several of one task and model), the attempt counts epochs
from 0. Of a sample that several logs of one task hold, as those of a retried evaluation do, the
newest counts; another evaluation of the same task by the same model adds attempts. The reward is
the value of the only score. ``target``, ``scores`` and ``metadata`` of a sample reach no prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from trajudge.trajectories.loaders.common import detection
from trajudge.trajectories.loaders.files import Damaged, readable, reason
from trajudge.trajectories.loaders.inspect_logs.files import (
    EvalLog,
    Sample,
    is_log,
    read_header,
    read_samples,
)
from trajudge.trajectories.loaders.inspect_logs.samples import make_trajectory
from trajudge.trajectories.loading import Loaded, Want, accept_all
from trajudge.trajectories.model import TrajectoryKey, Unreadable
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import DataFolder

KIND = "inspect"
# What says what is right: the reward is made of ``scores``, the rest is not read.
LEAKS = ("target", "scores", "metadata", "store", "events")

_SUFFIXES = (".eval", ".json")
_MAX_ID = 1000


class _Evaluation(NamedTuple):
    """The logs of one evaluation (several where it was retried), the newest first, and the attempt
    that its first epoch is."""

    logs: Sequence[EvalLog]
    benchmark: str
    agent: str
    first_attempt: int


def detect(path: Path) -> bool:
    """Tell whether the file, or one in the folder, is a log."""
    if path.is_file():
        return path.suffix in _SUFFIXES and is_log(path, DataFolder(path.resolve().parent))
    files, root = _files(path)[: detection.MAX_FILES], DataFolder(path)
    return any(is_log(file, root) for file in files)


def load(path: Path, want: Want = accept_all) -> Loaded:
    """Yield the samples of the log, or of those in the folder, evaluation by evaluation.

    Raises UserError if there is no log.
    """
    if path.is_file():
        files = [path.resolve()]
        root = DataFolder(files[0].parent)
    else:
        root = DataFolder(path)
        files = [one for one in _files(path) if one.suffix == ".eval" or is_log(one, root)]
    if not files:
        raise UserError(f"{path} holds no log: --data {KIND}:PATH needs .eval files")
    return _load(files, root, want)


def _files(path: Path) -> list[Path]:
    return [file for file in detection.files(path, "*.*") if file.suffix in _SUFFIXES]


def _load(files: Sequence[Path], root: DataFolder, want: Want) -> Loaded:
    logs: list[EvalLog] = []
    for file in files:
        try:
            logs.append(read_header(file, root))
        except Damaged as error:
            yield Unreadable(readable(str(file)), reason(error))
    for evaluation in _evaluations(logs):
        yield from _load_evaluation(evaluation, root, want)


def _load_evaluation(evaluation: _Evaluation, root: DataFolder, want: Want) -> Loaded:
    seen: set[TrajectoryKey] = set()
    for log in evaluation.logs:
        place = readable(str(log.file))
        for sample in read_samples(log, root):
            if isinstance(sample, Damaged):
                yield Unreadable(place, reason(sample))
                continue
            key = None
            try:
                key = _key(sample, evaluation)
                if key not in seen and want(key):
                    yield make_trajectory(sample, key)
                seen.add(key)
            except (ValueError, RecursionError) as error:
                where = f"{place}: sample {key.task_id}" if key else place
                yield Unreadable(where, reason(error), key)


def _key(sample: Sample, evaluation: _Evaluation) -> TrajectoryKey:
    if isinstance(sample.id, str) and len(sample.id) > _MAX_ID:
        raise Damaged(f"a sample's id has more than {_MAX_ID:,} characters")
    if isinstance(sample.id, bool) or not isinstance(sample.id, int | str):
        raise Damaged(f"a sample's id is neither a number nor a text: {str(sample.id)[:80]!r}")
    epoch = sample.epoch
    if isinstance(epoch, bool) or not isinstance(epoch, int) or epoch < 1:
        raise Damaged(f"sample {str(sample.id)[:80]!r}: its epoch is {str(epoch)[:20]!r}")
    return TrajectoryKey(
        benchmark=evaluation.benchmark,
        agent=evaluation.agent,
        task_id=readable(str(sample.id)),
        attempt=evaluation.first_attempt + epoch - 1,
    )


def _evaluations(logs: Sequence[EvalLog]) -> Iterator[_Evaluation]:
    """Group the logs by evaluation, in the order in which those began."""
    ordered = sorted(logs, key=_started)
    by_task: dict[str, list[EvalLog]] = {}
    for log in ordered:
        by_task.setdefault(log.field("task_id") or str(log.file), []).append(log)
    solvers = {name: _solver(versions[0]) for name, versions in by_task.items()}
    used: dict[tuple[str, str], int] = {}
    for name, versions in by_task.items():
        log = versions[-1]
        pair = (log.field("task"), log.field("model"))
        rivals = {
            solvers[other]
            for other, (first, *_) in by_task.items()
            if (first.field("task"), first.field("model")) == pair
        }
        agent = pair[1] or "unknown"
        agent += f"+{solvers[name]}" if len(rivals) > 1 else ""
        benchmark = pair[0].rpartition("/")[2] or KIND
        first_attempt = used.get((benchmark, agent), 0)
        used[benchmark, agent] = first_attempt + _epochs(log)
        yield _Evaluation(versions[::-1], benchmark, agent, first_attempt)


def _started(log: EvalLog) -> tuple[float, str]:
    try:
        seconds = datetime.fromisoformat(log.field("created")).timestamp()
    except (ValueError, OverflowError):
        seconds = 0.0
    return seconds, log.file.name


def _epochs(log: EvalLog) -> int:
    config = log.header.eval.get("config")
    epochs = config.get("epochs") if isinstance(config, dict) else None
    return epochs if isinstance(epochs, int) and 1 <= epochs <= 10_000 else 1


def _solver(log: EvalLog) -> str:
    """Return the solver's name, or the names of the plan's steps."""
    if named := log.field("solver"):
        return named
    plan: Any = log.header.plan
    steps = plan.get("steps") if isinstance(plan, dict) else None
    named_steps = [one.get("solver") for one in steps or () if isinstance(one, dict)]
    return "-".join(readable(one) for one in named_steps if isinstance(one, str)) or "solver"
