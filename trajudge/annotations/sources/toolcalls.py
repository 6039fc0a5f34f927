"""Labels and published verdicts of tool-calling agents, in trajectory-judge's format.

``label`` in a run's line: ``outcome_correct`` is success, ``faulty`` a process that is not sound,
``failure_step`` (from 0) and ``failure_type`` its position and kind. ``verdicts.jsonl`` in the same
folder has judges' verdicts on ``faulty``, the process, not on success.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from trajudge.annotations.model import Label
from trajudge.annotations.published import PublishedVerdict
from trajudge.trajectories.loaders.toolcalls import FILE
from trajudge.trajectories.loaders.toolcalls import detect as detect_runs
from trajudge.trajectories.model import TrajectoryKey, Unreadable
from trajudge.util import jsonl as python_json
from trajudge.util.errors import UserError
from trajudge.util.jsonl import read_lines

VERDICTS = "verdicts.jsonl"
# A judge's id names the folder of its run.
_SEPARATORS = ("/", "\\", "\0")
_ANNOTATOR = "injected"


class _Fault(msgspec.Struct, kw_only=True):
    faulty: bool | None = None
    failure_step: int | None = None
    failure_type: str | None = None


class _Label(_Fault):
    outcome_correct: bool | None = None


class _Labelled(msgspec.Struct):
    trajectory_id: str
    label: _Label | None = None


class _Verdict(_Fault):
    trajectory_id: str
    judge_id: str
    confidence: float | None = None
    rationale: str | None = None
    error: str | None = None


_LABELLED = msgspec.json.Decoder(_Labelled)
_VERDICT = msgspec.json.Decoder(_Verdict)


def detect(path: Path) -> bool:
    """Return True if the path has such runs."""
    return detect_runs(path)


def load(path: Path) -> list[Label]:
    """Read the label of every run that has one, in file order. Raises UserError."""
    return [
        Label(
            key=key,
            raw_task_id=key.task_id,
            annotator=_ANNOTATOR,
            success=label.outcome_correct,
            process=None if label.faulty is None else not label.faulty,
            failure_step=label.failure_step,
            failure_type=label.failure_type,
        )
        for key, _, label in _labelled(path)
        if label is not None
    ]


def read_verdicts(path: Path) -> Iterator[PublishedVerdict]:
    """Yield every verdict in the runs' ``verdicts.jsonl``, in file order.

    Raises UserError for a verdict without a run, or a judge whose name is a path.
    """
    keys = {identity: key for key, identity, _ in _labelled(path)}
    file = FILE.of(path).with_name(VERDICTS)
    if not file.is_file():
        raise UserError(f"{path}: holds no {VERDICTS} beside the runs")
    for line in read_lines(file):
        where = f"{file}, line {line.number}"
        try:
            verdict = python_json.decode(line.data, _VERDICT)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{where}: is no verdict: {line.problem or error}") from error
        if any(mark in verdict.judge_id for mark in _SEPARATORS):
            raise UserError(f"{where}: {verdict.judge_id!r} names a path, not a judge")
        if verdict.trajectory_id not in keys:
            raise UserError(f"{where}: {verdict.trajectory_id!r} is no run of {FILE.of(path)}")
        yield _published(keys[verdict.trajectory_id], verdict)


def _published(key: TrajectoryKey, verdict: _Verdict) -> PublishedVerdict:
    if verdict.faulty is None:
        detail = verdict.error or "it does not say whether the run is faulty"
        return PublishedVerdict(key=key, judge=verdict.judge_id, status="unparsable", detail=detail)
    confidence = verdict.confidence
    return PublishedVerdict(
        key=key,
        judge=verdict.judge_id,
        process=not verdict.faulty,
        failure_step=verdict.failure_step,
        failure_type=verdict.failure_type,
        scores={} if confidence is None else {"confidence": confidence},
        reasoning=verdict.rationale or "",
    )


def _labelled(path: Path) -> Iterator[tuple[TrajectoryKey, str, _Label | None]]:
    """Yield key, id and label of every run. Raises UserError for an invalid line."""
    for run in FILE.runs(path):
        if isinstance(run, Unreadable):
            raise UserError(f"{run.source}: {run.reason}")
        try:
            record = python_json.decode(run.data, _LABELLED)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{run.location}: its label cannot be read: {error}") from error
        yield run.key, record.trajectory_id, record.label
