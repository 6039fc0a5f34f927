"""Verdicts in ``published/JUDGE/results.json``: AgentRewardBench's layout of a whole test run.

The file maps judge → benchmark → agent → ``trajectory_success`` → ``y_human`` and ``y_judge``:
labels and verdicts in the order of the annotations' test split; -1 is a judgment that failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from trajudge.annotations.agentrewardbench import (
    BENCHMARKS,
    benchmark_of,
    load,
    with_packaged_splits,
)
from trajudge.annotations.published import PublishedVerdict
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.files import read_regular, utf8

_MAX_BYTES = 256 * 2**20
Order = dict[tuple[str, str], dict[TrajectoryKey, bool]]
"""By benchmark and agent, the labelled test trajectories with their label, in file order."""


class _Arrays(msgspec.Struct):
    y_human: list[Annotated[int, msgspec.Meta(ge=0, le=1)]]
    y_judge: list[int]


class _Cell(msgspec.Struct):
    trajectory_success: _Arrays


_RESULTS = msgspec.json.Decoder(dict[str, dict[str, dict[str, _Cell]]])


def read_verdicts(path: Path) -> Iterator[PublishedVerdict]:
    """Yield the verdicts of every ``published/JUDGE/results.json`` of a folder with
    ``annotations.csv`` and ``splits.csv``. Raises UserError where the labels in a file are not
    those of the annotations."""
    folder = path if path.is_dir() else path.parent
    annotations = load(folder)
    if not any(annotation.split for annotation in annotations):
        annotations = with_packaged_splits(annotations)
    order: Order = {}
    for each in annotations:
        if each.split == "test" and each.success is not None:
            cell = order.setdefault((benchmark_of(each.key), each.key.agent), {})
            cell.setdefault(each.key, each.success)
    for file in sorted(folder.glob("published/*/results.json")):
        yield from read_results(file, order)


def read_results(file: Path, order: Order) -> Iterator[PublishedVerdict]:
    """Yield the verdicts of one file; a judge is named after the file's folder where the file holds
    one, else as in the file. Raises UserError for another file, and for other labels."""
    try:
        results = _RESULTS.decode(utf8(read_regular(file, _MAX_BYTES), file))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(
            f"{file}: is not judge -> benchmark -> agent -> trajectory_success -> y_human, "
            f"y_judge ({error}): give a published results.json"
        ) from error
    judges = {judge: dict(_cells(groups)) for judge, groups in results.items()}
    judges = {judge: cells for judge, cells in judges.items() if cells}
    for judge, cells in judges.items():
        name = file.parent.name if len(judges) == 1 else judge
        for place, arrays in cells.items():
            labels = order.get(place, {})
            verdicts = arrays.y_judge
            if list(labels.values()) != arrays.y_human or len(labels) != len(verdicts):
                raise UserError(
                    f"{file}: {judge}, {'/'.join(place)}: y_human is not the labels of the "
                    "annotations' test split: give the annotations that it was computed from"
                )
            for key, verdict in zip(labels, verdicts, strict=True):
                yield _verdict(key, name, verdict)


def _cells(groups: dict[str, dict[str, _Cell]]) -> Iterator[tuple[tuple[str, str], _Arrays]]:
    """Yield (benchmark, agent) and its arrays, without the sums over benchmarks or agents."""
    for benchmark in filter(groups.__contains__, BENCHMARKS):
        for agent, cell in groups[benchmark].items():
            if agent != "all" and cell.trajectory_success.y_human:
                yield (benchmark, agent), cell.trajectory_success


def _verdict(key: TrajectoryKey, judge: str, verdict: int) -> PublishedVerdict:
    if verdict in (0, 1):
        return PublishedVerdict(key=key, judge=judge, success=bool(verdict))
    detail = f"the published verdict is {verdict}: no valid response"
    return PublishedVerdict(key=key, judge=judge, status="provider_error", detail=detail)
