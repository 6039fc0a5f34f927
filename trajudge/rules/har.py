"""Read, record and write network traces: HAR (plain, ``.gz``, Playwright's ``.zip``) and
Playwright traces."""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import lzma
import math
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import msgspec
from msgspec import Raw, Struct

from trajudge.rules.files import MAX_BYTES, read_bytes, read_data
from trajudge.util import jsonl as python_json
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder, UnsafeFile, open_regular, save_bytes, utf8

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext
    from playwright.sync_api import Error as PlaywrightError
    from playwright.sync_api import Request as PlaywrightRequest
    from playwright.sync_api import Response as PlaywrightResponse


# A longer body is not a form that an agent filled in.
MAX_BODY = 32 * 2**20
_ABSENT = Raw(b"null")
_STATIC = (".css", ".js", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".woff", ".woff2", ".ttf")
STATIC_SUFFIXES = (*_STATIC, ".ico", ".webp")

# The path of an address, if ``urlsplit``, which takes a hundred times as long, returns the same:
# with a plain host, and only visible ASCII in the path.
_PLAIN_PATH = re.compile(r"https?://[A-Za-z0-9._:-]+(/[!-\"$->@-~]*)(?=[?#]|\Z)")
Resources = Callable[[str], bytes | None]
"""The body that a trace keeps in a file of its own, by its name; None if it has none."""


class Pair(Struct, frozen=True, gc=False):
    """A header, cookie, or form field."""

    name: str = ""
    value: str | None = None


class Body(
    Struct,
    frozen=True,
    gc=False,
    rename={"mime_type": "mimeType", "file": "_file", "digest": "_sha1"},
):
    """The body of a request or a response in HAR. Playwright refers to a file with it by
    ``_file``, in older traces by ``_sha1`` (a file in ``resources``)."""

    mime_type: str = ""
    text: str | None = None
    params: tuple[Pair, ...] = ()
    encoding: str = ""
    file: str | None = None
    digest: str | None = None

    @property
    def resource(self) -> str | None:
        """The name of the file with the body, or None."""
        return self.file or (f"resources/{self.digest}" if self.digest else None)


class Request(
    Struct, frozen=True, gc=False, rename={"post_data": "postData", "body_size": "bodySize"}
):
    """``headers`` and ``post_data`` are parsed on demand."""

    method: str
    url: str
    headers: Raw = _ABSENT
    post_data: Raw = _ABSENT
    body_size: Any = None


class Response(Struct, frozen=True, gc=False, rename={"redirect_url": "redirectURL"}):
    """``headers``, ``cookies`` and ``content`` are parsed on demand."""

    status: int | float | None = None
    headers: Raw = _ABSENT
    cookies: Raw = _ABSENT
    content: Raw = _ABSENT
    redirect_url: str | None = None


class Entry(
    Struct,
    frozen=True,
    gc=False,
    rename={"resource_type": "_resourceType", "started": "startedDateTime", "page": "pageref"},
):
    """An entry of a HAR file or a snapshot of a Playwright trace, which have the same fields.

    ``started`` is ISO 8601. ``page`` identifies the tab (Playwright) or page load (browsers' own
    tools) that sent the request. Both are optional, and files of other recorders may have any value
    there.
    """

    request: Request
    response: Response = Response()
    resource_type: str | None = None
    started: Any = None
    page: Any = None


def in_time_order(entries: Sequence[Entry]) -> tuple[int, ...]:
    """Return the entries' positions in the order in which they were sent; ties are in file order.

    HAR 1.2 does not specify the order of a file. An entry without a readable time follows the one
    before it in the file.
    """
    times: list[float] = []
    for entry in entries:
        moment = _moment(entry.started)
        times.append((times[-1] if times else -math.inf) if moment is None else moment)
    return tuple(sorted(range(len(times)), key=times.__getitem__))


def _moment(started: object) -> float | None:
    """Return a time in seconds; a time without a zone is UTC."""
    if not isinstance(started, str):
        return None
    try:
        time = datetime.fromisoformat(started)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


