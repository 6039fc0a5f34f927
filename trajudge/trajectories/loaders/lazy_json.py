"""JSON decoded only as far as it is asked for, so that a field of a wrong type or size costs no
more than itself.

``Raw`` is a piece of a file that was checked to be JSON and not built into objects: a field that
nobody reads takes no memory, whatever it holds.
"""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from trajudge.trajectories.loaders.files import MAX_JSON_BYTES, Damaged, decode, readable
from trajudge.trajectories.util import python_json
from trajudge.trajectories.util.safe_files import DataFolder

MAX_VALUE_BYTES = 4 * 2**20
MAX_SCALAR_BYTES = 1_000
# Each object or list takes some 400 bytes in memory, of three in the file.
MAX_STRUCTURES = 300_000
_OPENING = re.compile(rb'([{\[])|"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
NULL = Raw(b"null")
_OBJECT = msgspec.json.Decoder(dict[str, Raw])
_LIST = msgspec.json.Decoder(list[Raw])
_TEXT = msgspec.json.Decoder(str)
_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def read_object(root: DataFolder, path: Path, *, max_bytes: int = MAX_JSON_BYTES) -> dict[str, Raw]:
    """Read the fields of the JSON object in a file of the data. Raises Damaged."""
    return decode(root, path, dict[str, Raw], max_bytes=max_bytes)


def parse_object(content: bytes) -> dict[str, Raw]:
    """Return the fields of an object as Python writes it. Raises ValueError for anything else,
    RecursionError."""
    return python_json.decode(content, _OBJECT)


def fields(raw: Raw) -> dict[str, Raw]:
    """Return the fields of an object; none of anything else. Raises ValueError for bytes that are
    no text."""
    return _OBJECT.decode(raw) if _start(raw) == b"{" else {}


def elements(raw: Raw) -> list[Raw]:
    """Return the elements of a list; what is none is a list of one, null of none."""
    if _start(raw) == b"[":
        return _LIST.decode(raw)
    return [] if raw == NULL else [raw]


def string(raw: Raw) -> str | None:
    """Return a text without lone surrogates; None of anything else, and of blanks."""
    text = whole_string(raw)
    return readable(text) if text and text.strip() else None


def whole_string(raw: Raw) -> str | None:
    """Return a text as it is, whatever its length; None of anything else."""
    text: str | None = python_json.decode(bytes(raw), _TEXT) if _start(raw) == b'"' else None
    return text


def value(raw: Raw) -> Any:
    """Decode a value. Raises Damaged for one of more than 4 MiB, which could take many times that
    in memory."""
    if len(memoryview(raw)) > MAX_VALUE_BYTES:
        raise Damaged(f"one of its values is larger than {MAX_VALUE_BYTES // 2**20} MiB")
    return python_json.decode(bytes(raw), _ANY)


def decoded(raw: Raw) -> Any:
    """Decode a value for a reader of values: a text whatever its length, anything else as
    ``value``."""
    text = whole_string(raw)
    return value(raw) if text is None else text


def check_structures(content: bytes) -> None:
    """Raise Damaged for JSON of more than 300,000 objects and lists, whatever its texts hold."""
    if content.count(b"{") + content.count(b"[") <= MAX_STRUCTURES:
        return
    openings = (match for match in _OPENING.finditer(content) if match[1])
    if next(islice(openings, MAX_STRUCTURES, None), None):
        raise Damaged(f"it holds more than {MAX_STRUCTURES:,} objects and lists")


def scalar(raw: Raw) -> bool | int | float | str | None:
    """Return a number, a truth value or a short text; None of anything else."""
    if _start(raw) in (b"{", b"[") or len(memoryview(raw)) > MAX_SCALAR_BYTES:
        return None
    decoded = python_json.decode(bytes(raw), _ANY)
    return decoded if isinstance(decoded, bool | int | float | str) else None


def _start(raw: Raw) -> bytes:
    return bytes(memoryview(raw)[:1])
