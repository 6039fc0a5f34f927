"""Read traces: HAR files (plain, ``.gz``, Playwright's ``.zip``), Playwright traces, plain lists.

Of a HAR file of 25 MB most is the text of pages. It is passed over, not decoded: msgspec reads the
method, address and status of each entry, and keeps the rest as it stands until a check asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Raw, Struct

from trajudge.rules.har.flaws import Flaw, entries_of
from trajudge.rules.har.records import Entry, Resources
from trajudge.rules.har.unpacking import Unpacked, unpack
from trajudge.trajectories.util import python_json
from trajudge.trajectories.util.errors import UserError


class _Log(Struct):
    entries: tuple[Entry, ...]


class _Har(Struct):
    log: _Log


class _Line(Struct):
    type: str = ""
    snapshot: Raw = Raw(b"null")


class _RawHar(Struct):
    log: dict[str, Any]


_RAW_HAR = msgspec.json.Decoder(_RawHar)
_OBJECT = msgspec.json.Decoder(dict[str, Any])
_OBJECTS = msgspec.json.Decoder(list[dict[str, Any]])
_HAR = msgspec.json.Decoder(_Har)
_LINE = msgspec.json.Decoder(_Line)
_LIST = msgspec.json.Decoder(list[Raw])


Decoded = TypeVar("Decoded")


class RawRecording(NamedTuple):
    """A trace with everything that stands in it: the log's own fields, the entries, the bodies."""

    log: dict[str, Any]
    entries: list[Any]
    resources: Resources


class _Listed(Struct):
    entries: tuple[Raw, ...]


class _ListedHar(Struct):
    log: _Listed


_LISTED_HAR = msgspec.json.Decoder(_ListedHar)


class Recording(NamedTuple):
    """The entries of a trace, the bodies beside it, and what of it cannot be read."""

    entries: tuple[Entry, ...]
    resources: Resources
    flaws: tuple[Flaw, ...] = ()


def read_recording(path: Path) -> Recording:
    """Return the entries in a trace's file, or in the folder of a Playwright trace.

    Raises UserError, one sentence, for a file that is absent, cut off, malformed, too large when
    unpacked, or no trace.
    """
    return _decoded(path, _recording)


def _recording(unpacked: Unpacked) -> Recording:
    if unpacked.form == "har":
        return _of_har(unpacked)
    if unpacked.form == "list":
        items: Iterable[Raw] = _LIST.decode(unpacked.texts[0])
    else:
        lines = (line for text in unpacked.texts for line in text.splitlines())
        items = (Raw(line) for line in lines if line.strip())
    entries, flaws = typed_entries(items)
    return Recording(entries, unpacked.resources, flaws)


def _of_har(unpacked: Unpacked) -> Recording:
    try:
        return Recording(_HAR.decode(unpacked.texts[0]).log.entries, unpacked.resources)
    except msgspec.ValidationError:
        entries, flaws = entries_of(_LISTED_HAR.decode(unpacked.texts[0]).log.entries)
        return Recording(entries, unpacked.resources, flaws)


def read_raw(path: Path) -> RawRecording:
    """Return the trace as ``read_recording`` does, with all that stands in it. Raises UserError."""
    return _decoded(path, _raw_recording)


def _raw_recording(unpacked: Unpacked) -> RawRecording:
    if unpacked.form == "har":
        log = _RAW_HAR.decode(unpacked.texts[0]).log
        entries: list[Any] = msgspec.convert(log.pop("entries", None), list[Any])
        return RawRecording(log, entries, unpacked.resources)
    if unpacked.form == "list":
        listed = _OBJECTS.decode(unpacked.texts[0])
    else:
        lines = (line for text in unpacked.texts for line in text.splitlines())
        listed = [_OBJECT.decode(line) for line in lines if line.strip()]
    kept = [item.get("snapshot") or item for item in listed if _is_entry(item)]
    return RawRecording({}, kept, unpacked.resources)


def _is_entry(item: dict[str, Any]) -> bool:
    return item.get("type", "") in ("", "resource-snapshot")


def _decoded(path: Path, decode: Callable[[Unpacked], Decoded]) -> Decoded:
    """Decode a trace, also where only Python writes JSON so: a page's text may end in half an
    emoji. Raises UserError."""
    unpacked = unpack(path)
    with _readable(path, unpacked):
        try:
            return decode(unpacked)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            mended = tuple(python_json.repaired(text) or text for text in unpacked.texts)
            if mended == unpacked.texts:
                raise
            return decode(unpacked._replace(texts=mended))


def typed_entries(items: Iterable[Raw]) -> tuple[tuple[Entry, ...], tuple[Flaw, ...]]:
    """Return the entries among the items of a list or the lines of a Playwright trace, and what
    cannot be read of them.

    Raises msgspec.DecodeError for one that is no object.
    """
    return entries_of(_entry_texts(items))


def _entry_texts(items: Iterable[Raw]) -> Iterator[Raw]:
    for item in items:
        line = _LINE.decode(item)
        if line.type == "resource-snapshot":
            yield line.snapshot
        elif not line.type:
            yield item


@contextmanager
def _readable(path: Path, unpacked: Unpacked) -> Iterator[None]:
    """Raise UserError for text that is no trace."""
    try:
        yield
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if "truncated" in str(error):
            size = sum(map(len, unpacked.texts))
            raise UserError(
                f"{path}: cut off after {size} bytes: record the trace again and close the "
                "browser context before reading it"
            ) from error
        raise UserError(
            f"{path}: no HAR file or Playwright trace: {error or 'nested too deeply'}"
        ) from error
