"""CUAVerifierBench (Microsoft, arXiv 2604.06240): Fara-7B's web runs, one per row, in Parquet.

A row has a Fara log as text and the screenshots as PNG files; the task id is prefixed by the split.
Labels and verdicts are in the same rows (``LEAKS``): none of these columns is read here,
``annotations.cuaverifierbench`` reads them. Screenshots are read row by row, and only needed ones
are kept; most runs of split ``internal`` have none.

The two configurations are in the folders ``trajectories`` and ``annotations``, with one or more
files per split (``internal-00000-of-00002.parquet``). ``NAME.text.parquet`` is ``NAME.parquet``
downloaded without images: all columns except the screenshots.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trajudge.trajectories.hub import HubCopy, Listed
from trajudge.trajectories.loaders._files import readable, reason, record_of
from trajudge.trajectories.loaders._run import RunReader, RunSource
from trajudge.trajectories.loaders.fara import answer_of, ending, order_of, read_turns, steps_of
from trajudge.trajectories.model import (
    ImageRef,
    Loaded,
    Trajectory,
    TrajectoryKey,
    Unreadable,
    Want,
    accept_all,
)
from trajudge.trajectories.needs import EVERYTHING, Needs
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder, UnsafeFile, open_regular

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

SUFFIX = ".parquet"
TEXT_SUFFIX = ".text.parquet"
SCREENSHOTS = "screenshots"
MARKS = (b"web_surfer_log", b"instruction")
_SPLIT = re.compile(r"(.+?)-\d{5}-of-\d{5}")
_FOOTER_BYTES = 64 * 2**10
_MAGIC = b"PAR1"
# All text of the published data is 2 MB; a bomb declares more.
_MAX_TEXT_BYTES = 512 * 2**20
_MEND = "fetch the data set anew:  trajudge data fetch cuaverifierbench"


class TableFile(NamedTuple):
    """A Parquet file of one split; it must be inside the folder ``data``."""

    path: Path
    split: str
    data: DataFolder | None

    @property
    def has_images(self) -> bool:
        """Whether it may have the screenshots."""
        return not self.path.name.endswith(TEXT_SUFFIX)


def table_files(path: Path, config: str, marks: Sequence[bytes]) -> list[TableFile]:
    """List the Parquet files at the path that have these columns, by name.

    Candidates are the path itself, the files of the folder, and those of its folder ``config``. A
    file without images is omitted if the complete one exists.
    """
    if path.is_file():
        return [TableFile(path, split_of(path), None)] if has_columns(path, marks) else []
    root = DataFolder(path)
    files = [
        TableFile(file, split_of(file), root)
        for folder in (path, path / config)
        if folder.is_dir()
        for file in sorted(folder.glob(f"*{SUFFIX}"))
        if root.has_file(file) and has_columns(file, marks)
    ]
    complete = {text_of(file.path) for file in files if file.has_images}
    return [file for file in files if file.has_images or file.path not in complete]


def text_of(path: Path) -> Path:
    """Return the name of the file without images for a complete file."""
    return path.with_name(path.name.removesuffix(SUFFIX) + TEXT_SUFFIX)


def split_of(path: Path) -> str:
    """Return the split of a file: its name without the number of the part."""
    stem = path.name.removesuffix(TEXT_SUFFIX).removesuffix(SUFFIX)
    match = _SPLIT.fullmatch(stem)
    return match[1] if match else stem


def has_columns(path: Path, names: Sequence[bytes]) -> bool:
    """Return True if the file is Parquet with these columns; reads at most the first 64 KiB of
    its footer, which has the schema."""
    if path.suffix != SUFFIX:
        return False
    try:
        with open_regular(path) as file:
            size = file.seek(0, 2)
            if size < 12:
                return False
            file.seek(size - 8)
            end = file.read(8)
            length = int.from_bytes(end[:4], "little")
            if end[4:] != _MAGIC or length > size - 8:
                return False
            file.seek(size - 8 - length)
            footer = file.read(min(length, _FOOTER_BYTES))
    except (OSError, UnsafeFile):
        return False
    return all(name in footer for name in names)


def read_rows(file: TableFile, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Read these columns of every row; no other column's bytes are read.

    Raises UserError if one is missing or the file is damaged.
    """
    with opened(file) as parquet:
        known = set(parquet.schema_arrow.names)
        missing = [name for name in columns if name not in known]
        if missing:
            raise UserError(f"{file.path}: has no column {missing[0]!r}; {_MEND}")
        _check_size(file, parquet, columns)
        rows: list[dict[str, Any]] = parquet.read(columns=list(columns)).to_pylist()
        return rows


