"""Read tables of others: CSV with any delimiter, JSON, JSON lines, Parquet, data frames.

``read_rows`` returns a ForeignTable of texts, ``choose_column`` selects a column by its usual names
and ``named_column`` the one that the user named, and ``read_verdict`` reads yes and no. Other cells
are returned with the reason, for the caller to count: they are never a no.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import orjson

from trajudge.util.errors import UserError, did_you_mean
from trajudge.util.files import UnsafeFile, open_regular, read_regular, text_of
from trajudge.util.jsonl import decode, read_lines
from trajudge.util.terminal import count_of, listed

_MAX_BYTES = 2**30
_DELIMITERS = ",;\t|"
_LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".jsonl.zst", ".ndjson.gz", ".ndjson.zst")
_TRIED_ROWS = 50  # of a CSV file, with each delimiter
_ANY = msgspec.json.Decoder()

TASK_NAMES = (
    *("task", "task_id", "task_name", "question", "question_id", "goal", "prompt_id"),
    *("intent", "instruction", "scenario", "problem", "problem_id", "item", "prompt"),
)
"""What the column of a row's task is known by, in this order."""

csv.field_size_limit(2**27)  # cells with reasoning or complete pages may exceed 128 KiB


@dataclass(frozen=True)
class ForeignTable:
    """A table of texts, "" for an empty cell: ``rows`` have a cell for each of ``columns``.

    ``source`` is the file's name; ``lines`` are the rows' lines if the file has lines.
    """

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    source: str
    lines: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> list[str]:
        """Return the cells of a column, one per row."""
        row_label = self.columns.index(name)
        return [row[row_label] for row in self.rows]

    def at(self, row: int) -> str:
        """Name a row, counted from 0: "labels.csv, line 7"."""
        return f"{self.source}, {self.row_label(row)}"

    def row_label(self, row: int) -> str:
        """Name a row within the table: "line 7", or "row 6" where a file has no lines."""
        return f"line {self.lines[row]}" if self.lines else f"row {row + 1}"

    def describe(self, words: Mapping[str, bool] | None = None) -> list[str]:
        """Describe the possible role of every column: "'ok': yes or no (12 yes, 8 no)"."""
        return [f"{name!r}: {_guess(self.column(name), words)}" for name in self.columns]


def read_rows(table: Any, max_bytes: int = _MAX_BYTES) -> ForeignTable:
    """Read a table: the path of a CSV, JSON, JSON lines or Parquet file, a data frame (pandas,
    polars, Arrow) or an iterable of mappings.

    A CSV file may have any of the delimiters comma, semicolon, tab and bar, and a byte-order mark.
    Nested records become columns with dotted names (``judge.verdict``). Raises UserError for a file
    that cannot be read, and for a row with more cells than the header has names.
    """
    if not isinstance(table, str | Path):
        return _of_records(_records_of(table), "the table", ())
    path = Path(table)
    try:
        if path.name.lower().endswith(_LINES):
            return _of_json_lines(path)
        with open_regular(path) as file:
            magic = file.read(4)
        if magic == b"PAR1":
            return _of_parquet(path)
        if magic[:2] == b"PK":
            raise UserError(f"{path}: is a workbook or an archive: save its table as CSV (UTF-8)")
        content = read_regular(path, max_bytes)
    except UnsafeFile as error:
        raise UserError(f"{path}: {error.strerror}: name a file with a table") from error
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read ({error.strerror}): name a file with a table"
        ) from (error)
    text = text_of(content, path)
    if text.lstrip()[:1] not in ("{", "["):
        return _of_csv(path, text)
    try:
        value = decode(text.encode(), _ANY)
    except (ValueError, RecursionError):
        return _of_json_lines(path)
    return _of_records(_records_in(value, path), str(path), ())


def _of_csv(path: Path, text: str) -> ForeignTable:
    tried = {sign: _first_rows(text, sign) for sign in _DELIMITERS}
    delimiter = max(tried, key=lambda sign: _rating(*tried[sign]))
    if not text.strip():
        raise UserError(f"{path}: holds no table: begin it with a line of column names")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    names: list[str] | None = None
    rows, lines = list[tuple[str, ...]](), list[int]()
    begins = 1
    try:
        for cells in reader:
            number, begins = begins, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if names is None:
                names = _column_names(path, cells)
                continue
            if any(cell.strip() for cell in cells[len(names) :]):
                raise UserError(
                    f"{path}, line {number}: has {len(cells)} cells, and the header "
                    f"{count_of(len(names), 'name')}: put cells that hold {delimiter!r} in quotes"
                )
            kept = [cell.strip() for cell in cells[: len(names)]]
            rows.append((*kept, *[""] * (len(names) - len(kept))))
            lines.append(number)
    except csv.Error as error:
        raise UserError(f"{path}, line {begins}: is no line of CSV ({error})") from error
    return ForeignTable(tuple(names or ()), rows, str(path), lines)


