"""The records of message logs: which files they stand in, and how a file is divided into them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from trajudge.trajectories.loaders.common import detection
from trajudge.trajectories.loaders.common.lazy_json import check_structures
from trajudge.trajectories.loaders.files import Damaged, decode, name_of, readable, reason
from trajudge.trajectories.loaders.messages.conversation import (
    find_records,
    is_asking,
    is_entry,
    is_given,
    paired,
)
from trajudge.trajectories.loaders.messages.exchanges import goes_on
from trajudge.trajectories.model import Unreadable
from trajudge.trajectories.util import python_json
from trajudge.trajectories.util.jsonl import Line, read_lines
from trajudge.trajectories.util.safe_files import DataFolder

LEVELS = 1
_SUFFIXES = (".json", ".jsonl")
# Names that tell nothing of the task: the folder has its name.
_NAMELESS = {"messages", "conversation", "trajectory", "history", "log", "responses", "chat"}
# Formats of others whose files look alike.
_OTHERS = {"interact_messages.json", "trajectories.jsonl", "judgments.jsonl"}
_CONTAINER = re.compile(rb'"(?:messages|input|output|conversation|trajectory)"\s*:\s*\[')
_ENTRY = re.compile(
    rb'"(?:role|type)"\s*:\s*"(?:user|assistant|system|developer|tool|message|reasoning'
    rb'|function_call|computer_call)"'
)
# A log of inspect_ai holds messages, too.
_INSPECT = re.compile(rb'"eval"\s*:\s*\{')
_JSON: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


class LogRecord(NamedTuple):
    """A record with a conversation: its place for messages, its fields, and the task id and the
    agent of a record that names none."""

    place: str
    fields: Mapping[str, Any]
    task_id: str
    agent: str


def looks_like_log(file: Path) -> bool:
    """Tell by the first 64 KiB whether the file holds a conversation."""
    if file.suffix not in _SUFFIXES or file.name in _OTHERS:
        return False
    head = detection.head(file).lstrip(b"\xef\xbb\xbf \r\n\t")
    is_listed = head.startswith(b"[") or (file.suffix == ".jsonl" and _ENTRY.search(head[:200]))
    is_log = (is_listed or _CONTAINER.search(head)) and _ENTRY.search(head)
    return bool(is_log) and not _INSPECT.search(head)


def log_files(path: Path) -> list[Path]:
    """List the file itself, or the JSON files in the folder and in those inside it."""
    if path.is_file():
        return [path.resolve()]
    inside = detection.files(path, "*.json*", levels=LEVELS)
    return [file for file in inside if file.suffix in _SUFFIXES and file.name not in _OTHERS]


def read_records(file: Path, root: DataFolder) -> Iterator[LogRecord | Unreadable]:
    """Yield the records of a file; what is none is Unreadable. Raises UserError for a file that
    cannot be opened."""
    if file.suffix == ".jsonl":
        yield from _records_of_lines(file, root)
        return
    try:
        records = find_records(_decoded(bytes(decode(root, file, msgspec.Raw))))
    except (ValueError, RecursionError) as error:
        yield Unreadable(readable(str(file)), reason(error))
        return
    if not records:
        yield Unreadable(readable(str(file)), f"{file.name} holds no conversation")
    for number, fields in enumerate(records, 1):
        yield _record(file, fields, number if len(records) > 1 else None)


def _records_of_lines(file: Path, root: DataFolder) -> Iterator[LogRecord | Unreadable]:
    """Yield one record a line, or a single one where the lines are messages."""
    lines = (_value(file, line) for line in read_lines(file, folder=root))
    first = next(lines, None)
    if is_entry(first):
        rest = list(lines)
        yield from (one for one in rest if isinstance(one, Unreadable))
        entries = [first, *(one for one in rest if not isinstance(one, Unreadable))]
        yield _record(file, {"messages": entries}, None)
        return
    for number, value in _chains(chain([first] if first is not None else [], lines)):
        if isinstance(value, _Responses):
            alone = len(value.objects) == 1
            for fields in find_records(value.objects[0] if alone else value.objects):
                yield _record(file, fields, number)
        elif isinstance(value, Unreadable):
            yield value
        else:
            yield Unreadable(f"{readable(str(file))}:{number}", "the line is no object")


class _Responses(NamedTuple):
    """Responses that name the one before as theirs, or requests and their responses; most objects
    stand alone."""

    objects: list[dict[str, Any]]


def _chains(values: Iterable[object]) -> Iterator[tuple[int, object]]:
    """Yield the values with their numbers, from 1; objects that belong together as one."""
    number, held = 0, list[dict[str, Any]]()
    for at, value in enumerate(values, 1):
        if isinstance(value, dict) and held and _belongs(value, held):
            held.append(value)
            continue
        if held:
            yield number, _Responses(held)
        number, held = at, [value] if isinstance(value, dict) else []
        if not held:
            yield at, value
    if held:
        yield number, _Responses(held)


def _belongs(value: dict[str, Any], held: list[dict[str, Any]]) -> bool:
    one, last = next(paired([value])), next(paired(held[-1:]))
    before = one.get("previous_response_id")
    is_next = bool(before and before == last.get("id"))
    return is_next or (is_asking(last) and is_given(one)) or goes_on(held, value)


def _value(file: Path, line: Line) -> object:
    place = f"{readable(str(file))}:{line.number}"
    if line.problem:
        return Unreadable(place, line.problem)
    try:
        return _decoded(line.data)
    except Damaged as error:
        return Unreadable(place, str(error))
    except (ValueError, RecursionError) as error:
        return Unreadable(place, f"the line is no JSON: {reason(error)}")


def _decoded(content: bytes) -> object:
    """Decode JSON of a bounded number of objects. Raises Damaged, ValueError, RecursionError."""
    check_structures(content)
    return python_json.decode(content, _JSON)


def _record(file: Path, fields: Mapping[str, Any], number: int | None) -> LogRecord:
    folder = file.parent
    name, agent = readable(file.stem), name_of(folder)
    if name.lower() in _NAMELESS:
        name, agent = agent, name_of(folder.resolve().parent)
    suffix = "" if number is None else f"-{number}"
    place = readable(str(file)) + ("" if number is None else f":{number}")
    return LogRecord(place, fields, f"{name}{suffix}", agent)
