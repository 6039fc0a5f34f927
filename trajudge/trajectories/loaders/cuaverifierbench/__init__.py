"""CUAVerifierBench (Microsoft, arXiv 2604.06240): Fara-7B's web runs, a row each, in Parquet.

A row holds a Fara log as text and the screenshots as PNG files; the task id is prefixed by the
split. Labels and verdicts stand in the same rows (``LEAKS``): none of these columns is read here,
``annotations.cuaverifierbench`` makes labels and published verdicts of them. Screenshots are read
row by row, and only those that are needed are kept; most runs of split ``internal`` have none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from trajudge.trajectories.loaders.cuaverifierbench.tables import (
    MARKS,
    TableFile,
    read_rows,
    read_screenshots,
    table_files,
)
from trajudge.trajectories.loaders.fara import answer_of, ending
from trajudge.trajectories.loaders.fara.events import read_turns
from trajudge.trajectories.loaders.fara.frames import order_of, steps_of
from trajudge.trajectories.loaders.files import readable, reason
from trajudge.trajectories.loaders.values import Values
from trajudge.trajectories.loading import Loaded, Want, accept_all
from trajudge.trajectories.model import ImageRef, Trajectory, TrajectoryKey, Unreadable
from trajudge.trajectories.needs import EVERYTHING, Needs
from trajudge.trajectories.util.errors import UserError

KIND = "cuaverifierbench"
AGENT = "fara-7b"
LEAKS = (
    "gpt_eval_json",
    "uv_rubric_score",
    "uv_outcome_success",
    "mm_is_success",
    "verifier_is_success",
    "final_human_outcome_label",
    "final_human_process_label",
    "median_human_rubric_score_agnostic",
    "majority_human_outcome_vote",
)
CONFIG = "trajectories"
_COLUMNS = (
    "task_id",
    "instruction",
    "start_timestamp",
    "end_timestamp",
    "final_answer",
    "is_aborted",
    "web_surfer_log",
    "n_screenshots",
)
_NOT_FETCHED = (
    "was left out when the data set was fetched: fetch it with  "
    "trajudge data fetch cuaverifierbench"
)
_NOT_READ = "was not read, for the judge does not need it"


def detect(path: Path) -> bool:
    """Tell whether the path is, or is a folder with, a Parquet file of runs."""
    return bool(run_files(path))


def run_files(path: Path) -> list[TableFile]:
    """List the files of runs at the path."""
    return table_files(path, CONFIG, MARKS)


def load(path: Path, want: Want = accept_all, needs: Needs = EVERYTHING) -> Loaded:
    """Yield the runs in the order of the files and rows, with the screenshots that are needed.

    Raises UserError if there is no such file, or one of them is damaged.
    """
    tables = [(file, read_rows(file, _COLUMNS)) for file in _files(path)]
    counts: Counter[TrajectoryKey] = Counter()
    return _runs([(file, [*_keyed(file, rows, counts)]) for file, rows in tables], want, needs)


def run_key(split: str, task_id: object) -> TrajectoryKey:
    """Return the key of a run: the task id with the split before it."""
    name = readable(str(task_id))
    return TrajectoryKey(benchmark=KIND, agent=AGENT, task_id=f"{split}/{name}")


def _files(path: Path) -> list[TableFile]:
    files = run_files(path)
    if not files:
        raise UserError(
            f"{path}: holds no runs of {KIND}: name the folder that  trajudge data fetch {KIND}  "
            "wrote, or a Parquet file of its configuration trajectories"
        )
    return files


def _keyed(
    file: TableFile, rows: Sequence[dict[str, Any]], counts: Counter[TrajectoryKey]
) -> Iterator[tuple[TrajectoryKey, dict[str, Any]]]:
    for row in rows:
        key = run_key(file.split, row["task_id"])
        counts[key] += 1
        yield key.model_copy(update={"attempt": counts[key] - 1}), row


def _runs(
    tables: Sequence[tuple[TableFile, list[tuple[TrajectoryKey, dict[str, Any]]]]],
    want: Want,
    needs: Needs,
) -> Loaded:
    for file, rows in tables:
        wanted = [want(key) for key, _ in rows]
        is_shown = bool(needs.screenshots) and file.has_images
        pictures = read_screenshots(file, wanted) if is_shown else None
        for (key, row), is_wanted in zip(rows, wanted, strict=True):
            if is_wanted:
                shown = None if pictures is None else next(pictures)
                yield _run(key, row, shown, needs, file)


def _run(
    key: TrajectoryKey,
    row: dict[str, Any],
    pictures: list[dict[str, Any]] | None,
    needs: Needs,
    file: TableFile,
) -> Trajectory | Unreadable:
    warnings: list[str] = []
    values = Values(warnings)
    log = (values.text(row["web_surfer_log"], "web_surfer_log") or "").encode("utf-8", "replace")
    turns = read_turns(log.split(b"\n"), warnings)
    count = values.whole(row["n_screenshots"], "n_screenshots") or 0
    aborted = values.flag(row["is_aborted"], "is_aborted") or False
    frames: list[ImageRef | None]
    if pictures is None:
        problem = _NOT_READ if file.has_images else _NOT_FETCHED
        frames = [_lacking(number, problem) for number in range(count)]
    else:
        if len(pictures) != count:
            warnings.append(f"{len(pictures)} screenshots, where n_screenshots is {count}.")
        frames = _frames(pictures, len(turns), needs)
    try:
        return Trajectory(
            key=key,
            raw_task_id=readable(str(row["task_id"])),
            goal=values.text(row["instruction"], "instruction") or "",
            steps=steps_of(turns, frames, warnings),
            answer=answer_of(row["final_answer"], values),
            **ending(turns, aborted=aborted, warnings=warnings),
            telemetry={"n_steps": float(len(turns)), **_seconds(row)},
        )
    except ValueError as error:
        return Unreadable(f"{file.path}: {key}", reason(error), key)


def _frames(pictures: list[dict[str, Any]], actions: int, needs: Needs) -> list[ImageRef | None]:
    """Return the screenshots by the numbers in their names, or as they stand where the names do
    not order them; the bytes of those that are not needed are dropped."""
    names = [picture.get("path") for picture in pictures]
    numbers = {order_of(name)[0] for name in names if isinstance(name, str)}
    if len(numbers) == len(pictures):
        pictures = sorted(pictures, key=lambda picture: order_of(str(picture.get("path"))))
    steps = actions + (len(pictures) > actions)
    kept = set(needs.screenshot_steps([step < len(pictures) for step in range(steps)]))
    frames: list[ImageRef | None] = []
    for number, picture in enumerate(pictures):
        content = picture.get("bytes")
        if not isinstance(content, bytes) or not content:
            frames.append(_lacking(number, "has no bytes in its row"))
        elif number in kept:
            frames.append(ImageRef(data=content))
        else:
            frames.append(_lacking(number, _NOT_READ))
    return frames


def _lacking(number: int, problem: str) -> ImageRef:
    return ImageRef(problem=f"the screenshot {number} {problem}")


def _seconds(row: dict[str, Any]) -> dict[str, float]:
    """Return the seconds between the run's two times, where both are given."""
    try:
        start, end = (datetime.fromisoformat(row[f"{edge}_timestamp"]) for edge in ("start", "end"))
        return {"cum_agent_elapsed": (end - start).total_seconds()}
    except (TypeError, ValueError):
        return {}
