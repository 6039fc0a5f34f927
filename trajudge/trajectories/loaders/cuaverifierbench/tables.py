"""CUAVerifierBench's Parquet files: which there are, and the columns of them that are asked for.

The two configurations lie in the folders ``trajectories`` and ``annotations``, one or more files a
split (``internal-00000-of-00002.parquet``). ``NAME.text.parquet`` is what a fetch without images
leaves of ``NAME.parquet``: all columns but the screenshots.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import DataFolder, UnsafeFile, open_regular

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
    """A Parquet file of one split; ``data`` is the folder that it must not lead out of."""

    path: Path
    split: str
    data: DataFolder | None

    @property
    def has_images(self) -> bool:
        """Whether it may hold the screenshots, not only the text."""
        return not self.path.name.endswith(TEXT_SUFFIX)


def table_files(path: Path, config: str, marks: Sequence[bytes]) -> list[TableFile]:
    """List the Parquet files at the path that hold columns of these names, by name.

    Looked at are the path itself, the files of the folder, and those of its folder ``config``. A
    file without images is left out where the whole one lies beside it.
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
    whole = {file.path for file in files if file.has_images}
    return [file for file in files if file.has_images or whole_of(file.path) not in whole]


def whole_of(path: Path) -> Path:
    """Return the name of the whole file that a file without images was made of."""
    return path.with_name(path.name.removesuffix(TEXT_SUFFIX) + SUFFIX)


def split_of(path: Path) -> str:
    """Name the split of a file: its name up to the numbers of its part."""
    stem = path.name.removesuffix(TEXT_SUFFIX).removesuffix(SUFFIX)
    match = _SPLIT.fullmatch(stem)
    return match[1] if match else stem


def has_columns(path: Path, names: Sequence[bytes]) -> bool:
    """Tell whether the file is Parquet whose schema names the columns; reads its footer's first
    64 KiB at most, where the schema stands."""
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
                    yield _pictures(batch.column(0).to_pylist()[0])


def _pictures(value: object) -> list[dict[str, Any]]:
    pictures = value if isinstance(value, list) else []
    return [picture if isinstance(picture, dict) else {} for picture in pictures]


def _check_size(file: TableFile, parquet: ParquetFile, columns: Sequence[str]) -> None:
    """Refuse a file whose columns declare more text than any real one has."""
    size = 0
    for group in range(parquet.num_row_groups):
        parts = parquet.metadata.row_group(group)
        for place in range(parts.num_columns):
            part = parts.column(place)
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
