"""Read users' JSON files within limits and with one-sentence errors; write files."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from trajudge.rules.limits import InvalidValue, bounded_json
from trajudge.util import jsonl as python_json
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder, UnsafeFile, read_regular, save_bytes, utf8

MAX_BYTES = 512 * 2**20
Decoded = TypeVar("Decoded")


def template_of(template: int | str | None, task: int | str) -> str:
    """Return the template by which statistics group a task; a task without one is its own
    template."""
    return f"task {task}" if template is None else str(template)


def read_bytes(path: Path, max_bytes: int = MAX_BYTES, folder: DataFolder | None = None) -> bytes:
    """Return the bytes of a text file without a byte-order mark. Raises UserError as
    ``read_data`` does, and for UTF-16."""
    return utf8(read_data(path, max_bytes, folder), path)


def read_data(path: Path, max_bytes: int = MAX_BYTES, folder: DataFolder | None = None) -> bytes:
    """Return the file's bytes.

    Raises UserError if it does not exist, is too large, is not a regular file or is outside
    ``folder``.
    """
    try:
        return folder.read(path, max_bytes) if folder else read_regular(path, max_bytes)
    except UnsafeFile as error:
        raise UserError(f"{path}: {error.strerror}: name another file") from error
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: name a readable file") from error


@lru_cache(maxsize=64)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def decode(data: bytes, kind: type[Decoded] | Any, source: object) -> Any:
    """Decode JSON as ``kind``. Raises UserError with ``source`` and the field."""
    try:
        # In a rule or an answer NaN must not become null, which has another meaning.
        return python_json.decode(data, _decoder(cast(Any, kind)), numbers=False)
    except RecursionError as error:
        raise UserError(f"{source}: nested too deeply to be read: flatten the file") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{source}: {error}: correct the file (see rules/schema.md)") from error


_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def json_value(text: str) -> Any:
    """Decode JSON, including output of Python's ``json`` that is not standard: a lone surrogate
    becomes U+FFFD, NaN and Infinity become null.

    Raises ValueError for other text, RecursionError.
    """
    try:
        return _ANY.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        # Both surrogates of a character may be escaped separately.
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return python_json.decode(whole.encode(), _ANY)


def json_or_text(text: str) -> Any:
    """Return the value of a JSON text within the limits, and any other text unchanged."""
    try:
        value = json_value(text)
        bounded_json(value)
    except (ValueError, RecursionError, InvalidValue):
        return text
    return value


def json_text(value: object, most: int = 60) -> str:
    """Return a value as JSON, truncated to a number of characters."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= most else f"{text[: most - 1]}…"


class TaskFlaw(msgspec.Struct, frozen=True):
    """Why a task of a file cannot be read: its field, the field's value, and one clause on the
    error. The other tasks are read."""

    field: str
    problem: str
    value: Any = None

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}" if self.field else self.problem


_NAMED = re.compile(r"(?:unknown|required) field `([^`]*)`")
_PLACE = re.compile(r" - at `\$\.?([^`]*)`\Z")


def flaw_of(error: Exception, data: bytes) -> tuple[TaskFlaw, dict[str, Any]]:
    """Return the flaw that a decoder reports in a record, and the record ({} if it is not an
    object)."""
    try:
        record = msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return TaskFlaw("", "cannot be read"), {}
    if not isinstance(record, dict):
        return TaskFlaw("", f"is {json_text(record)}, not an object"), {}
    problem = str(error)
    match = _PLACE.search(problem)
    field = match[1] if match else ""
    problem = _PLACE.sub("", problem)
    if named := _NAMED.search(problem):
        field = f"{field}.{named[1]}" if field else named[1]
    value: Any = record
    for name in re.findall(r"[^.\[\]]+", field):
        if isinstance(value, dict):
            value = value.get(name)
        else:
            known = isinstance(value, list) and name.isdecimal() and int(name) < len(value)
            value = value[int(name)] if known else None
    return TaskFlaw(field, problem[:1].lower() + problem[1:], value if field else None), record


def task_id_of(record: dict[str, Any], position: int) -> int | str:
    """Return the id of a task that cannot be read, or its position in the file if it has none."""
    named = record.get("task_id")
    if isinstance(named, int | str) and not isinstance(named, bool):
        return named
    return f"number {position}"


def first(values: Sequence[object], most: int = 8) -> str:
    """List the first few values, and the number of the others."""
    listed = ", ".join(map(str, values[:most]))
    return f"{listed} and {len(values) - most} more" if len(values) > most else listed


def text_of(value: object) -> str:
    """Return a text unchanged, any other value as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def brief(value: object, most: int = 60) -> str:
    """Return a value's text, truncated to a number of characters."""
    text = text_of(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON. Raises UserError if the file cannot be written."""
    write_text(path, msgspec.json.format(msgspec.json.encode(value)).decode() + "\n")


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write rows as CSV with a header. Raises UserError if the file cannot be written."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write_text(path, text.getvalue())


def write_text(path: Path, text: str) -> None:
    """Write text in UTF-8, with its folders. Raises UserError if the file cannot be written."""
    save_bytes(path, text.encode("utf-8", errors="surrogatepass"))