def read_screenshots(file: TableFile, wanted: Sequence[bool]) -> Iterator[list[dict[str, Any]]]:
    """Yield the screenshots of each wanted row in turn: {``bytes``, ``path``}, one row in memory.

    Row groups without a wanted row are not read.
    """
    with opened(file) as parquet:
        start = 0
        for group in range(parquet.num_row_groups):
            count = parquet.metadata.row_group(group).num_rows
            flags = wanted[start : start + count]
            start += count
            if not any(flags):
                continue
            batches = parquet.iter_batches(1, row_groups=[group], columns=[SCREENSHOTS])
            for is_wanted, batch in zip(flags, batches, strict=True):
                if is_wanted:
                    pictures = batch.column(0).to_pylist()[0]
                    yield [*map(record_of, pictures if isinstance(pictures, list) else ())]


def _check_size(file: TableFile, parquet: ParquetFile, columns: Sequence[str]) -> None:
    """Refuse a file whose columns declare more text than any real one has."""
    size = 0
    for group in range(parquet.num_row_groups):
        parts = parquet.metadata.row_group(group)
        for location in range(parts.num_columns):
            part = parts.column(location)
            if part.path_in_schema.split(".")[0] in columns:
                size += part.total_uncompressed_size
    if size > _MAX_TEXT_BYTES:
        raise UserError(
            f"{file.path}: declares {size:,} bytes of text, more than the {_MAX_TEXT_BYTES:,} that "
            f"are read; {_MEND}"
        )


@contextmanager
def opened(file: TableFile) -> Iterator[ParquetFile]:
    """Open a file; a damaged one raises UserError, also while it is read inside."""
    import pyarrow as pa  # noqa: PLC0415 - only this format needs it
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        raw = file.data.open(file.path) if file.data else open_regular(file.path)
        with raw, pq.ParquetFile(raw, pre_buffer=False, buffer_size=2**20) as parquet:
            yield parquet
    # ValueError covers UnsafeFile and text that is no UTF-8; sizes in a damaged file overflow.
    except (ValueError, OverflowError, MemoryError, pa.ArrowException, OSError) as error:
        why = " ".join(str(error).split())[:200]
        raise UserError(f"{file.path}: cannot be read as Parquet ({why}); {_MEND}") from None


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
    """Return True if the path is a Parquet file of runs, or a folder with one."""
    return bool(run_files(path))


def run_files(path: Path) -> list[TableFile]:
    """List the files of runs at the path."""
    return table_files(path, CONFIG, MARKS)


def load(path: Path, want: Want = accept_all, needs: Needs = EVERYTHING) -> Loaded:
    """Yield the runs in the order of the files and rows, with the screenshots that are needed.

    Raises UserError if there is no such file, or one of them is damaged.
    """
    files = run_files(path)
    if not files:
        raise UserError(
            f"{path}: holds no runs of {KIND}: name the folder that  trajudge data fetch {KIND}  "
            "wrote, or a Parquet file of its configuration trajectories"
        )
    return _load([(file, read_rows(file, _COLUMNS)) for file in files], want, needs)