def _first_rows(text: str, delimiter: str) -> tuple[list[list[str]], bool]:
    """Read the first rows with one delimiter; return them, and whether they are valid CSV so
    far."""
    rows: list[list[str]] = []
    try:
        for cells in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True):
            if any(cell.strip() for cell in cells):
                rows.append(cells)
            if len(rows) == _TRIED_ROWS:
                break
    except csv.Error:
        return rows, False
    return rows, True


def _rating(rows: Sequence[Sequence[str]], is_csv: bool) -> tuple[bool, float, int]:
    """Rate a delimiter: whether it gives valid CSV, the share of rows as long as the header
    (half of it for a header of one name), and the number of names."""
    if not rows:
        return is_csv, 0.0, 0
    share = sum(len(row) == len(rows[0]) for row in rows) / len(rows)
    return is_csv, share if len(rows[0]) > 1 else share / 2, len(rows[0])


def _column_names(path: Path, cells: Sequence[str]) -> list[str]:
    names = [cell.strip() or f"column {row_label}" for row_label, cell in enumerate(cells, start=1)]
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise UserError(
            f"{path}: has {count} columns named {name!r}: rename them in its first line"
        )
    return names


def _of_json_lines(path: Path) -> ForeignTable:
    records, numbers = list[Mapping[str, Any]](), list[int]()
    for line in read_lines(path):
        try:
            record = None if line.problem else decode(line.data, _ANY)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            why = line.problem or "is no JSON object"
            raise UserError(f"{path}, line {line.number}: {why}: correct or remove the line")
        records.append(record)
        numbers.append(line.number)
    return _of_records(records, str(path), numbers)


def _of_parquet(path: Path) -> ForeignTable:
    import pyarrow as pa  # noqa: PLC0415 - slow to import
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with open_regular(path) as file:
            records = pq.read_table(file).to_pylist()
    except (ValueError, OverflowError, pa.ArrowException, OSError) as error:
        why = " ".join(str(error).split())[:200]
        raise UserError(f"{path}: cannot be read as Parquet ({why}): write it again") from error
    return _of_records(records, str(path), ())


def _records_in(value: Any, path: Path) -> Sequence[Mapping[str, Any]]:
    """Return the records in a JSON document: a list of objects, or an object with one such list."""
    lists = [value]
    if isinstance(value, dict):
        lists = [inner for inner in value.values() if _holds_records(inner)] or [[value]]
    if len(lists) == 1 and _holds_records(lists[0]):
        return lists[0]  # type: ignore[no-any-return]
    raise UserError(
        f"{path}: holds no list of JSON objects, one a row: write it as JSON lines or CSV"
    )


def _holds_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def _records_of(frame: Any) -> Sequence[Mapping[str, Any]]:
    """Convert a data frame, or any iterable of mappings, to records. Raises UserError."""
    if hasattr(frame, "to_pylist"):  # Arrow
        return frame.to_pylist()  # type: ignore[no-any-return]
    if hasattr(frame, "to_dicts"):  # polars
        return frame.to_dicts()  # type: ignore[no-any-return]
    if hasattr(frame, "iterrows"):  # pandas, whose index may hold the names of the runs
        named = [name for name in frame.index.names if name is not None]
        return (frame.reset_index() if named else frame).to_dict("records")  # type: ignore[no-any-return]
    records = list(frame) if isinstance(frame, Iterable) else [frame]
    if wrong := next((one for one in records if not isinstance(one, Mapping)), None):
        raise UserError(
            f"a table is a path, a data frame or a list of mappings, not of {type(wrong).__name__}"
        )
    return records


def _of_records(
    records: Iterable[Mapping[str, Any]], source: str, lines: Sequence[int]
) -> ForeignTable:
    flat = [dict(_flattened(record, "")) for record in records]
    columns = tuple({name: None for record in flat for name in record})
    rows = [tuple(record.get(name, "") for name in columns) for record in flat]
    if not columns:
        raise UserError(f"{source}: holds no table: it has no rows")
    return ForeignTable(columns, rows, source, lines)


