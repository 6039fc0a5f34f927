"""The network trace of a task as HAR 1.2: requests whole, responses without their bodies.

Cookies and credentials are left out, as in every trace of ours.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from trajudge.proxy.http.messages import HeaderFields, field

_SECRET = ("cookie", "set-cookie", "authorization", "proxy-authorization")
_MAX_TEXT = 2**20  # bytes of a request's body that are kept


def har_request(method: str, url: str, headers: HeaderFields, body: bytes) -> dict[str, Any]:
    """Return an entry's ``request``."""
    query = parse_qsl(urlsplit(url).query, keep_blank_values=True)
    written: dict[str, Any] = {
        "method": method,
        "url": url,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _pairs(headers),
        "queryString": [{"name": name, "value": value} for name, value in query],
        "headersSize": -1,
        "bodySize": len(body),
    }
    if body:
        text = body[:_MAX_TEXT].decode("utf-8", "replace")
        written["postData"] = {"mimeType": field(headers, "content-type"), "text": text}
    return written


def har_response(status: int, reason: str, headers: HeaderFields, size: int) -> dict[str, Any]:
    """Return an entry's ``response``; ``status`` is -1 where none came."""
    return {
        "status": status,
        "statusText": reason,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _pairs(headers),
        "content": {"size": size, "mimeType": field(headers, "content-type")},
        "redirectURL": field(headers, "location"),
        "headersSize": -1,
        "bodySize": size,
    }


def _pairs(headers: HeaderFields) -> list[dict[str, str]]:
    kept = [pair for pair in headers if pair[0].lower() not in _SECRET]
    return [{"name": name, "value": value} for name, value in kept]


def iso_time(seconds: float) -> str:
    """Return Unix seconds as HAR writes a time."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def write_har(path: Path, entries: Sequence[dict[str, Any]]) -> None:
    """Write entries, sorted by their start, as a document."""
    ordered = sorted(entries, key=lambda entry: str(entry["startedDateTime"]))
    log = {
        "version": "1.2",
        "creator": {"name": "trajudge proxy", "version": "1"},
        "pages": [],
        "entries": ordered,
    }
    path.write_text(json.dumps({"log": log}), encoding="utf-8")
