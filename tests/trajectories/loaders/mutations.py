"""What damaged and hostile files do to a loader: one thing is done to one file of a small folder
of a format (cut, flipped bytes, another type, endless nesting, a pipe, a link out, 10 GB of
nothing, ...), and the folder is loaded.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trajudge.trajectories.loaders import loader
from trajudge.trajectories.loaders._files import open_archive
from trajudge.trajectories.model import Trajectory, Unreadable
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder

SPARSE = 10 * 2**30
_MARK = "@@deep@@"
_DEEP = "[" * 100_000 + "]" * 100_000
_READ = (".json", ".jsonl", ".gz", ".pkl", ".eval", ".html", ".parquet")
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**63, 10**400, 1e308, float("nan"), float("inf"), float("-inf")),
    *("", " ", "\ud83d", "\udc00\ud83d", "\x00", "None", "../../etc/passwd", "x" * 100_000),
    *([], {}, [[]], [None], {"": {}}, {"\ud83d": []}),
)


class Outcome(NamedTuple):
    """What one load gave: how many were loaded, how many named as unreadable, and the sentence of
    a load that was refused as a whole."""

    mutation: str
    loaded: int
    unreadable: int
    refused: str
    seconds: float


def run(kind: str, base: Path, work: Path, rng: np.random.Generator) -> Outcome:
    """Load a copy of ``base`` after one mutation. Whatever else is raised is a fault."""
    files = copied(base, work)
    return load(kind, base, work, mutate(files[rng.integers(len(files))], rng, work))


def copied(base: Path, work: Path) -> list[Path]:
    """Copy ``base`` into a new ``work`` and return the files that a loader may read."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(base, work / "data" / base.name)
    return sorted(p for p in (work / "data").rglob("*") if p.suffix in _READ)


def load(kind: str, base: Path, work: Path, name: str) -> Outcome:
    """Load the copy of ``base`` in ``work``, to which the mutation ``name`` was done."""
    loaded = unreadable = 0
    refused, began = "", time.process_time()
    try:
        for item in loader(kind).load(work / "data" / base.name, lambda key: True):
            loaded += isinstance(item, Trajectory)
            unreadable += isinstance(item, Unreadable)
            _check(item)
    except UserError as error:
        refused = str(error)
    return Outcome(name, loaded, unreadable, refused, time.process_time() - began)


def _check(item: Trajectory | Unreadable) -> None:
    if isinstance(item, Trajectory):
        json.dumps(item.model_dump(), ensure_ascii=False, default=str).encode()
    elif not (item.source and item.reason and "\n" not in item.reason):
        raise AssertionError(f"named without a reason: {item!r}")


def mutate(path: Path, rng: np.random.Generator, work: Path) -> str:
    """Does one thing to the file, and says which."""
    if path.suffix == ".eval" and zipfile.is_zipfile(path) and rng.random() < 0.7:
        return _mutate_member(path, rng, work)
    groups: list[dict[str, Callable[..., None]]] = [PLACES, CONTENTS]
    if path.suffix in {".json", ".jsonl"}:
        groups += [STRUCTURES, STRUCTURES]
    group = groups[rng.integers(len(groups))]
    name = sorted(group)[rng.integers(len(group))]
    if group is PLACES:
        group[name](path, work)
    elif group is CONTENTS:
        zipped = path.suffix == ".gz" and rng.random() < 0.7
        content = gzip.decompress(path.read_bytes()) if zipped else path.read_bytes()
        changed = group[name](content, rng)
        path.write_bytes(gzip.compress(changed) if zipped else changed)  # type: ignore[arg-type]
    else:
        _restructure(path, rng, group[name])
    return f"{name} {path.name}"


def _mutate_member(path: Path, rng: np.random.Generator, work: Path) -> str:
    """Does one thing to the content of a member of a zip archive, and writes the archive again."""
    with open_archive(path, DataFolder(path.parent)) as opened:  # zipfile reads no Zstandard
        members = {name: opened.read(name) for name in opened}
    chosen = sorted(members)[rng.integers(len(members))]
    group: dict[str, Callable[..., Any]] = CONTENTS if rng.random() < 0.4 else STRUCTURES
    name = sorted(group)[rng.integers(len(group))]
    if group is CONTENTS:
        members[chosen] = group[name](members[chosen], rng)
    else:
        member = work / "member.json"
        member.write_bytes(members[chosen])
        _restructure(member, rng, group[name])
        members[chosen] = member.read_bytes()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, content in members.items():
            archive.writestr(each, content)
    return f"{name} in {path.name}"


