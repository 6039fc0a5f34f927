"""Make a trace small: leave out what no rule reads, and the credentials of the agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from trajudge.rules.har.reading import RawRecording
from trajudge.rules.har.records import Resources, is_static, whole_body
from trajudge.rules.har.writing import SECRET_HEADERS

_RESPONSE_HEADERS = frozenset({"location", "content-type"})
_OWN_FIELDS = frozenset({"_resourceType", "_error"})


class Kept(NamedTuple):
    """What rules read of a trace besides its requests and their statuses: bodies of responses,
    cookies of responses, and headers of requests (in lower case) that hold credentials."""

    contents: bool = False
    cookies: bool = False
    headers: frozenset[str] = frozenset()


def trimmed(recording: RawRecording, kept: Kept) -> dict[str, Any]:
    """Return the trace as a HAR document without styles, scripts, pictures and fonts, and without
    what is not ``kept``. Bodies beside the trace that are kept stand in the document."""
    read = [entry for entry in recording.entries if not is_static(_url(entry))]
    # A trace of pictures alone is not the same as none.
    entries = read or recording.entries[:1]
    log = {name: recording.log[name] for name in ("creator", "browser") if name in recording.log}
    made = [_entry(entry, kept, recording.resources) for entry in entries]
    return {"log": {"version": "1.2", "creator": {}, **log, "pages": [], "entries": made}}


def _url(entry: object) -> str:
    request = entry.get("request") if isinstance(entry, dict) else None
    return str(request.get("url", "")) if isinstance(request, dict) else ""


def _entry(entry: object, kept: Kept, resources: Resources) -> object:
    """Return one entry; what is none is left as it is, so that it stays what cannot be read."""
    if not isinstance(entry, dict):
        return entry
    made = {
        name: value
        for name, value in entry.items()
        if name in _OWN_FIELDS or not name.startswith(("_", "pageref"))
    }
    if isinstance(entry.get("request"), dict):
        made["request"] = _request(entry["request"], kept, resources)
    if isinstance(entry.get("response"), dict):
        made["response"] = _response(entry["response"], kept, resources)
    return made


def _request(request: dict[str, Any], kept: Kept, resources: Resources) -> dict[str, Any]:
    secret = SECRET_HEADERS - kept.headers
    headers = _filtered(request.get("headers"), lambda name: name not in secret)
    made = {**request, "headers": headers, "cookies": []}
    if isinstance(request.get("postData"), dict):
        made["postData"] = _inlined(request["postData"], resources)
    return made


def _response(response: dict[str, Any], kept: Kept, resources: Resources) -> dict[str, Any]:
    names = _RESPONSE_HEADERS | ({"set-cookie"} if kept.cookies else set())
    headers = _filtered(response.get("headers"), lambda name: name in names)
    made = {**response, "headers": headers}
    if not kept.cookies:
        made["cookies"] = []
    content = response.get("content")
    if isinstance(content, dict):
        read = _inlined(content, resources) if kept.contents else content
        own = {"size", "mimeType"} | ({"text", "encoding"} if kept.contents else set())
        made["content"] = {name: value for name, value in read.items() if name in own}
    return made


def _filtered(headers: object, wanted: Callable[[str], bool]) -> object:
    """Return the headers that are wanted; what is no list of headers is left as it is."""
    if not isinstance(headers, list) or not all(isinstance(one, dict) for one in headers):
        return headers
    return [one for one in headers if wanted(str(one.get("name", "")).lower())]


def _inlined(body: dict[str, Any], resources: Resources) -> dict[str, Any]:
    """Return a body with its text in its place; one that cannot be read stays as it is."""
    if body.get("text") or not (body.get("_file") or body.get("_sha1")):
        return body
    read = whole_body(Raw(msgspec.json.encode(body)), resources)
    if read is None or read.text is None:
        return body
    rest = {name: value for name, value in body.items() if name not in ("_file", "_sha1")}
    return {**rest, "text": read.text}