def _flattened(record: Mapping[str, Any], above: str) -> Iterator[tuple[str, str]]:
    for name, value in record.items():
        if isinstance(value, Mapping) and value:
            yield from _flattened(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", _text(value)


def _text(value: Any) -> str:
    """Convert a value to a cell: "" for None and the missing values of pandas, integers without
    a fraction (pandas writes the column 1, 0, missing as 1.0, 0.0, nan)."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list | tuple | Mapping):
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    text = str(value)
    if text in ("None", "nan", "NaN", "NaT", "<NA>"):
        return ""
    if text in ("True", "False"):
        return text.lower()
    return text.removesuffix(".0") if re.fullmatch(r"-?\d+\.0", text) else text


_YES = """
    1 yes y true t pass passed ok okay correct right success successful succeeded solved accept
    accepted valid complete completed achieved fulfilled positive resolved
    ja wahr richtig korrekt erfolg erfolgreich bestanden gelöst erfüllt erreicht
    oui vrai réussi réussite sí si verdadero correcto éxito sim verdadeiro sì vero
    ✓ ✔ ✅ 👍
"""
_NO = """
    0 no n false f fail fails failed failure incorrect wrong unsuccessful unsolved reject rejected
    invalid incomplete unfulfilled negative unresolved
    nein falsch inkorrekt fehlschlag fehlgeschlagen gescheitert misserfolg erfolglos durchgefallen
    ungelöst
    non faux échec échoué falso incorrecto fracaso não
    ✗ ✘ ❌ 👎
"""
_NOT = "not", "nicht", "pas"

VERDICT_WORDS: Mapping[str, bool] = {
    **dict.fromkeys(_YES.split(), True),
    **dict.fromkeys(_NO.split(), False),
    **{f"{no} {word}": False for no in _NOT for word in _YES.split() if word.isalpha()},
}
"""What is read as yes and as no: English, German, some French, Spanish, Portuguese and Italian."""

UNSURE_WORDS = frozenset(
    line.strip()
    for line in """
    unsure, unclear, unknown, undecided, uncertain, not sure, don't know, skip, skipped, tbd, todo
    can't tell, cannot tell, can't say, cannot say, n/a, na, nan, none, null, ?, -, –, —
    unsicher, unklar, unbekannt, weiß nicht
    """.replace("\n", ",").split(",")
)
"""What people write where they decided nothing."""


class VerdictReading(NamedTuple):
    """A verdict, or None with the reason: an "empty" cell, "unsure" for a word of indecision,
    "unreadable" for anything else."""

    verdict: bool | None
    reason: Literal["", "empty", "unsure", "unreadable"] = ""


def read_verdict(text: str, words: Mapping[str, bool] | None = None) -> VerdictReading:
    """Read yes or no, ignoring case, by the words of ``words`` (default: VERDICT_WORDS).

    In a column with numbers other than 0 and 1 (``holds_scores``) 0 and 1 are not verdicts, either.
    """
    word = _word(text)
    if not word:
        return VerdictReading(None, "empty")
    verdict = (VERDICT_WORDS if words is None else words).get(word)
    if verdict is not None:
        return VerdictReading(verdict)
    return VerdictReading(None, "unsure" if word in UNSURE_WORDS else "unreadable")


def _word(text: str) -> str:
    """Normalise a word of ``VERDICT_WORDS``: "Not_Successful." is "not successful", 1.0 is 1."""
    word = " ".join(text.casefold().replace("_", " ").replace("’", "'").split()).rstrip(".!")
    return word.removesuffix(".0") if word in ("1.0", "0.0") else word


def holds_scores(cells: Iterable[str]) -> bool:
    """Return True if a cell is a number other than 0 and 1: a score, or a point of a scale, on
    which 1 is not a yes."""
    return any(_word(cell) not in ("0", "1") and read_number(cell) is not None for cell in cells)


def read_number(cell: str) -> float | None:
    """Parse a finite number; None for anything else."""
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if isfinite(number) else None


def parse_words(text: str | None, option: str = "--words") -> Mapping[str, bool]:
    """Parse the user's words, ``gut=yes,schlecht=no``, and add them to VERDICT_WORDS. Raises
    UserError."""
    words = dict(VERDICT_WORDS)
    for word, meanings in _pairs(text, option, "WORD=yes or WORD=no").items():
        verdict = read_verdict(meanings[-1]).verdict
        if verdict is None:
            raise UserError(f"{option} {word}={meanings[-1]}: write it as {word}=yes or {word}=no")
        words[_word(word)] = verdict
    return words


def parse_columns(
    text: str | None, roles: Sequence[str], option: str = "--columns"
) -> dict[str, list[str]]:
    """Parse ``judge=verdict,label=human``, the user's columns for ``roles``; a role may have
    several. Raises UserError for another role."""
    given = _pairs(text, option, "ROLE=COLUMN")
    for role in given:
        if role not in roles:
            raise UserError(
                f"{option} {role}={given[role][0]}: no role {role!r}"
                f"{did_you_mean(role, roles) or ':'} use some of {', '.join(roles)}"
            )
    return given


def _pairs(text: str | None, option: str, form: str) -> dict[str, list[str]]:
    pairs: dict[str, list[str]] = {}
    for part in filter(None, (part.strip() for part in (text or "").split(","))):
        name, equals, value = (each.strip() for each in part.partition("="))
        if not (name and equals and value):
            raise UserError(f"{option} {part}: write it as {form}, separated by commas")
        pairs.setdefault(name, []).append(value)
    return pairs


def choose_column(
    table: ForeignTable,
    candidates: Sequence[str],
    *,
    taken: Iterable[str] = (),
) -> str | None:
    """Return the first of ``candidates`` that is a column and not in ``taken``; None without one.

    Case and punctuation are ignored (``taskID`` is ``task_id``). A dotted name is matched as a
    whole, then by its last part, then by any other.
    """
    left = [name for name in table.columns if name not in set(taken)]
    whole = {_plain(name): name for name in reversed(left)}
    last = {_plain(name.rpartition(".")[2]): name for name in reversed(left)}
    above = {_plain(part): name for name in reversed(left) for part in name.split(".")[:-1]}
    for names in (whole, last, above):
        for candidate in candidates:
            if (name := names.get(_plain(candidate))) is not None:
                return name
    return None


def named_column(table: ForeignTable, name: str, given: str) -> str:
    """Return the column that the user named; case and punctuation are ignored if only one column
    matches. Raises UserError, which begins with ``given``, for a missing one."""
    if name in table.columns:
        return name
    close = [column for column in table.columns if _plain(column) == _plain(name)]
    if len(close) == 1:
        return close[0]
    raise UserError(
        f"{given}: {table.source} has no such column{did_you_mean(name, table.columns)}: it has "
        f"{listed([repr(column) for column in table.columns], _MOST_COLUMNS)}"
    )


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())


def missing_column(
    table: ForeignTable,
    role: str,
    candidates: Sequence[str],
    words: Mapping[str, bool] | None = None,
    option: str = "--columns",
) -> UserError:
    """Return the error for a role without a column, with the possible roles of all columns."""
    could_be = "; ".join(table.describe(words)[:_MOST_COLUMNS])
    more = len(table.columns) - _MOST_COLUMNS
    return UserError(
        f"{table.source}: no column for {role} (looked for {', '.join(candidates)}): name one with "
        f"{option} {role}=COLUMN. It has {could_be}" + (f"; and {more} more" if more > 0 else "")
    )


_MOST_COLUMNS = 12
_FEW_WORDS = 5


def _guess(cells: Sequence[str], words: Mapping[str, bool] | None) -> str:
    """Describe the cells of a column in a few words."""
    filled = [cell for cell in cells if cell]
    if not filled:
        return "empty"
    numbers = [number for cell in filled if (number := read_number(cell)) is not None]
    different = list(dict.fromkeys(filled))
    if len(numbers) == len(filled) and holds_scores(different):
        whole = all(number.is_integer() for number in numbers)
        if whole and len(different) > len(filled) / 2:
            return f"{count_of(len(different), 'different number')}, as ids are"
        return f"numbers from {min(numbers):g} to {max(numbers):g}"
    counts = Counter(read_verdict(cell, words) for cell in filled)
    yes, no = counts[VerdictReading(True)], counts[VerdictReading(False)]
    if yes + no >= len(filled) / 2:
        others = len(filled) - yes - no
        return f"yes or no ({yes} yes, {no} no" + (f", {others} neither)" if others else ")")
    if len(different) <= min(_FEW_WORDS, len(filled) / 2):
        return f"{count_of(len(different), 'word')} ({', '.join(one[:30] for one in different)})"
    return f"{count_of(len(different), 'different text')}, such as {different[0][:30]!r}"