_PAIRS = msgspec.json.Decoder(tuple[Pair, ...] | None)
_BODY = msgspec.json.Decoder(Body | None)


def is_static(url: str) -> bool:
    """Return True for a request of a style, a script, an image or a font, which no rule reads."""
    if plain := _PLAIN_PATH.match(url):
        return plain[1].endswith(STATIC_SUFFIXES)
    if not any(suffix in url for suffix in STATIC_SUFFIXES):
        return False
    try:
        return urlsplit(url).path.endswith(STATIC_SUFFIXES)
    except ValueError:
        return False


def pairs_of(raw: Raw) -> tuple[Pair, ...]:
    """Return a list of pairs, or the pairs of an object; items that cannot be read are skipped,
    because agents' browsers write these files."""
    try:
        return _PAIRS.decode(raw) or ()
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return _loose_pairs(raw)


def _loose_pairs(raw: Raw) -> tuple[Pair, ...]:
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return ()
    if isinstance(value, dict):
        value = [{"name": name, "value": one} for name, one in value.items()]
    items = value if isinstance(value, list) else []
    return tuple(
        Pair(item["name"], one if isinstance(one, str) else str(one))
        for item in items
        if isinstance(item, dict) and isinstance(item.get("name"), str)
        if isinstance(one := item.get("value"), str | int | float)
    )


def written_body(raw: Raw) -> Body | None:
    """Return a body as it is written in the trace; None if there is none or it cannot be read."""
    if len(bytes(raw)) > MAX_BODY:
        return None
    try:
        body: Body | None = _BODY.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return body


def whole_body(raw: Raw, resources: Resources | None) -> Body | None:
    """Return a body with its text, also from a separate file of the trace; the text is None if
    it was not recorded."""
    body = written_body(raw)
    if body is None or body.text:
        return _decoded(body)
    if body.resource is None:
        return body
    stored = resources(body.resource) if resources else None
    text = None if stored is None else stored.decode("utf-8", "replace")
    return msgspec.structs.replace(body, text=text)


