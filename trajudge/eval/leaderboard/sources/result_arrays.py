"""AgentRewardBench's published ``results.json``: the complete verdicts of a judge, as arrays.

``JUDGE -> BENCHMARK -> AGENT -> trajectory_success -> {y_human, y_judge}``, in the order in which
``annotations.csv`` names the trajectories of the test split. They hold every verdict of the
published table, also those whose reply was not published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from trajudge.annotations.agentrewardbench import BENCHMARKS, benchmark_of
from trajudge.annotations.model import Annotation
from trajudge.annotations.published import SUFFIX
from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.model import TrajectoryKey
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import read_regular, utf8

FILE = "results.json"
_SUCCESS = "trajectory_success"
_MAX_BYTES = 256 * 2**20


def read_result_arrays(path: Path, annotations: Sequence[Annotation]) -> list[Judgment]:
    """Read the verdicts in ``path`` (``FOLDER/results.json``), one judge after the other.

    ``annotations`` are AgentRewardBench's, in file order. A judge is named after the folder where
    the file holds one, else after itself; verdict -1 is a judgment that failed. Raises UserError
    where the file is none of these, or the experts' labels in it are not those of ``annotations``.
    """
    published = _decoded(path)
    order = _test_order(annotations)
    filled = {
        judge: groups for judge, groups in published.items() if any(_arrays(path, judge, groups))
    }
    judgments: list[Judgment] = []
    for judge, groups in filled.items():
        name = path.parent.name if len(filled) == 1 else judge
        for place, expert, verdicts in _arrays(path, judge, groups):
            keys = order.get(place, ())
            if [int(label) for _, label in keys] != expert or len(expert) != len(verdicts):
                raise UserError(
                    f"{path}: {judge}, {'/'.join(place)}: y_human is not the labels of the "
                    "annotations' test split: give the annotations that it was computed from"
                )
            judgments += [
                _judgment(key, name + SUFFIX, verdict)
                for (key, _), verdict in zip(keys, verdicts, strict=True)
            ]
    return judgments


def _decoded(path: Path) -> Mapping[str, Any]:
    try:
        published = orjson.loads(utf8(read_regular(path, _MAX_BYTES), path))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from error
    if not isinstance(published, dict):
        raise UserError(f"{path}: holds no JSON object: give a published {FILE}")
    return published


def _arrays(
    path: Path, judge: str, groups: Any
) -> Iterator[tuple[tuple[str, str], list[int], list[int]]]:
    """Yield (benchmark, agent), labels and verdicts where there are any; sums over benchmarks or
    agents ("all") are left out."""
    try:
        for benchmark in filter(groups.keys().__contains__, BENCHMARKS):
            for agent, cells in groups[benchmark].items():
                expert, verdicts = cells[_SUCCESS]["y_human"], cells[_SUCCESS]["y_judge"]
                if agent != "all" and expert:
                    yield (benchmark, agent), list(map(int, expert)), list(map(int, verdicts))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path}: {judge}: is not BENCHMARK -> AGENT -> {_SUCCESS} -> y_human, y_judge: give a "
            f"published {FILE}"
        ) from error


def _test_order(
    annotations: Sequence[Annotation],
) -> dict[tuple[str, str], list[tuple[TrajectoryKey, bool]]]:
    """List, by benchmark and agent, the labelled test trajectories with their label."""
    order: dict[tuple[str, str], dict[TrajectoryKey, bool]] = {}
    for each in annotations:
        if each.split == "test" and each.success is not None:
            place = (benchmark_of(each.key), each.key.agent)
            order.setdefault(place, {}).setdefault(each.key, each.success)
    return {place: list(keys.items()) for place, keys in order.items()}


def _judgment(key: TrajectoryKey, judge: str, verdict: int) -> Judgment:
    if verdict in (0, 1):
        return Judgment(key=key, judge=judge, status=Status.OK, success=bool(verdict))
    detail = f"the published verdict is {verdict}: no valid response"
    return Judgment(key=key, judge=judge, status=Status.PROVIDER_ERROR, detail=detail)
