"""Errors of pydantic as messages for the user."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, SecretStr, ValidationError

from trajudge.util.errors import UserError
from trajudge.util.files import read_text, read_utf8

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

_NO_JSON = "Invalid JSON: "


class RefusedValue(NamedTuple):
    """The first invalid field ("": the whole record), its value, and the reason."""

    field: str
    value: Any
    why: str
    missing: bool


def refused_value(error: ValidationError) -> RefusedValue:
    """Return the first of pydantic's errors."""
    first = error.errors()[0]
    why = first["msg"].removeprefix("Value error, ")
    if isinstance(first["input"], float) and isnan(first["input"]):  # beyond every limit
        why = "it is no number"
    field = ".".join(map(str, first["loc"]))
    return RefusedValue(field, first["input"], why, first["type"] == "missing")


def first_error(error: ValidationError, whole: str) -> str:
    """Return ``FIELD is VALUE (WHY)`` for the first invalid field; ``whole`` replaces the field
    if the whole record is invalid, or not JSON."""
    refused = refused_value(error)
    if refused.missing:
        return f"{refused.field} is missing"
    if refused.why.startswith(_NO_JSON):
        return f"{whole} is not JSON ({refused.why.removeprefix(_NO_JSON)})"
    return f"{refused.field or whole} is {refused.value!r:.80} ({refused.why})"


def read_record(path: Path, record: type[M], hint: str = "") -> M:
    """Read a JSON file as a record.

    Raises UserError with file, field and value, and the ``hint``.
    """
    mend = f": {hint}" if hint else ""
    try:
        return record.model_validate_json(read_utf8(path))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error}){mend}") from error
    except ValidationError as error:
        raise UserError(f"{path}: {first_error(error, 'the file')}{mend}") from None


def read_records(
    path: Path, parse: Callable[[bytes], T], *, missing: str, damaged: str
) -> list[tuple[int, T]]:
    """Parse every non-empty line of a file written by trajudge; return each with its number, from
    1. A line ends at ``\n`` only, whatever characters its texts contain.

    Raises UserError with the file's name, for one that cannot be read with the fix (``missing``),
    and for a line that ``parse`` refuses (ValueError) with its number (``damaged``).
    """
    try:
        lines = read_utf8(path).split(b"\n")
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error}): {missing}") from error
    records = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            records.append((number, parse(line)))
        except ValidationError as error:
            wrong = first_error(error, "the line")
            raise UserError(f"{path}, line {number}: {wrong}: {damaged}") from None
        except ValueError as error:
            wrong = f"the line is not JSON ({error})"
            raise UserError(f"{path}, line {number}: {wrong}: {damaged}") from None
    return records


def read_token(file: Path) -> SecretStr:
    """Read the token of ``--token-file``. Raises UserError for a short one."""
    try:
        text = read_text(file).strip()
    except OSError as error:
        raise UserError(f"--token-file {file}: cannot be read ({error.strerror})") from error
    if len(text) < 16:
        raise UserError(f"--token-file {file}: its token has fewer than 16 characters")
    return SecretStr(text)
