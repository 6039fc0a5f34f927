"""AgentRewardBench's ``annotations.csv`` and ``splits.csv``, from a folder or from the installed
package ``agent-reward-bench`` (its files are read; the package is never imported), and the verdicts
of a complete test run in ``published/JUDGE/results.json``.

``results.json`` maps judge → benchmark → agent → ``trajectory_success`` → ``y_human`` and
``y_judge``: labels and verdicts in the order of the annotations' test split; -1 is a failed
judgment.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from trajudge.annotations.agentrewardbench import BENCHMARKS, benchmark_of
from trajudge.annotations.model import Label, Role
from trajudge.annotations.published import PublishedVerdict
from trajudge.trajectories.model import TrajectoryKey, canonical_task_id
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder, open_regular, read_regular, utf8, write_bytes
from trajudge.util.foreign_table import read_rows
from trajudge.util.terminal import listed

Split = Literal["dev", "test"]

KIND = "agentrewardbench"
PACKAGE = "agent-reward-bench"

_MAX_BYTES = 256 * 2**20
_ANNOTATIONS = "annotations.csv"
_SPLITS = "splits.csv"
_SUCCESS = {"Successful": True, "Unsuccessful": False, "Unsure": None}
_YES_NO = {"Yes": True, "No": False, "Unsure": None}
_OPTIMALITY = {
    "1. Complete Failure": 1,
    "2. Suboptimal": 2,
    "3. Somewhat Optimal": 3,
    "4. Completely Optimal": 4,
    "Unsure": None,
}
_LABELS: dict[str, tuple[str, Mapping[str, int | None]]] = {
    "success": ("trajectory_success", _SUCCESS),
    "side_effect": ("trajectory_side_effect", _YES_NO),
    "repetition": ("trajectory_looping", _YES_NO),
    "optimality": ("trajectory_optimality", _OPTIMALITY),
}
_COLUMNS = (
    *("annotator_name", "benchmark", "task_id", "model_name", "exp_name", "trajectory_success"),
    *("trajectory_side_effect", "trajectory_optimality", "trajectory_looping"),
)
_SPLIT_NAMES: dict[str, Split] = {"dev": "dev", "test": "test"}
_IDENTITY = ("annotator_name", "benchmark", "task_id", "model_name")
_SPLIT_COLUMNS = ("task_id", "benchmark", "split")


def detect(path: Path) -> bool:
    """Return True for an ``annotations.csv``, its folder, and a CSV file with its columns."""
    if path.name == _ANNOTATIONS or (path / _ANNOTATIONS).is_file():
        return True
    if path.suffix != ".csv":
        return False
    try:
        with open_regular(path) as file:
            head = file.readline(1000).decode("utf-8-sig", "replace")
    except OSError:
        return False
    return {"annotator_name", "trajectory_success"} <= {name.strip() for name in head.split(",")}


def load(path: Path | None = None) -> list[Label]:
    """Read all annotations in file order and join their splits.

    ``path`` is ``annotations.csv`` or its folder; None reads the installed package. Raises
    UserError for a missing file or column, and for a value outside the format.
    """
    folder = None
    if path is None:
        path = _packaged(_ANNOTATIONS)
    elif path.is_dir():
        folder = DataFolder(path)
        path /= _ANNOTATIONS
    splits_path = path.with_name(_SPLITS)
    splits = load_splits(splits_path, folder) if splits_path.is_file() else {}
    seen: set[TrajectoryKey] = set()
    annotations = []
    columns = (*_IDENTITY, *(column for column, _ in _LABELS.values()))
    for line, row in _rows(path, columns, folder):
        annotation = _annotation(row, splits, seen, f"{path}, line {line}")
        seen.add(annotation.key)
        annotations.append(annotation)
    return annotations


def write_annotations(path: Path, annotations: Iterable[Label]) -> None:
    """Write ``annotations.csv`` with the columns and line ends of the benchmark's own file. A label
    of None is written as "Unsure".

    Raises UserError for labels that the format cannot express: further attempts, adjudicated ones.
    """
    table = io.StringIO()
    rows = csv.writer(table)
    rows.writerow(_COLUMNS)
    names = {
        label: {value: text for text, value in values.items()}
        for label, (_, values) in _LABELS.items()
    }
    for each in annotations:
        if each.key.attempt or each.role is Role.ADJUDICATED:
            raise UserError(
                f"{path}: the format of {KIND} has no place for "
                + (f"a further attempt ({each.key})" if each.key.attempt else "adjudicated labels")
                + ": export in our own format"
            )
        agent, experiment = each.key.agent, each.raw_task_id.rpartition(".")[0]
        identity = (each.annotator, each.key.benchmark, each.raw_task_id, agent)
        labels = [
            names[label][getattr(each, label)]
            for label in ("success", "side_effect", "optimality", "repetition")
        ]
        rows.writerow([*identity, f"{agent}_on_{experiment}", *labels])
    write_bytes(path, table.getvalue().encode())


def load_splits(path: Path, folder: DataFolder | None = None) -> dict[tuple[str, str], Split]:
    """Return the split by benchmark and canonical task id. The file must be inside ``folder``."""
    splits: dict[tuple[str, str], Split] = {}
    for line, row in _rows(path, _SPLIT_COLUMNS, folder):
        split = _SPLIT_NAMES.get(row["split"])
        if split is None:
            raise UserError(
                f"{path}, line {line}: split is {row['split']!r}, where dev or test is expected"
            )
        # The splits name WorkArena's levels, the annotations do not.
        benchmark = row["benchmark"].removesuffix("_l1").removesuffix("_l2")
        splits[benchmark, canonical_task_id(benchmark, row["task_id"])] = split
    return splits


def with_packaged_splits(annotations: Iterable[Label]) -> list[Label]:
    """Add the splits of the installed package, which the dataset on the Hub lacks; return the
    annotations unchanged if the package is not installed."""
    try:
        splits = load_splits(_packaged(_SPLITS))
    except UserError:
        splits = {}
    return [
        annotation.model_copy(
            update={"split": splits.get((annotation.key.benchmark, annotation.key.task_id))}
        )
        for annotation in annotations
    ]


def _annotation(
    row: Mapping[str, str],
    splits: Mapping[tuple[str, str], Split],
    seen: set[TrajectoryKey],
    where: str,
) -> Label:
    for column in ("benchmark", "task_id", "model_name"):
        if not row[column]:
            raise UserError(f"{where}: {column} is empty, where every row needs one")
    key = TrajectoryKey(benchmark=row["benchmark"], agent=row["model_name"], task_id=row["task_id"])
    labels: dict[str, Any] = {
        label: _value(row[column], values, column, where)
        for label, (column, values) in _LABELS.items()
    }
    return Label(
        key=key,
        raw_task_id=row["task_id"],
        annotator=row["annotator_name"],
        role=Role.SECONDARY if key in seen else Role.PRIMARY,
        split=splits.get((key.benchmark, key.task_id)),
        **labels,
    )


def _value(text: str, values: Mapping[str, int | None], column: str, where: str) -> int | None:
    if text not in values:
        raise UserError(
            f"{where}: {column} is {text!r}, where one of {', '.join(values)} is expected"
        )
    return values[text]


def _rows(
    path: Path, columns: tuple[str, ...], folder: DataFolder | None
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line and the cells of ``columns`` of each row. Raises UserError."""
    if folder is not None and not folder.holds(path):
        raise UserError(f"{path}: leads out of the data folder: give a path to it")
    table = read_rows(path, _MAX_BYTES)
    if missing := [name for name in columns if name not in table.columns]:
        has = listed([repr(name) for name in table.columns], 4)
        raise UserError(
            f"{path}: the column {missing[0]!r} is missing in its first line, which has {has}: "
            f"name the columns as {KIND} does, or read it as --annotations table:{path}"
        )
    places = [table.columns.index(name) for name in columns]
    for line, row in zip(table.lines, table.rows, strict=True):
        yield line, {name: row[index] for name, index in zip(columns, places, strict=True)}


def _packaged(name: str) -> Path:
    """Return the path of a data file of the installed package."""
    install = f"install it with  pip install --no-deps {PACKAGE}  or name the file, {KIND}:PATH"
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        raise UserError(
            f"the annotations of AgentRewardBench come with the package {PACKAGE}, "
            f"which is not installed: {install}"
        ) from None
    for file in files:
        if file.parts[-2:] == ("data", name):
            return Path(str(file.locate()))
    raise UserError(f"the installed package {PACKAGE} has no file data/{name}: {install}")


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
    ``annotations.csv`` and ``splits.csv``. Raises UserError if the labels in a file differ from
    the annotations."""
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
    """Yield the verdicts of one file; if it has only one judge, the judge is named after the
    file's folder. Raises UserError for another file, and for other labels."""
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
        for group, arrays in cells.items():
            labels = order.get(group, {})
            verdicts = arrays.y_judge
            if list(labels.values()) != arrays.y_human or len(labels) != len(verdicts):
                raise UserError(
                    f"{file}: {judge}, {'/'.join(group)}: y_human is not the labels of the "
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