def _decoded(body: Body | None) -> Body | None:
    """Decode a body that HAR stores as base64."""
    if body is None or body.encoding != "base64" or body.text is None:
        return body
    try:
        text = base64.b64decode(body.text, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return body
    return msgspec.structs.replace(body, text=text)


_ENTRY = msgspec.json.Decoder(Entry)
_FIELDS = {"headers": "headers", "postData": "post_data"}
_ANSWER = {"headers": "headers", "cookies": "cookies", "content": "content"}


class Flaw(NamedTuple):
    """An entry, by position, that cannot be read completely; ``lost`` if its request cannot be
    read."""

    position: int
    reason: str
    lost: bool

    def __str__(self) -> str:
        return f"entry {self.position + 1} {self.reason}"


def entries_of(items: Iterable[Raw]) -> tuple[tuple[Entry, ...], tuple[Flaw, ...]]:
    """Return the readable entries, in order, and the flaws of the others.

    Raises msgspec.DecodeError for text that is not JSON, and if no entry can be read.
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
    """Return the readable part of an entry, and what cannot be read."""
    request = entry.get("request") if isinstance(entry, dict) else None
    if not isinstance(request, dict):
        return None, "holds no request"
    method, url = request.get("method"), request.get("url")
    if not isinstance(method, str) or not isinstance(url, str):
        return None, "holds no method or no address"
    response = entry.get("response")
    response = response if isinstance(response, dict) else {}
    status, reason = _status(response.get("status"))
    kind, redirect = entry.get("_resourceType"), response.get("redirectURL")
    made = Entry(
        request=Request(
            method=method,
            url=url,
            body_size=request.get("bodySize"),
            **{name: _raw(request.get(key)) for key, name in _FIELDS.items()},
        ),
        response=Response(
            status=status,
            redirect_url=redirect if isinstance(redirect, str) else None,
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


MAX_UNPACKED = MAX_BYTES
MAX_BODIES = 256 * 2**20
"""Bytes of bodies kept apart that are read in all: one small file may stand for many."""

_RESOURCE = re.compile(r"(?:resources/)?[\w.-]{1,200}")

_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    RuntimeError,  # encrypted, or packed in a way that is not known
    ValueError,
)


class Unpacked(NamedTuple):
    """The text of a trace (a HAR document, a list of entries, or the lines of a Playwright
    trace) and its separately stored bodies."""

    form: Literal["har", "list", "lines"]
    texts: tuple[bytes, ...]
    resources: Resources


def unpack(path: Path) -> Unpacked:
    """Return the text of a trace in any supported packing. Raises UserError."""
    if path.is_dir():
        return _from_folder(path)
    try:
        with open_regular(path) as file:
            start = file.read(4)
    except UnsafeFile as error:
        raise UserError(f"{path}: {error.strerror}: name another file") from error
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: name a readable file") from error
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _from_zip(path)
    packed = start.startswith(b"\x1f\x8b")
    data = _gunzipped(path) if packed else read_bytes(path)
    name = path.stem if packed else path.name
    return Unpacked(_form(data, name), (data,), _folder_resources(path.parent))


def _form(data: bytes, name: str) -> Literal["har", "list", "lines"]:
    start = data[:200].lstrip()
    if start.startswith(b"["):
        return "list"
    lines = start.startswith(b'{"type"') or name.endswith(".network")
    return "lines" if lines else "har"


def _gunzipped(path: Path) -> bytes:
    try:
        with open_regular(path, MAX_BYTES) as file, gzip.open(file) as packed:
            data = _bounded(packed, MAX_UNPACKED)
    except _DAMAGED as error:
        raise UserError(f"{path}: a damaged .gz file: {error}: pack it again") from error
    if data is None:
        raise UserError(_too_large(path, path.stem))
    return utf8(data, path)


def _folder_resources(folder: Path) -> Resources:
    """Read bodies that a HAR file refers to from the file's own folder."""
    data = DataFolder(folder)

    def stored(resource: str) -> bytes | None:
        file = folder / resource
        return read_data(file, MAX_BODY, data) if data.has_file(file) else None

    return _limited(stored)


def _limited(stored: Resources) -> Resources:
    """Read only names inside the trace, up to the total limit."""
    left = MAX_BODIES

    def limited(resource: str) -> bytes | None:
        nonlocal left
        if left <= 0 or not _RESOURCE.fullmatch(resource):
            return None
        try:
            data = stored(resource)
        except UserError:
            return None  # checks that need it are unknown then
        left -= len(data or b"")
        return data

    return limited


def _from_folder(folder: Path) -> Unpacked:
    files, data = sorted(folder.glob("*.network")), DataFolder(folder)
    if not files:
        raise UserError(f"{folder}: holds no trace.network: name a Playwright trace or a HAR file")
    texts = tuple(read_bytes(file, MAX_UNPACKED, data) for file in files)
    return Unpacked("lines", texts, _folder_resources(folder))


def _from_zip(path: Path) -> Unpacked:
    try:
        with open_regular(path, MAX_BYTES) as file, zipfile.ZipFile(file) as archive:
            names = sorted(archive.namelist())
            lines = [name for name in names if name.endswith(".network")]
            hars = [name for name in names if name.endswith(".har")]
            if not lines and len(hars) != 1:
                held = "several .har files" if hars else "no trace.network and no .har file"
                raise UserError(f"{path}: holds {held}: name a Playwright trace or a HAR file")
            texts = tuple(_member(archive, name, path) for name in lines or hars)
    except UnsafeFile as error:
        raise UserError(f"{path}: {error}: name a smaller file") from error
    except _DAMAGED as error:
        raise UserError(f"{path}: a damaged .zip file: {error}: record it again") from error
    folder = "" if lines else str(PurePosixPath(hars[0]).parent).removeprefix(".")
    form: Literal["har", "list", "lines"] = "lines" if lines else _form(texts[0], hars[0])
    return Unpacked(form, texts, _limited(_stored_in(path, folder)))


def _member(archive: zipfile.ZipFile, name: str, path: Path) -> bytes:
    with archive.open(name) as file:
        data = _bounded(file, MAX_UNPACKED)
    if data is None:
        raise UserError(_too_large(path, name))
    return utf8(data, path)


def _too_large(path: Path, name: str) -> str:
    return f"{path}: {name} unpacks to more than {MAX_UNPACKED / 2**20:g} MiB: trim the trace"


def _bounded(file: BinaryIO | Any, limit: int) -> bytes | None:
    data: bytes = file.read(limit + 1)
    return data if len(data) <= limit else None


def _stored_in(path: Path, folder: str) -> Resources:
    """Read a body when a check needs it, which few checks do."""

    def stored(resource: str) -> bytes | None:
        name = f"{folder}/{resource}" if folder else resource
        try:
            with (
                open_regular(path, MAX_BYTES) as packed,
                zipfile.ZipFile(packed) as archive,
                archive.open(name) as file,
            ):
                return _bounded(file, MAX_BODY)
        except (KeyError, *_DAMAGED):
            return None

    return stored


class _Log(Struct):
    entries: tuple[Entry, ...]


class _Har(Struct):
    log: _Log


class _Line(Struct):
    type: str = ""
    snapshot: Raw = Raw(b"null")


_HAR = msgspec.json.Decoder(_Har)
_LINE = msgspec.json.Decoder(_Line)
_LIST = msgspec.json.Decoder(list[Raw])


class _Listed(Struct):
    entries: tuple[Raw, ...]


class _ListedHar(Struct):
    log: _Listed


_LISTED_HAR = msgspec.json.Decoder(_ListedHar)


class Recording(NamedTuple):
    """The entries of a trace, its separately stored bodies, and the flaws of unreadable entries."""

    entries: tuple[Entry, ...]
    resources: Resources
    flaws: tuple[Flaw, ...] = ()


def read_recording(path: Path) -> Recording:
    """Return the entries of a trace file or of a Playwright trace's folder.

    Raises UserError, one sentence, for a file that does not exist, is truncated or malformed, is
    too large when unpacked, or is not a trace.
    """
    unpacked = unpack(path)
    with _readable(path, unpacked):
        try:
            return _recording(unpacked)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            # JSON that only Python writes: a page's text may end in half an emoji.
            mended = tuple(python_json.repaired(text) or text for text in unpacked.texts)
            return _recording(unpacked._replace(texts=mended))


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


def typed_entries(items: Iterable[Raw]) -> tuple[tuple[Entry, ...], tuple[Flaw, ...]]:
    """Return the entries among the items of a list or the lines of a Playwright trace, and the
    flaws of unreadable ones.

    Raises msgspec.DecodeError for an item that is not an object.
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
    """Raise UserError for text that is not a trace."""
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


SECRET_HEADERS = frozenset({"cookie", "set-cookie", "authorization", "proxy-authorization"})
"""Headers by which somebody could act in the agent's name; lower case."""

# The name of the document in an archive, as Playwright expects it.
_IN_ZIP = "har.har"
_NO_TIME = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, kw_only=True)
class RecordedResponse:
    """A response; ``status`` is -1 without one, ``text`` None if it was not recorded."""

    status: int = -1
    status_text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    mime_type: str = ""
    size: int = 0
    text: str | None = None


