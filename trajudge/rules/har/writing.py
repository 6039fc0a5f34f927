"""Write HAR 1.2: entries out of what a recorder saw, documents, and files as their name asks."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from trajudge.trajectories.util.atomic import save_bytes

SECRET_HEADERS = frozenset({"cookie", "set-cookie", "authorization", "proxy-authorization"})
"""Headers by which somebody could act in the agent's name; lower case."""

# The name of the document in an archive, where Playwright looks for it.
_IN_ZIP = "har.har"
_NO_TIME = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, kw_only=True)
class RecordedResponse:
    """What came back; ``status`` is -1 where nothing did, ``text`` None where it was not kept."""

    status: int = -1
    status_text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    mime_type: str = ""
    size: int = 0
    text: str | None = None


@dataclass(frozen=True, kw_only=True)
class RecordedRequest:
    """A request as a recorder saw it, with its response.

    ``started`` is ISO 8601, ``total`` and ``wait`` are milliseconds, ``body`` is None for none,
    ``resource_type`` is what asked for it, as browsers name it (document, fetch, ...).
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: str | None
    response: RecordedResponse
    started: str
    total: float = 0.0
    wait: float = 0.0
    resource_type: str = "other"
    error: str | None = None


def har_document(entries: Sequence[Mapping[str, Any]], browser_version: str) -> dict[str, Any]:
    """Return a HAR 1.2 document of entries in the order in which they were sent."""
    return {
        "log": {
            "version": "1.2",
            "creator": {"name": "trajudge", "version": "1"},
            "browser": {"name": "Chromium", "version": browser_version},
            "pages": [],
            "entries": list(entries),
        }
    }


def har_entry(recorded: RecordedRequest, *, secrets: bool = False) -> dict[str, Any]:
    """Return one entry. Cookies and credentials are left out but for ``secrets``."""
    total, wait = recorded.total, recorded.wait
    entry = {
        "startedDateTime": recorded.started,
        "time": round(total, 3),
        "request": _request(recorded, secrets=secrets),
        "response": _response(recorded.response, secrets=secrets),
        "cache": {},
        "timings": {"send": 0, "wait": round(wait, 3), "receive": round(total - wait, 3)},
        "_resourceType": recorded.resource_type.lower(),
    }
    return entry | ({"_error": recorded.error} if recorded.error else {})


def _request(recorded: RecordedRequest, *, secrets: bool) -> dict[str, Any]:
    body = recorded.body
    query = parse_qsl(urlsplit(recorded.url).query, keep_blank_values=True)
    written: dict[str, Any] = {
        "method": recorded.method,
        "url": recorded.url,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _headers(recorded.headers, secrets=secrets),
        "queryString": [{"name": name, "value": value} for name, value in query],
        "headersSize": -1,
        "bodySize": len(body.encode()) if body is not None else 0,
    }
    if body is not None:
        kinds = {name.lower(): value for name, value in recorded.headers.items()}
        written["postData"] = {"mimeType": kinds.get("content-type", ""), "text": body}
    return written


def _response(response: RecordedResponse, *, secrets: bool) -> dict[str, Any]:
    named = {name.lower(): value for name, value in response.headers.items()}
    text = {} if response.text is None else {"text": response.text}
    return {
        "status": response.status,
        "statusText": response.status_text,
        "httpVersion": "HTTP/1.1",
        "cookies": _cookies(named.get("set-cookie", "")) if secrets else [],
        "headers": _headers(response.headers, secrets=secrets),
        "content": {"size": response.size, "mimeType": response.mime_type, **text},
        "redirectURL": named.get("location", ""),
        "headersSize": -1,
        "bodySize": -1,
    }


def _headers(headers: Mapping[str, str], *, secrets: bool) -> list[dict[str, str]]:
    return [
        {"name": name, "value": value}
        for name, value in sorted(headers.items())
        if secrets or name.lower() not in SECRET_HEADERS
    ]


def _cookies(lines: str) -> list[dict[str, str]]:
    """Return the cookies that a response sets, of one header a line."""
    pairs = (line.partition(";")[0].partition("=") for line in lines.splitlines())
    return [{"name": name.strip(), "value": value} for name, _, value in pairs if name.strip()]


def write_har(path: Path, document: Mapping[str, Any]) -> None:
    """Write a document, packed as its name asks: ``.gz``, ``.zip``, else plain. The same document
    always gives the same bytes. Raises UserError."""
    data = msgspec.json.encode(document)
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    elif path.suffix == ".zip":
        data = _zipped(data)
    save_bytes(path, data)


def _zipped(data: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        member = zipfile.ZipInfo(_IN_ZIP, _NO_TIME)
        member.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(member, data)
    return packed.getvalue()