def _load(
    tables: Sequence[tuple[TableFile, list[dict[str, Any]]]], want: Want, needs: Needs
) -> Loaded:
    counts: Counter[TrajectoryKey] = Counter()
    for file, rows in tables:
        keys = []
        for row in rows:
            key = run_key(file.split, row["task_id"])
            keys.append(key.model_copy(update={"attempt": counts[key]}))
            counts[key] += 1
        wanted = [*map(want, keys)]
        is_shown = bool(needs.screenshots) and file.has_images
        pictures = read_screenshots(file, wanted) if is_shown else None
        for key, row, is_wanted in zip(keys, rows, wanted, strict=True):
            if not is_wanted:
                continue
            shown = None if pictures is None else next(pictures)
            folder = file.data or DataFolder(file.path.parent)
            run = RunReader(RunSource(key, readable(str(row["task_id"])), file.path, folder))
            try:
                yield _read(run, row, shown, needs, file)
            except ValueError as error:
                yield Unreadable(f"{file.path}: {key}", reason(error), key)


def run_key(split: str, task_id: object) -> TrajectoryKey:
    """Return the key of a run: the task id with the split as prefix."""
    name = readable(str(task_id))
    return TrajectoryKey(benchmark=KIND, agent=AGENT, task_id=f"{split}/{name}")


def _read(
    run: RunReader,
    row: dict[str, Any],
    pictures: list[dict[str, Any]] | None,
    needs: Needs,
    file: TableFile,
) -> Trajectory:
    log = (run.text(row["web_surfer_log"], "web_surfer_log") or "").encode("utf-8", "replace")
    turns = read_turns(log.split(b"\n"), run)
    count = run.whole(row["n_screenshots"], "n_screenshots") or 0
    aborted = run.flag(row["is_aborted"], "is_aborted") or False
    frames: list[ImageRef | None]
    if pictures is None:
        problem = _NOT_READ if file.has_images else _NOT_FETCHED
        frames = [_lacking(number, problem) for number in range(count)]
    else:
        if len(pictures) != count:
            run.warnings.append(f"{len(pictures)} screenshots, where n_screenshots is {count}.")
        frames = _frames(pictures, len(turns), needs)
    return run.trajectory(
        run.text(row["instruction"], "instruction") or "",
        steps_of(turns, frames, run.warnings),
        answer=answer_of(row["final_answer"], run),
        **ending(turns, aborted=aborted),
        telemetry={"n_steps": float(len(turns)), **_seconds(row)},
    )


def _frames(pictures: list[dict[str, Any]], actions: int, needs: Needs) -> list[ImageRef | None]:
    """Return the screenshots by the numbers in their names, or unsorted if the names have none;
    the bytes of those that are not needed are dropped."""
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
    """Return the seconds between the run's two times, if both are given."""
    try:
        start, end = (datetime.fromisoformat(row[f"{edge}_timestamp"]) for edge in ("start", "end"))
        return {"cum_agent_elapsed": (end - start).total_seconds()}
    except (TypeError, ValueError):
        return {}


# The published files are pinned, and the hub must list the same.

REPO = "microsoft/CUAVerifierBench"
REVISION = "c19eb323cd802add5c3d2840ff13044061364867"
FILES = {
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


def download(copy: HubCopy, *, images: bool = True) -> None:
    """Download the Parquet files; without ``images`` those of runs as ``NAME.text.parquet``, all
    columns except the screenshots.

    Raises UserError if the hub is unreachable or lists other content than was published.
    """
    listed = {**copy.listed("annotations"), **copy.listed("trajectories")}
    listed = {name: file for name, file in listed.items() if name.endswith(".parquet")}
    if not listed:
        raise UserError(f"{copy.address} has no Parquet files at revision {copy.revision}")
    if copy.revision == REVISION and listed != FILES:
        name = min(n for n in {*listed, *FILES} if listed.get(n) != FILES.get(n))
        raise UserError(
            f"{copy.address}: lists {name} as {listed.get(name)}, where {FILES.get(name)} was "
            "published under this revision: the hub gives other data; set HF_ENDPOINT to another"
        )
    for name in sorted(listed):
        whole = copy.folder / name
        text = text_of(whole)
        if images or whole.is_file() or not name.startswith("trajectories/"):
            if copy.get(name) is None:
                raise UserError(f"{copy.address} has no {name} at revision {copy.revision}")
            text.unlink(missing_ok=True)
        else:
            copy.text_columns(name, text, SCREENSHOTS)