def _replaced(path: Path, put: Callable[[Path], object]) -> None:
    path.unlink()
    put(path)


def _outside(path: Path, work: Path) -> None:
    target = work / "outside"
    path.rename(target)
    path.symlink_to(target)


PLACES: dict[str, Callable[..., None]] = {
    "missing": lambda path, work: path.unlink(),
    "empty": lambda path, work: path.write_bytes(b""),
    "pipe": lambda path, work: _replaced(path, os.mkfifo),
    "folder": lambda path, work: _replaced(path, Path.mkdir),
    "device": lambda path, work: _replaced(path, lambda p: p.symlink_to("/dev/zero")),
    "link to itself": lambda path, work: _replaced(path, lambda p: p.symlink_to(p.name)),
    "link out": _outside,
    "sparse": lambda path, work: os.truncate(path, SPARSE),
}


def _cut(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: rng.integers(len(content) + 1)]


def _flip(content: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(content)
    for place in rng.integers(len(changed), size=rng.integers(1, 20)) if changed else ():
        changed[place] = rng.integers(256)
    return bytes(changed)


def _inserted(what: bytes) -> Callable[[bytes, np.random.Generator], bytes]:
    def insert(content: bytes, rng: np.random.Generator) -> bytes:
        at = rng.integers(len(content) + 1)
        return content[:at] + what + content[at:]

    return insert


CONTENTS: dict[str, Callable[..., Any]] = {
    "cut": _cut,
    "flipped bytes": _flip,
    "random bytes": lambda content, rng: rng.bytes(1000),
    "a part twice": lambda content, rng: content + content[rng.integers(len(content)) :],
    "zeros at the end": lambda content, rng: _cut(content, rng) + bytes(10_000),
    "zero byte": _inserted(b"\0"),
    "bad UTF-8": _inserted(b"\xff\xc3"),
    "half a character": _inserted(rb"\ud83d"),
    "NaN": _inserted(b"NaN"),
    "byte-order mark": lambda content, rng: b"\xef\xbb\xbf" + content,
    "UTF-16": lambda content, rng: content.decode("latin-1").encode("utf-16"),
    "UTF-32": lambda content, rng: content.decode("latin-1").encode("utf-32"),
    "Latin-1 taken for UTF-8": lambda content, rng: content.decode("latin-1").encode(),
    "CRLF": lambda content, rng: content.replace(b"\n", b"\r\n"),
    "CR": lambda content, rng: content.replace(b"\n", b"\r"),
    "deep nesting": lambda content, rng: _DEEP.encode(),
    "deep nesting without an end": lambda content, rng: b'{"a":' * 100_000,
}


def _place(value: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """A container somewhere inside ``value`` and one of its keys or indices."""
    while True:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = keys[rng.integers(len(keys))]
        inner = value[key]
        if not (isinstance(inner, dict | list) and inner) or rng.random() < 0.3:
            return value, key
        value = inner


def _restructure(
    path: Path, rng: np.random.Generator, change: Callable[[Any, Any, np.random.Generator], None]
) -> None:
    """Changes one place of a JSON file, or of one line of a JSON Lines file."""
    parts = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    at = rng.integers(len(parts))
    value = json.loads(parts[at])
    change(*_place(value, rng), rng)
    parts[at] = json.dumps(value).replace(f'"{_MARK}"', _DEEP).replace(r"\u0000twice", "")
    path.write_text("\n".join(parts))


def _set(value: Callable[[np.random.Generator], Any]) -> Callable[..., None]:
    def change(container: Any, key: Any, rng: np.random.Generator) -> None:
        container[key] = value(rng)

    return change


def _remove(container: Any, key: Any, rng: np.random.Generator) -> None:
    del container[key]


def _add(container: Any, key: Any, rng: np.random.Generator) -> None:
    value = VALUES[rng.integers(len(VALUES))]
    if isinstance(container, dict):
        container["unheard of"] = value
    else:
        container.insert(key, value)


def _twice(container: Any, key: Any, rng: np.random.Generator) -> None:
    """The same name with two values (JSON allows it); an element of a list twice."""
    if isinstance(container, dict):
        container[f"{key}\x00twice"] = VALUES[rng.integers(len(VALUES))]
    else:
        container.insert(key, container[key])


STRUCTURES: dict[str, Callable[..., None]] = {
    "another type": _set(lambda rng: VALUES[rng.integers(len(VALUES))]),
    "another value": _set(lambda rng: VALUES[rng.integers(len(VALUES))]),
    "nested without end": _set(lambda rng: _MARK),
    "a name missing": _remove,
    "a name too many": _add,
    "a name twice": _twice,
}