@dataclass(frozen=True, kw_only=True)
class RecordedRequest:
    """A recorded request with its response.

    ``started`` is ISO 8601, ``total`` and ``wait`` are milliseconds, ``body`` is None without one,
    ``resource_type`` is the browser's name of the initiator's type (document, fetch, ...).
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: str | None
    response: RecordedResponse
    started: str
    total: float
    wait: float
    resource_type: str = "other"
    error: str | None = None


def har_document(entries: Sequence[Mapping[str, Any]], browser_version: str) -> dict[str, Any]:
    """Return a HAR 1.2 document of entries, in the order in which they were sent."""
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
    """Return one entry. Cookies and credentials are omitted except with ``secrets``."""
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
    """Return the cookies of ``Set-Cookie`` headers, one header per line."""
    pairs = (line.partition(";")[0].partition("=") for line in lines.splitlines())
    return [{"name": name.strip(), "value": value} for name, _, value in pairs if name.strip()]


def write_har(path: Path, document: Mapping[str, Any]) -> None:
    """Write a document, packed according to its name: ``.gz``, ``.zip``, else plain. Equal
    documents give equal bytes. Raises UserError."""
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


class TraceRecorder:
    """Records the requests of a browser context from its creation on. ``secrets`` keeps cookies
    and credentials, ``contents`` the JSON documents in responses."""

    def __init__(
        self, context: BrowserContext, *, secrets: bool = False, contents: bool = False
    ) -> None:
        self.context = context
        self._secrets, self._contents = secrets, contents
        self._sent: list[PlaywrightRequest] = []
        self._ended: dict[PlaywrightRequest, str | None] = {}
        self._responses: dict[PlaywrightRequest, PlaywrightResponse] = {}
        self._entries: dict[PlaywrightRequest, dict[str, Any]] = {}
        context.on("request", self._on_request)
        context.on("response", self._answered)
        context.on("requestfinished", self._finished)
        context.on("requestfailed", self._failed)

    def _on_request(self, request: PlaywrightRequest) -> None:
        self._sent.append(request)

    def _answered(self, response: PlaywrightResponse) -> None:
        self._responses[response.request] = response

    def _finished(self, request: PlaywrightRequest) -> None:
        self._ended[request] = None

    def _failed(self, request: PlaywrightRequest) -> None:
        self._ended[request] = request.failure or "failed"

    def entries(self) -> list[dict[str, Any]]:
        """Return the HAR entries of the requests so far, in the order in which they were sent.

        The context must be open, because Playwright is queried for the raw headers.
        """
        return [self._entry(request) for request in self._sent]

    def _entry(self, request: PlaywrightRequest) -> dict[str, Any]:
        if request in self._entries:
            return self._entries[request]
        ended = request in self._ended
        timing = request.timing
        started = datetime.fromtimestamp(max(timing["startTime"], 0.0) / 1000, UTC)
        total = max(timing["responseEnd"], 0.0)
        body = request.post_data_buffer
        entry = har_entry(
            RecordedRequest(
                method=request.method,
                url=request.url,
                headers=_recorded_headers(request) if ended else request.headers,
                body=None if body is None else body.decode("utf-8", "replace"),
                response=self._response(request, ended=ended),
                started=started.isoformat(),
                total=total,
                wait=min(total, max(timing["responseStart"], 0.0)),
                resource_type=request.resource_type,
                error=self._ended.get(request),
            ),
            secrets=self._secrets,
        )
        if ended:
            self._entries[request] = entry
        return entry

    def _response(self, request: PlaywrightRequest, *, ended: bool) -> RecordedResponse:
        response = self._responses.get(request)
        if response is None:
            return RecordedResponse()
        headers = _recorded_headers(response) if ended else response.headers
        kind = {name.lower(): value for name, value in headers.items()}.get("content-type", "")
        asked = self._contents and ended and "json" in kind and not is_static(request.url)
        text = _text(response) if asked else None
        return RecordedResponse(
            status=response.status,
            status_text=response.status_text,
            headers=headers,
            mime_type=kind,
            size=len(text.encode()) if text else 0,
            text=text,
        )


def playwright_error() -> type[PlaywrightError]:
    """Return the base class of Playwright's errors; the package is optional and slow to import."""
    from playwright.sync_api import Error  # noqa: PLC0415

    return Error


def _recorded_headers(message: PlaywrightRequest | PlaywrightResponse) -> dict[str, str]:
    """Return the raw headers, or the page's view of them if there are no others."""
    try:
        return message.all_headers()
    except playwright_error():
        return message.headers


def _text(response: PlaywrightResponse) -> str | None:
    """Return the body; None if the browser has discarded it."""
    try:
        return response.body().decode("utf-8", "replace")
    except playwright_error():
        return None
