"""Entries that other recorders write another way, and what cannot be read of them.

One bad entry is no reason to lose a trace: the others are read, and what the bad one hides is said.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from trajudge.rules.har.records import Entry, Request, Response

_ENTRY = msgspec.json.Decoder(Entry)
_FIELDS = {"headers": "headers", "postData": "post_data"}
_ANSWER = {"headers": "headers", "cookies": "cookies", "content": "content"}


class Flaw(NamedTuple):
    """What cannot be read of the entry at a position, ``lost`` if that is the request itself."""

    position: int
    reason: str
    lost: bool

    def __str__(self) -> str:
        return f"entry {self.position + 1} {self.reason}"


def entries_of(items: Iterable[Raw]) -> tuple[tuple[Entry, ...], tuple[Flaw, ...]]:
    """Return the entries that can be read, in order, and the flaws of the others.

    Raises msgspec.DecodeError for what is no JSON, and where no entry can be read.
    """
    entries: list[Entry] = []
    flaws: list[Flaw] = []
    first_error = None
    for index, item in enumerate(items):
        try:
            entries.append(_ENTRY.decode(item))
        except msgspec.ValidationError as error:
            first_error = first_error or error
            entry, reason = _read(msgspec.json.decode(item))
            if entry is not None:
                entries.append(entry)
            if reason:
                flaws.append(Flaw(index, reason, entry is None))
    if first_error is not None and not entries:
        raise first_error
    return tuple(entries), tuple(flaws)


def _read(entry: Any) -> tuple[Entry | None, str]:
    """Return an entry as far as it can be read, and what cannot be."""
    request = entry.get("request") if isinstance(entry, dict) else None
    if not isinstance(request, dict):
        return None, "holds no request"
    method, url = request.get("method"), request.get("url")
    if not isinstance(method, str) or not isinstance(url, str):
        return None, "holds no method or no address"
    response = entry.get("response")
    response = response if isinstance(response, dict) else {}
    status, reason = _status(response.get("status"))
    kind, place = entry.get("_resourceType"), response.get("redirectURL")
    made = Entry(
        request=Request(
            method=method,
            url=url,
            body_size=request.get("bodySize"),
            **{name: _raw(request.get(key)) for key, name in _FIELDS.items()},
        ),
        response=Response(
            status=status,
            redirect_url=place if isinstance(place, str) else None,
            **{name: _raw(response.get(key)) for key, name in _ANSWER.items()},
        ),
        resource_type=kind if isinstance(kind, str) else None,
        started=entry.get("startedDateTime"),
        page=entry.get("pageref"),
    )
    return made, reason


def _status(status: Any) -> tuple[int | float | None, str]:
    if isinstance(status, str) and status.strip().isdecimal() and len(status) < 9:
        return int(status), ""
    if status is None or (isinstance(status, int | float) and not isinstance(status, bool)):
        return status, ""
    return None, "has no status that is a number"


def _raw(value: Any) -> Raw:
    return Raw(msgspec.json.encode(value))
