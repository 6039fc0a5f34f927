"""The addon of mitmproxy: applies a fault plan and records events.

``mitmdump -s addon.py --set trajudge=SETTINGS``. It imports only the standard library and
mitmproxy, so that it runs in any environment with mitmproxy. SETTINGS is a JSON file: ``out`` (the
folder of the records), ``plan`` (its faults with the texts of their pages, by
``trajudge.proxy.pages``), ``seed``, ``task``, ``horizon``, ``sites``, ``apis``, ``signature``,
``page_requests`` and ``link``; ``trajudge.proxy.process`` writes it.

The records are JSON lines in two files: ``events.jsonl`` (its fields are in ``docs/proxy.md``) and
``requests.jsonl``, one line per request of the site, for traces and latency. The reader of the
records computes recovery, exposure and sums.

``link`` has a port on loopback and a token. The addon connects there and receives orders, a line of
JSON each: ``begin``, ``end``, ``open``. It writes an answer for each, and ``ended`` for every task
that ends. When the connection closes, mitmproxy ends. Without a link one task begins with the first
request and ends with mitmproxy.
"""

import asyncio
import gc
import json
import re
import secrets
import socket
import struct
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

try:
    from mitmproxy import ctx, http
except ModuleNotFoundError:  # readers of a plan import only the pure functions, without mitmproxy
    ctx = http = None

FORMAT = 1
BEACON = "/__trajudge/popup/"
"""The path, on the site's own host, to which a closed overlay reports."""
API = "/__api/"
"""The path, on a port of the addon's own, below which model APIs are."""

RETRY_WINDOW = 0.5  # seconds within which a browser repeats a request after a reset
REDIRECT_WINDOW = 30.0  # seconds for which a redirect's target belongs to the same page load
_CONNECT_PATIENCE = 10.0  # seconds
_STREAMS = (
    100  # of a client to one server: with mitmproxy's own five a delayed page would block others
)
_MAX_DOCUMENT = 64 * 2**20  # unpacked bytes of a document into which an overlay is inserted
_MAX_KEPT = 2**20  # bytes of a request's body in the records; a longer one is streamed
_MAX_ASKED = 64 * 2**20  # bytes of a model call that are read for its model
_MAX_ANSWER = 64 * 2**20  # bytes of a model's answer that are read for its usage
_MAX_EVENT = 8 * 2**20  # bytes of one event of a stream
_LONGEST_LINE = 2**20
_PAUSE = 0.25  # seconds for which lines of requests are gathered
_SECRET = (b"cookie", b"set-cookie", b"authorization", b"proxy-authorization")
_OF_CONNECTIONS = (
    *(b"connection", b"keep-alive", b"transfer-encoding"),
    *(b"proxy-connection", b"proxy-authorization"),
)
CUT = "cut off by a fault"
_REDIRECTS = (301, 302, 303, 307, 308)
_PORTS = {"http": 80, "https": 443}


# When a fault fires.


class DrawKey(NamedTuple):
    """The inputs of a fault's draws in a task."""

    seed: int
    task: str
    fault: str


def draw(key: DrawKey, ordinal: int) -> float:
    """Return a number in [0, 1) for a page load: the first 53 bits of a SHA-256."""
    text = json.dumps([key.seed, key.task, key.fault, ordinal])
    return (int.from_bytes(sha256(text.encode()).digest()[:7]) >> 3) / 2**53


def planned_ordinals(
    policy: Mapping[str, Any], key: DrawKey, horizon: int | None = None
) -> tuple[int, ...] | None:
    """Return the page loads at which a fault fires, ascending; None for a ``bernoulli`` policy,
    which has no end.

    ``random`` takes the n smallest draws of the horizon, so that for one seed the sample of n is a
    subset of the sample of n + 1. A policy without a horizon uses the task's ``horizon``: all of it
    if it is shorter than n, and nothing for a task without one.
    """
    if policy.get("at") is not None:
        return (int(policy["at"]),)
    if policy.get("random") is None:
        return None
    last = policy.get("horizon") or horizon or 0
    ordered = sorted(range(1, last + 1), key=lambda k: (draw(key, k), k))
    return tuple(sorted(ordered[: policy["random"]]))


def is_due(
    policy: Mapping[str, Any], planned: tuple[int, ...] | None, key: DrawKey, ordinal: int
) -> bool:
    """Return True if a fault is planned at a page load; ``planned`` as returned by
    ``planned_ordinals``."""
    return draw(key, ordinal) < policy["bernoulli"] if planned is None else ordinal in planned


# What a request is for.

_ASSETS = ("style", "script", "image", "font")
# As browsers' tools name the initiator of a request.
_TYPES = {
    **{"document": "document", "iframe": "document", "frame": "document", "style": "stylesheet"},
    **{"script": "script", "image": "image", "font": "font", "audio": "media", "video": "media"},
    **{"manifest": "manifest", "empty": "fetch", "websocket": "websocket"},
}


class Purpose(NamedTuple):
    """``page``: it loads a page; ``certain``: according to the browser itself; ``asset``: the
    kind of asset, or ""; ``type`` as in browsers' traces."""

    page: bool
    certain: bool
    asset: str = ""
    type: str = "other"


def purpose_of(method: str, headers: Mapping[str, str]) -> Purpose:
    """Return the purpose of a request; ``headers`` are looked up by lower-case names.

    Without ``Sec-Fetch-Dest``, which browsers send to trustworthy addresses only, it is inferred
    from headers that they send with documents, including pages and frames.
    """
    destination = headers.get("sec-fetch-dest", "")
    prefetch = "prefetch" in (headers.get("sec-purpose") or headers.get("purpose", "")).lower()
    loads = method in ("GET", "POST") and not prefetch
    if destination:
        asset = destination if destination in _ASSETS else ""
        page = destination == "document" and loads
        return Purpose(page, True, asset, _TYPES.get(destination, "other"))
    scripted = headers.get("x-requested-with") or headers.get("purpose")
    page = "text/html" in headers.get("accept", "").lower() and not scripted and loads
    return Purpose(page, False, "", "document" if page else "other")


# Pages with an overlay.

_META = re.compile(rb"<meta\b[^>]*>", re.IGNORECASE)
_STATES_POLICY = re.compile(rb"http-equiv\s*=\s*[\"']?content-security-policy[\"']?", re.IGNORECASE)
_CONTENT = re.compile(rb"(\bcontent\s*=\s*)(\"[^\"]*\"|'[^']*')", re.IGNORECASE)
_POLICIES = ("content-security-policy", "content-security-policy-report-only")
# What the site says of the bytes of the original.
_OF_THE_BYTES = ("content-encoding", "content-md5", "digest", "etag")
_WIDE = ("utf-16", "utf-32", "ucs-2")


def amended_policy(policy: str, nonce: str, beacon: str = "") -> str:
    """Return a content security policy that also allows script and style elements with ``nonce``,
    and requests to ``beacon``, an address without its scheme.

    A policy that already allows all inline elements is unchanged: with a nonce, browsers would
    ignore its 'unsafe-inline' and block the page's own scripts.
    """
    return ", ".join(_amended_one(one, nonce, beacon) for one in policy.split(",") if one.strip())


def _amended_one(policy: str, nonce: str, beacon: str) -> str:
    directives: dict[str, list[str]] = {}
    for directive in policy.split(";"):
        name, *values = directive.split() or [""]
        if name:
            directives.setdefault(name.lower(), values)
    for kind in ("script", "style"):
        names = (f"{kind}-src-elem", f"{kind}-src", "default-src")
        governing = next((name for name in names if name in directives), None)
        if governing is None or _allows_inline(directives[governing]):
            continue
        # Other kinds of content depend on default-src: the elements get their own directive.
        target = governing if governing != "default-src" else f"{kind}-src-elem"
        directives[target] = [*_without_none(directives[governing]), f"'nonce-{nonce}'"]
    governing = next((name for name in ("connect-src", "default-src") if name in directives), None)
    if beacon and governing:
        values = directives[governing]
        if not {"'self'", "*"} & {value.lower() for value in values}:
            directives["connect-src"] = [*_without_none(values), beacon]
    return "; ".join(" ".join([name, *values]) for name, values in directives.items())


def _without_none(values: list[str]) -> list[str]:
    return [value for value in values if value.lower() != "'none'"]


def _allows_inline(values: list[str]) -> bool:
    lower = [value.lower() for value in values]
    restricted = any(v.startswith(("'nonce-", "'sha")) or v == "'strict-dynamic'" for v in lower)
    return "'unsafe-inline'" in lower and not restricted


def amended_metas(html: bytes, nonce: str, beacon: str = "") -> bytes:
    """Return a document with the policies in its ``meta`` elements amended.

    The time is linear in the length of a document, whatever its content: it is untrusted, and all
    other requests wait meanwhile.
    """
    end = html.rfind(b">") + 1  # behind it no element can end, and each would be sought to the end

    def amend(element: re.Match[bytes]) -> bytes:
        if not _STATES_POLICY.search(element[0]):
            return element[0]
        return _CONTENT.sub(amend_content, element[0], count=1)

    def amend_content(content: re.Match[bytes]) -> bytes:
        value = content[2][1:-1].decode("latin-1").replace("&#39;", "'").replace("&quot;", '"')
        policy = amended_policy(value, nonce, beacon).replace('"', "&quot;")
        return content[1] + b'"' + policy.encode("latin-1") + b'"'

    return _META.sub(amend, html[:end]) + html[end:]


def unfit_for_overlay(content_type: str, disposition: str) -> str:
    """Return why an overlay cannot be inserted into a response; "" if it can."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in ("text/html", "application/xhtml+xml"):
        return f"the content type is {kind or 'not given'}, not text/html"
    if any(name in content_type.lower() for name in _WIDE):
        return f"the charset in {content_type!r:.80} does not extend ASCII"
    return "it is a download" if disposition.lower().startswith("attachment") else ""


def unpacked(body: bytes, encoding: str) -> bytes:
    """Return a document without its content encoding. Raises ValueError, with the reason, if it
    is damaged, not gzip as requested, or of more than 64 MiB."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return body
    if name not in ("gzip", "x-gzip"):
        raise ValueError(f"the content encoding is {name}, not gzip")
    unpacking = zlib.decompressobj(wbits=31)
    try:
        text = unpacking.decompress(body, _MAX_DOCUMENT)
    except zlib.error as error:
        raise ValueError(f"the content encoding {name} is damaged ({error})") from None
    if unpacking.unconsumed_tail:
        raise ValueError(f"the document has more than {_MAX_DOCUMENT:,} bytes")
    if not unpacking.eof:
        raise ValueError(f"the content encoding {name} is damaged (it ends early)")
    return text


# Model calls: tokens in the answers of OpenAI (chat, responses) and Anthropic, whole and streamed.

USAGE_FIELDS = ("input", "cache_read", "cache_write", "output", "reasoning")


def parse_usage(usage: object) -> dict[str, int | None] | None:
    """Return the token counts of a ``usage`` object of either protocol; None without any.

    A missing count is None, never 0. ``input`` are the tokens billed in full: the prompt has
    ``input + cache_read + cache_write`` tokens, as far as they are reported.
    """
    if not isinstance(usage, dict):
        return None
    if "prompt_tokens" in usage or "completion_tokens" in usage:
        counts = _with_details(usage, "prompt_tokens", "completion_tokens", "cache_write_tokens")
    elif "input_tokens_details" in usage or "output_tokens_details" in usage:
        counts = _with_details(usage, "input_tokens", "output_tokens")
    else:
        counts = {
            "input": _count(usage, "input_tokens"),
            "cache_read": _count(usage, "cache_read_input_tokens"),
            "cache_write": _count(usage, "cache_creation_input_tokens"),
            "output": _count(usage, "output_tokens"),
            "reasoning": None,
        }
    return counts if any(count is not None for count in counts.values()) else None


def _with_details(
    usage: dict[str, object], sent: str, received: str, stored: str = ""
) -> dict[str, int | None]:
    """Return the counts of one of OpenAI's protocols, whose names differ; ``stored`` is the
    detail with the tokens written to the cache, if any."""
    details, spent = usage.get(f"{sent}_details"), usage.get(f"{received}_details")
    prompt, read, written = (
        _count(usage, sent),
        _count(details, "cached_tokens"),
        _count(details, stored),
    )
    return {
        "input": None if prompt is None else max(0, prompt - (read or 0) - (written or 0)),
        "cache_read": read,
        "cache_write": written,
        "output": _count(usage, received),
        "reasoning": _count(spent, "reasoning_tokens"),
    }


def _count(fields: object, name: str) -> int | None:
    value = fields.get(name) if isinstance(fields, dict) else None
    known = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if known else None


class StreamedAnswer:
    """Parses a ``text/event-stream`` body in arbitrary pieces.

    ``began``: an event had content (text, reasoning, a tool call). ``usage`` is None until the
    stream reports it; the output tokens of an Anthropic stream that ends early stay None, because
    its first event counts only those written by then.
    """

    def __init__(self) -> None:
        self.began = self.ended = False
        self.model = self.error = ""
        self._usage: dict[str, int | None] = {}
        self._rest = b""
        self._lines: list[bytes] = []

    @property
    def usage(self) -> dict[str, int | None] | None:
        """Return the counts so far; None without any."""
        return self._usage if any(n is not None for n in self._usage.values()) else None

    def feed(self, piece: bytes) -> None:
        """Parse the next piece of the body."""
        for event in self.events(piece):
            if isinstance(event, dict):
                self._take(event)

    def events(self, piece: bytes) -> Iterator[object]:
        """Yield the JSON value of each complete event; events without one are skipped
        (``[DONE]``, comments)."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > _MAX_EVENT:
            self._rest = b""
        for line in lines:
            text = line.rstrip(b"\r")
            if text.startswith(b"data:"):
                self._lines.append(text[5:].strip())
            elif not text and self._lines:
                event, self._lines = b"\n".join(self._lines), []
                yield from _parsed(event)

    def _take(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        inner = event.get("message") if kind == "message_start" else event.get("response")
        body = inner if isinstance(inner, dict) else event
        if not self.model and isinstance(body.get("model"), str):
            self.model = body["model"]
        if event.get("error") and not self.error:
            self.error = str(event["error"])[:200]
        counts = parse_usage(body.get("usage"))
        if counts and kind == "message_start":
            counts["output"] = None
        for name, count in (counts or {}).items():
            if count is not None or name not in self._usage:
                self._usage[name] = count
        content, end = _content_and_end(event, kind)
        self.began, self.ended = self.began or content, self.ended or end


def _content_and_end(event: dict[str, Any], kind: object) -> tuple[bool, bool]:
    """Return whether an event has content, and whether it ends the response."""
    if isinstance(kind, str):
        end = kind in ("message_stop", "response.completed", "response.incomplete")
        return kind == "content_block_delta" or kind.endswith(".delta"), end
    choices = event.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, dict):
        return False, False
    delta = first.get("delta")
    spoken = isinstance(delta, dict) and any(
        value for name, value in delta.items() if name not in ("role", "refusal_reason")
    )
    return spoken or bool(first.get("text")), bool(first.get("finish_reason"))


def _parsed(text: bytes) -> Iterator[object]:
    """Yield the value of a JSON text; nothing for invalid JSON."""
    try:
        yield json.loads(text)
    except (ValueError, RecursionError):
        return


def _fields(text: bytes | bytearray) -> dict[str, Any]:
    """Return the fields of a JSON object; empty for other values."""
    value = next(_parsed(bytes(text)), None)
    return value if isinstance(value, dict) else {}


# Tasks and their page loads.


@dataclass(eq=False)
class PageLoad:
    """The ``k``-th page load of a task, from 1, with all its redirects; ``open`` are the due
    faults without an outcome yet."""

    k: int
    open: list[dict[str, Any]]
    method: str = ""
    url: str = ""  # of its last request
    again: dict[str, Any] | None = None  # the reset that the browser's own repetition meets again


@dataclass(eq=False)
class Task:
    """A running task; ``number`` counts the tasks of this process from 1."""

    number: int
    id: str
    seed: int
    planned: Mapping[str, tuple[int, ...] | None]
    faults: list[dict[str, Any]]
    started: float = field(default_factory=time.time)
    loads: int = 0
    refused: int = 0
    refused_hosts: set[str] = field(default_factory=set)
    tunnels: int = 0
    page: PageLoad | None = None
    following: dict[str, tuple[PageLoad, float]] = field(default_factory=dict)
    resets: dict[tuple[str, str], tuple[PageLoad, dict[str, Any], float]] = field(
        default_factory=dict
    )

    def due(self, ordinal: int) -> list[dict[str, Any]]:
        """Return the faults of a page load, in the plan's order."""
        return [
            fault
            for fault in self.faults
            if is_due(
                fault["policy"],
                self.planned[fault["id"]],
                DrawKey(self.seed, self.id, fault["id"]),
                ordinal,
            )
        ]

    def load(self, method: str, url: str) -> PageLoad:
        """Return the page load that a request for a document begins or continues."""
        load = self.load_of(method, url)
        load.method, load.url = method, url
        return load

    def load_of(self, method: str, url: str) -> PageLoad:
        now = time.monotonic()
        if (followed := self.following.pop(url, None)) and now < followed[1]:
            return followed[0]
        if (reset := self.resets.get((method, url))) and now < reset[2]:
            reset[0].again = reset[1]
            return reset[0]
        self.loads += 1
        self.page = PageLoad(self.loads, self.due(self.loads))
        return self.page

    def failing_asset(self, kind: str) -> dict[str, Any] | None:
        """Return the fault for an asset of the current page."""
        if self.page is None or not kind:
            return None
        due = (fault for fault in self.due(self.page.k) if fault["kind"] == "assets")
        return next((fault for fault in due if kind in fault["assets"]), None)


Fields = tuple[tuple[bytes, bytes], ...]  # of a message's head


@dataclass(eq=False)
class SiteExchange:
    """A request of the site and its outcome; times are Unix seconds."""

    task: Task
    purpose: Purpose
    method: str
    url: str
    began: float
    headers: Fields
    body: bytearray = field(default_factory=bytearray)
    body_size: int = 0
    load: PageLoad | None = None
    sent: float | None = None
    first_byte: float | None = None
    spans: list[tuple[str, float, float]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    replaced: bool = False
    ours: bool = False  # the answer is the proxy's own
    instead: dict[str, Any] | None = None  # the fault that replaces the site's answer
    size: int = 0
    error: str | None = None
    done: bool = False

    def take(self, piece: bytes) -> bytes:
        """Pass on a piece of the request's body, and keep the part for the records."""
        self.body_size += len(piece)
        self.body += piece[: _MAX_KEPT - len(self.body)]
        return piece

    def seconds(self, part: str) -> float:
        """Return the seconds of a part."""
        return sum(end - start for name, start, end in self.spans if name == part)


@dataclass(eq=False)
class ModelCall:
    """A running call; ``path`` is the part after the API's base address."""

    task: Task
    api: str
    path: str
    began: float
    asked: bytearray = field(default_factory=bytearray)
    sent: float = 0.0
    first: float | None = None
    answer: StreamedAnswer | None = None
    whole: bytearray = field(default_factory=bytearray)
    done: bool = False

    def take(self, piece: bytes) -> bytes:
        """Pass on a piece of the call's body, and keep it for the end."""
        self.asked += piece[: _MAX_ASKED - len(self.asked)]
        return piece


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 3)


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def _sentence(status: int, text: str) -> "http.Response":
    """Return a short page with an error and its fix."""
    title = f"{status} {_reason(status)}"
    page = f'<!doctype html><meta charset="utf-8"><title>{title}</title><h1>{title}</h1>'
    page += f"<p>{escape(text, quote=False)}</p>"
    kind = {"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store"}
    return http.Response.make(status, page.encode(), kind)


def _no_store(headers: "http.Headers") -> None:
    """Forbid caching, so that returning to a page loads it again."""
    for name in ("expires", "pragma"):
        headers.pop(name, None)
    headers["Cache-Control"] = "no-store"


def _end_to_end(request: "http.Request") -> None:
    """Remove hop-by-hop headers. A complete body has a length; a streamed one keeps its form."""
    named = request.headers.get("connection", "").lower().encode().split(b",")
    gone = {*_OF_CONNECTIONS, *(name.strip() for name in named)}
    if request.raw_content is None:
        gone.discard(b"transfer-encoding")
    fields = [field for field in request.headers.fields if field[0].lower() not in gone]
    if body := request.raw_content:
        fields = [field for field in fields if field[0].lower() != b"content-length"]
        fields.append((b"Content-Length", b"%d" % len(body)))
    request.headers.fields = tuple(fields)


def _pairs(fields: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    """Return the headers of a message without those that identify or authorise a user."""
    kept = (field for field in fields if field[0].lower() not in _SECRET)
    return [(name.decode("latin-1"), value.decode("utf-8", "replace")) for name, value in kept]


class FaultAddon:
    """The hooks of mitmproxy. The state of a flow is stored with the flow."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}
        self.faults: list[dict[str, Any]] = []
        self.tasks: dict[int, Task] = {}  # by the port that agents use as a proxy
        self.ports: dict[int, int] = {}  # port of model APIs -> the proxy port with its task
        self.number = 0
        self.reached: set[tuple[str, int]] = set()
        self.link: asyncio.StreamWriter | None = None
        self.background: set[asyncio.Task[None]] = set()
        self.under_way: set[SiteExchange] = set()
        self.finished: list[tuple[SiteExchange, int, str, Fields, float]] = []

    def load(self, loader: Any) -> None:
        """Declare the option for the settings."""
        loader.add_option("trajudge", str, "", "JSON file with the settings of the fault plan")

    def running(self) -> None:
        """Read the settings, open the records, and connect to the controlling process."""
        self.settings = settings = json.loads(Path(ctx.options.trajudge).read_text("utf-8"))
        self.faults = settings["plan"]["faults"]
        out = Path(settings["out"])
        # Others append to the events as well: a line is one write.
        self.events = (out / "events.jsonl").open("ab", buffering=0)
        self.requests = (out / "requests.jsonl").open("a", encoding="utf-8")
        self.signature, self.page_requests = (
            re.compile(settings[name]) if settings[name] is not None else None
            for name in ("signature", "page_requests")
        )
        self.asset_faults = any(fault["kind"] == "assets" for fault in self.faults)
        modes = [int(mode.rpartition(":")[2]) for mode in ctx.options.mode]
        self.ports = dict(zip(modes[1::2], modes[::2], strict=True))
        names = {"sites": [site["host"] for site in settings["sites"]]}
        names["apis"] = [api["name"] for api in settings["apis"]]
        same = {name: settings[name] for name in ("nonce", "digest", "seed")}
        self.write("proxy", format=FORMAT, plan=same.pop("digest"), **same, **names)
        gc.freeze()  # a request never waits for a search of all modules for garbage
        if settings["link"] is not None:
            following = asyncio.create_task(self.follow_orders(**settings["link"]))
            self.background.add(following)

    def done(self) -> None:
        """End all tasks and the records."""
        if self.settings:
            self.end_all()
            if self.settings["link"] is None:
                self.write("end", tasks=self.number)
            self.events.close()
            self.requests.close()

    def write(self, event: str, **fields: Any) -> None:
        """Append one event."""
        line = json.dumps({"type": event, "t": round(time.time(), 6), **fields})
        self.events.write(line.encode() + b"\n")

    def note(self, task: Task, event: str, **fields: Any) -> None:
        """Append one event of a task."""
        self.write(event, task=task.id, number=task.number, **fields)

    # Orders.

    async def follow_orders(self, port: int, token: str) -> None:
        """Follow orders until the connection closes, then end mitmproxy."""
        try:
            await _listening([*self.ports, *self.ports.values()])
            reader, self.link = await asyncio.open_connection(
                "127.0.0.1", port, limit=_LONGEST_LINE
            )
            self.send({"token": token})
            while line := await reader.readline():
                self.send({"answer": await self.obey(**json.loads(line))})
            self.end_all()
            await self.link.drain()
            self.link.close()
        except OSError:
            ctx.options.update(ssl_insecure=False)
        finally:
            ctx.master.shutdown()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a line to the controlling process, if any."""
        if self.link is not None:
            self.link.write(json.dumps(message).encode() + b"\n")

    async def obey(self, do: str, port: int = 0, **fields: Any) -> dict[str, Any]:
        """Execute an order and return its answer."""
        if do == "open":
            return await self.open_ports()
        if do == "begin":
            begun = self.begin(port, **fields)
            return {"task": begun.id, "seed": begun.seed}
        return {"number": self.end(port)}

    async def open_ports(self) -> dict[str, Any]:
        """Listen on an additional port for agents and one for their model calls."""
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            other.bind(("127.0.0.1", 0))
            port, door = one.getsockname()[1], other.getsockname()[1]
        self.ports[door] = port
        ctx.options.update(mode=[*ctx.options.mode, *modes_of(port, door)])
        await _listening([port, door])
        return {"port": port, "door": door}

    def begin(
        self, port: int, task: str, seed: int | None = None, horizon: int | None = None
    ) -> Task:
        """Begin a task on a port, and end the port's task if it has one."""
        self.end(port)
        self.number += 1
        seed = self.settings["seed"] if seed is None else seed
        horizon = self.settings["horizon"] if horizon is None else horizon
        planned = {
            fault["id"]: planned_ordinals(
                fault["policy"], DrawKey(seed, task, fault["id"]), horizon
            )
            for fault in self.faults
        }
        begun = Task(self.number, task, seed, planned, self.faults)
        self.tasks[port] = begun
        self.note(begun, "task", seed=seed, horizon=horizon, port=port, planned=planned)
        return begun

    def task_of(self, port: int) -> Task:
        """Return the task of a port; without one the default task begins."""
        return self.tasks.get(port) or self.begin(port, self.settings["task"])

    def end_all(self) -> None:
        """End the tasks of all ports."""
        for port in list(self.tasks):
            self.end(port)

    def end(self, port: int) -> int | None:
        """End the port's task; return its number."""
        task = self.tasks.pop(port, None)
        if task is None:
            return None
        for exchange in [one for one in self.under_way if one.task is task]:
            self.finish(exchange, -1, "", (), exchange.error or "broke off: the task ended")
        self.write_requests()
        counts = {"refused": task.refused, "tunnels": task.tunnels}
        seconds = {"started": task.started, "ended": time.time()}
        self.send({"ended": {"number": task.number, "id": task.id, **counts, **seconds}})
        return task.number

    # Connections.

    def client_connected(self, client: Any) -> None:
        """Remove mitmproxy's limit of connections of one client to one server."""
        with suppress(AttributeError, KeyError):
            handler = ctx.master.addons.get("proxyserver").connections[client.id]
            handler.max_conns = defaultdict(lambda: asyncio.Semaphore(_STREAMS))

    def http_connect(self, flow: "http.HTTPFlow") -> None:
        """Refuse a tunnel to a host outside the site."""
        host, port = flow.request.host.lower(), flow.request.port
        known = self.server_of(host, port, tls=True) or self.api_at(host, port)
        if known is None:
            flow.response = self.refusal(self.task_of(self.port_of(flow)), host, "CONNECT")

    def tls_start_server(self, start: Any) -> None:
        """Verify certificates, except those of servers on loopback. mitmproxy's option is
        global, but nothing else runs while this connection is prepared."""
        if start.conn.address[0] not in ("127.0.0.1", "::1", "localhost"):
            return
        ctx.options.update(ssl_insecure=True)
        try:
            ctx.master.addons.get("tlsconfig").tls_start_server(start)
        finally:
            ctx.options.update(ssl_insecure=False)

    def port_of(self, flow: "http.HTTPFlow") -> int:
        """Return the proxy port whose task a flow belongs to."""
        port = int(flow.client_conn.sockname[1])
        return self.ports.get(port, port)

    def server_of(self, host: str, port: int, *, tls: bool) -> dict[str, Any] | None:
        """Return the server of a host; None for a host outside the site.

        Names below ``localhost`` resolve to 127.0.0.1 as in browsers, unlike in the C library.
        """
        for site in self.settings["sites"]:
            name = site["host"]
            if host.endswith(name[1:]) if name.startswith("*.") else host == name:
                address = "127.0.0.1" if host.endswith(".localhost") else host
                server: dict[str, Any] = site["server"]
                return server or {"host": address, "port": port, "tls": tls}
        return None

    def api_at(self, host: str, port: int, path: str | None = None) -> dict[str, Any] | None:
        """Return the model API at an address, for agents that call it directly."""
        for api in self.settings["apis"]:
            here = (api["host"], api["port"]) == (host, port)
            if here and (path is None or path.startswith(api["path"])):
                matching: dict[str, Any] = api
                return matching
        return None

    def refusal(self, task: Task, host: str, method: str) -> "http.Response":
        """Answer requests to hosts outside the site at once: browsers send many on their own."""
        task.refused += 1
        if host not in task.refused_hosts:
            task.refused_hosts.add(host)
            self.note(task, "refused", host=host, method=method)
        return _sentence(403, f"{host} is not a host of the site: name it with --site")

    async def unreachable(self, server: Mapping[str, Any]) -> str:
        """Return why a server cannot be reached, or "". It is tried once, and again after a
        failure, because mitmproxy would answer with its own error page."""
        address = (server["host"], server["port"])
        if address in self.reached:
            return ""
        try:
            async with asyncio.timeout(_CONNECT_PATIENCE):
                _, writer = await asyncio.open_connection(*address)
        except (OSError, TimeoutError) as error:
            return str(error) or type(error).__name__
        writer.close()
        self.reached.add(address)
        return ""

    def direct(self, flow: "http.HTTPFlow", server: Mapping[str, Any]) -> None:
        """Send a request to a server. The fields of mitmproxy's record are set instead of its
        properties, which would also change the Host header."""
        record = flow.request.data
        record.host, record.port = server["host"], server["port"]
        record.scheme = b"https" if server["tls"] else b"http"

    # Requests.

    async def requestheaders(self, flow: "http.HTTPFlow") -> None:
        """Handle a request before its body if the body is long or of unknown length, which
        mitmproxy would buffer. The addon's own responses still follow the body."""
        if flow.error is not None:
            return
        headers = flow.request.headers
        length = headers.get("content-length", "")
        if int(length) > _MAX_KEPT if length.isdecimal() else "transfer-encoding" in headers:
            flow.metadata["trajudge-taken"] = True
            await self.take(flow)
            if flow.response is None:
                record = self.record_of(flow)
                flow.request.stream = True if record is None else record.take

    async def request(self, flow: "http.HTTPFlow") -> None:
        """Handle a request with its body, unless it was handled before."""
        if not flow.metadata.get("trajudge-taken"):
            await self.take(flow)
        elif flow.request.raw_content and (record := self.record_of(flow)) is not None:
            record.take(flow.request.raw_content)

    def record_of(self, flow: "http.HTTPFlow") -> "SiteExchange | ModelCall | None":
        """Return the record of a flow."""
        record: SiteExchange | ModelCall | None = flow.metadata.get("trajudge-call")
        return record or flow.metadata.get("trajudge")

    async def take(self, flow: "http.HTTPFlow") -> None:
        """Handle a request: a model call, or one of the site."""
        request, own = flow.request, int(flow.client_conn.sockname[1]) in self.ports
        host, port, path = request.host.lower(), request.port, request.path
        if own or (port in self.ports and host in ("127.0.0.1", "localhost")):
            task_port = self.port_of(flow) if own else self.ports[port]
            await self.own_request(flow, self.task_of(task_port), path)
            return
        agent = self.port_of(flow)
        if (api := self.api_at(host, port, path)) is not None:
            await self.call_model(flow, self.task_of(agent), api, path.removeprefix(api["path"]))
            return
        server = self.server_of(host, port, tls=request.scheme == "https")
        if server is None:
            flow.response = self.refusal(self.task_of(agent), host, request.method)
        elif request.method == "POST" and path.startswith(BEACON):
            task = self.task_of(agent)
            overlay = path.removeprefix(BEACON)[:40]
            self.note(task, "popup_closed", k=task.loads, overlay=overlay)
            flow.response = http.Response.make(204)
        else:
            await self.site_request(flow, server)

    async def own_request(self, flow: "http.HTTPFlow", task: Task, path: str) -> None:
        """Answer requests to the addon's own port, which are calls of model APIs."""
        for api in self.settings["apis"]:
            base = f"{API}{api['name']}"
            if path.startswith(f"{base}/"):
                await self.call_model(flow, task, api, path.removeprefix(base))
                return
        text = "This port is for calls of the model APIs that --api named."
        flow.response = _sentence(404, text)

    def purpose(self, flow: "http.HTTPFlow", url: str) -> Purpose:
        """Return the purpose of a request according to the browser, or for other programs to the
        setting."""
        method, named = flow.request.method, flow.request.headers
        if self.page_requests is not None and "sec-fetch-dest" not in named:
            page = bool(self.page_requests.search(f"{method} {url}"))
            return Purpose(page, True, "", "document" if page else "other")
        return purpose_of(method, named)

    async def site_request(self, flow: "http.HTTPFlow", server: Mapping[str, Any]) -> None:
        """Pass on a request of the site, or answer it with the due fault."""
        request, url = flow.request, flow.request.url
        port, purpose = self.port_of(flow), self.purpose(flow, url)
        if purpose.page:
            self.begin_at(port, f"{request.method} {url}")
        task = self.task_of(port)
        if request.headers.get("upgrade", "").lower() == "websocket":
            task.tunnels += 1
            self.direct(flow, server)
            return
        _end_to_end(request)
        began, fields = request.timestamp_start, request.headers.fields
        exchange = SiteExchange(task, purpose, request.method, url, began, fields)
        exchange.take(request.raw_content or b"")
        self.under_way.add(exchange)
        flow.metadata["trajudge"] = exchange
        if purpose.page:
            exchange.load = load = task.load(request.method, url)
            await self.hold_back(exchange, load, "before")
            fault = load.again or next((one for one in load.open if one["replaces"]), None)
            if fault is not None and (load.again or fault["replaces"] == "before"):
                self.answer_instead(flow, exchange, load, fault)
                return
            if any(one["kind"] in ("popup", "truncate") for one in load.open):
                # A 304 or a part has no document; what is encoded differently cannot be read.
                for name in ("if-none-match", "if-modified-since", "if-range", "range"):
                    request.headers.pop(name, None)
                request.headers["Accept-Encoding"] = "gzip"
        elif (fault := task.failing_asset(purpose.asset)) is not None:
            self.fail_asset(flow, exchange, fault)
            return
        if reason := await self.unreachable(server):
            where = f"{server['host']}:{server['port']}"
            exchange.error, exchange.ours = f"no answer from the site: {reason}", True
            flow.response = _sentence(502, f"{where} does not answer ({reason}): is the site up?")
            return
        self.direct(flow, server)
        exchange.sent = time.time()

    def begin_at(self, port: int, line: str) -> None:
        """Begin a task if a page load matches the signature."""
        match = self.signature.search(line) if self.signature else None
        if match:
            named = match[1] if match.re.groups else None
            self.begin(port, named or f"{self.settings['task']}-{self.number + 1}")

    # Faults.

    async def hold_back(self, exchange: SiteExchange, load: PageLoad, stage: str) -> None:
        """Wait for the delays of a stage without blocking other requests."""
        for fault in list(load.open):
            if fault["kind"] == "delay" and fault["stage"] == stage:
                self.fired(exchange, load, fault, stage=stage, seconds=fault["seconds"])
                start = time.time()
                await asyncio.sleep(fault["seconds"])
                exchange.spans.append(("injected", start, time.time()))

    def answer_instead(
        self, flow: "http.HTTPFlow", exchange: SiteExchange, load: PageLoad, fault: dict[str, Any]
    ) -> None:
        """Answer a page load with a fault that replaces the site's response."""
        exchange.replaced = exchange.ours = True
        task, kind, stage = exchange.task, fault["kind"], fault.get("stage", "before")
        headers = {"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store"}
        page = fault.get("page", "").replace("@URL@", escape(exchange.url)).encode()
        if kind == "reset":
            if load.again is None:
                self.fired(exchange, load, fault, stage=stage)
            until = time.monotonic() + RETRY_WINDOW
            task.resets[exchange.method, exchange.url] = (load, fault, until)
            load.again = None
            self.finish(exchange, -1, "", (), "reset by a fault")
            _reset(flow)
        elif kind == "session":
            cookies = flow.request.headers.get("cookie", "").split(";")
            carried = [name for pair in cookies if (name := pair.partition("=")[0].strip())]
            expired = carried if fault.get("cookies") is None else fault["cookies"]
            task.following[urljoin(exchange.url, fault["location"])] = (
                load,
                time.monotonic() + REDIRECT_WINDOW,
            )
            flow.response = http.Response.make(
                303, b"", {"Location": fault["location"], "Cache-Control": "no-store"}
            )
            for name in expired:
                flow.response.headers.add("Set-Cookie", f"{name}=; Path=/; Max-Age=0")
            self.fired(exchange, load, fault, stage=stage, status=303, cookies=expired)
        else:  # a status, or the page of a browser that is offline
            status = fault.get("status", 503)
            if not page:
                del headers["Content-Type"]
            if fault.get("retry_after") is not None:
                headers["Retry-After"] = str(fault["retry_after"])
            flow.response = http.Response.make(status, page, headers)
            self.fired(exchange, load, fault, stage=stage, status=status)
        self.mask_others(exchange, load, fault)

    def mask_others(self, exchange: SiteExchange, load: PageLoad, fault: dict[str, Any]) -> None:
        """Record the faults that another fault prevented."""
        for other in list(load.open):
            self.settle(exchange, load, other, "masked", reason=f"by {fault['id']}")

    def fail_asset(
        self, flow: "http.HTTPFlow", exchange: SiteExchange, fault: dict[str, Any]
    ) -> None:
        """Answer an asset with the fault of its page."""
        exchange.ours = True
        flow.response = http.Response.make(fault["status"], b"", {"Cache-Control": "no-store"})
        page = exchange.task.page
        if page is not None and fault in page.open:
            self.settle(exchange, page, fault, "fired", status=fault["status"], asset=exchange.url)
        exchange.faults.append(fault["id"])

    def fired(
        self, exchange: SiteExchange, load: PageLoad, fault: dict[str, Any], **details: Any
    ) -> None:
        exchange.faults.append(fault["id"])
        self.settle(exchange, load, fault, "fired", **details)

    def settle(
        self,
        exchange: SiteExchange,
        load: PageLoad,
        fault: dict[str, Any],
        outcome: str,
        reason: str = "",
        **details: Any,
    ) -> None:
        """Record the outcome of a fault at a page load."""
        if fault in load.open:
            load.open.remove(fault)
        self.note(
            exchange.task,
            "fault",
            k=load.k,
            fault=fault["id"],
            kind=fault["kind"],
            outcome=outcome,
            reason=reason,
            method=load.method,
            url=load.url,
            **details,
        )

    # Answers.

    async def responseheaders(self, flow: "http.HTTPFlow") -> None:
        """Decide whether a response is streamed or changed."""
        if (call := flow.metadata.get("trajudge-call")) is not None:
            self.read_answer(flow, call)
            return
        exchange: SiteExchange | None = flow.metadata.get("trajudge")
        if exchange is None or exchange.done:
            return
        exchange.first_byte = time.time()
        if exchange.ours or exchange.sent is None:
            return
        exchange.spans.append(("site", exchange.sent, exchange.first_byte))
        if exchange.load is not None and await self.replaced_after(flow, exchange, exchange.load):
            return
        exchange.sent, load = time.time(), exchange.load
        if load is not None or (exchange.purpose.asset and self.asset_faults):
            _no_store(flow.response.headers)

        def counted(piece: bytes) -> bytes:
            exchange.size += len(piece)
            return piece

        if load is None or self.leads_on(flow, exchange, load):
            flow.response.stream = counted
        elif cut := next((one for one in load.open if one["kind"] == "truncate"), None):
            flow.response.stream = self.cutting(exchange, load, cut)
        elif not any(one["kind"] == "popup" for one in load.open):
            flow.response.stream = counted

    async def replaced_after(
        self, flow: "http.HTTPFlow", exchange: SiteExchange, load: PageLoad
    ) -> bool:
        """Return True if a fault replaces a response that the site has given."""
        await self.hold_back(exchange, load, "after")
        fault = next((one for one in load.open if one["replaces"]), None)
        if fault is None or fault["replaces"] != "after":
            return False
        if fault["kind"] == "reset":
            self.answer_instead(flow, exchange, load, fault)
        else:
            exchange.instead = fault
        return True

    def leads_on(self, flow: "http.HTTPFlow", exchange: SiteExchange, load: PageLoad) -> bool:
        """Return True for a redirect, whose target belongs to the same page load."""
        location = flow.response.headers.get("location")
        if flow.response.status_code not in _REDIRECTS or not location:
            return False
        until = time.monotonic() + REDIRECT_WINDOW
        exchange.task.following[urljoin(exchange.url, location)] = (load, until)
        return True

    def cutting(
        self, exchange: SiteExchange, load: PageLoad, fault: dict[str, Any]
    ) -> Callable[[bytes], list[bytes]]:
        """Return a function that buffers a document and passes on its share; ``response`` ends
        it."""
        gathered = bytearray()

        def cut(piece: bytes) -> list[bytes]:
            gathered.extend(piece)
            if piece:
                return []
            kept = bytes(gathered[: int(len(gathered) * fault["share"])])
            exchange.size, exchange.replaced = len(kept), True
            exchange.error = CUT
            self.fired(exchange, load, fault, kept=len(kept), size=len(gathered))
            self.mask_others(exchange, load, fault)
            return [kept] if kept else []

        return cut

    def response(self, flow: "http.HTTPFlow") -> None:
        """Handle a complete response, and record the request."""
        response = flow.response
        if (call := flow.metadata.get("trajudge-call")) is not None:
            self.end_call(call, response.status_code, None)
            return
        exchange: SiteExchange | None = flow.metadata.get("trajudge")
        if exchange is None or exchange.done or response is None:
            return
        if not exchange.ours and exchange.sent is not None:
            exchange.spans.append(("site", exchange.sent, time.time()))
        load = exchange.load
        if load is not None and exchange.instead is not None:
            self.answer_instead(flow, exchange, load, exchange.instead)
            response = flow.response
        elif load is not None and not exchange.ours and not response.stream:
            self.change_document(flow, exchange, load)
        if not response.stream:
            exchange.size = len(response.raw_content or b"")
        fields = response.headers.fields
        reason = response.reason or _reason(response.status_code)
        self.finish(exchange, response.status_code, reason, fields, exchange.error)
        if exchange.error == CUT:
            flow.kill()

    def change_document(
        self, flow: "http.HTTPFlow", exchange: SiteExchange, load: PageLoad
    ) -> None:
        """Insert the overlays into a document."""
        response = flow.response
        headers = response.headers
        popups = [fault for fault in load.open if fault["kind"] == "popup"]
        unfit = unfit_for_overlay(
            headers.get("content-type", ""), headers.get("content-disposition", "")
        )
        if popups and not unfit:
            try:
                html = unpacked(response.raw_content or b"", headers.get("content-encoding", ""))
            except ValueError as error:
                unfit = str(error)
        if popups and not unfit:
            nonce = secrets.token_urlsafe(16)
            beacon = f"{urlsplit(exchange.url).netloc}{BEACON}"
            for name in _OF_THE_BYTES:
                headers.pop(name, None)
            for name in _POLICIES:
                values = headers.get_all(name)
                headers.set_all(name, [amended_policy(one, nonce, beacon) for one in values])
            overlays = b""
            for fault in popups:
                overlay, access = f"p{secrets.token_hex(6)}", fault["accessibility"]
                page = fault["page"].replace("@ID@", overlay).replace("@NONCE@", nonce)
                overlays += page.replace("@BEACON@", BEACON).encode("ascii")
                self.fired(exchange, load, fault, overlay=overlay, accessibility=access)
            html = amended_metas(html, nonce, beacon)
            end = html.lower().rfind(b"</body")
            end = len(html) if end < 0 else end
            response.content = html[:end] + overlays + html[end:]
        for fault in popups if unfit else ():
            self.settle(exchange, load, fault, "impossible", reason=unfit)

    def error(self, flow: "http.HTTPFlow") -> None:
        """Record a request that was aborted."""
        message = str(flow.error)[:200]
        self.reached.discard((flow.request.data.host, flow.request.data.port))
        status = flow.response.status_code if flow.response else -1
        if (call := flow.metadata.get("trajudge-call")) is not None:
            self.end_call(call, status, message)
        exchange: SiteExchange | None = flow.metadata.get("trajudge")
        if exchange is not None and not exchange.done:
            if exchange.sent is not None:
                exchange.spans.append(("site", exchange.sent, time.time()))
            headers = flow.response.headers.fields if flow.response else ()
            reason = flow.response.reason if flow.response else ""
            self.finish(exchange, status, reason, headers, f"broke off: {message}")

    def finish(
        self, exchange: SiteExchange, status: int, reason: str, headers: Fields, error: str | None
    ) -> None:
        """Record a request of the site: its line for the trace, later, and for a page load its
        event."""
        if exchange.done:
            return
        exchange.done, exchange.error, end = True, error, time.time()
        self.under_way.discard(exchange)
        if not self.finished:
            asyncio.get_running_loop().call_later(_PAUSE, self.write_requests)
        self.finished.append((exchange, status, reason, headers, end))
        load, total = exchange.load, end - exchange.began
        if load is None:
            return
        site, injected = exchange.seconds("site"), exchange.seconds("injected")
        self.note(
            exchange.task,
            "page",
            k=load.k,
            method=exchange.method,
            url=exchange.url,
            status=status,
            certain=exchange.purpose.certain,
            faults=exchange.faults,
            replaced=exchange.replaced,
            size=exchange.size,
            error=error,
            began=exchange.began,
            site_ms=_ms(site),
            injected_ms=_ms(injected),
            proxy_ms=_ms(total - site - injected),
        )

    def write_requests(self) -> None:
        """Append the lines of ended requests."""
        finished, self.finished = self.finished, []
        if not finished:
            return
        for exchange, status, reason, headers, end in finished:
            line = {
                "number": exchange.task.number,
                "began": exchange.began,
                "seconds": end - exchange.began,
                "wait": (exchange.first_byte or end) - exchange.began,
                "method": exchange.method,
                "url": exchange.url,
                "headers": _pairs(exchange.headers),
                "body": exchange.body.decode("utf-8", "replace"),
                "body_size": exchange.body_size,
                "status": status,
                "reason": reason,
                "response_headers": _pairs(headers),
                "size": exchange.size,
                "type": exchange.purpose.type,
                "k": exchange.load.k if exchange.load else None,
                "faults": exchange.faults,
                "error": exchange.error,
                "spans": [*exchange.spans, ("proxy", exchange.began, end)],
            }
            self.requests.write(json.dumps(line) + "\n")
        self.requests.flush()

    # Model calls.

    async def call_model(
        self, flow: "http.HTTPFlow", task: Task, api: Mapping[str, Any], path: str
    ) -> None:
        """Pass on a call; only hop-by-hop headers and the encoding are changed, so that the
        response can be read."""
        request, start = flow.request, path.partition("?")[0]
        call = ModelCall(task, api["name"], start, request.timestamp_start)
        call.take(request.raw_content or b"")
        if request.method == "POST":
            flow.metadata["trajudge-call"] = call
        _end_to_end(request)
        request.path = api["path"] + path or "/"
        default = _PORTS["https" if api["tls"] else "http"]
        name = api["host"] if api["port"] == default else f"{api['host']}:{api['port']}"
        request.authority = ""
        request.headers["Host"], request.headers["Accept-Encoding"] = name, "identity"
        self.direct(flow, api)
        reason = await self.unreachable(api)
        call.sent = time.time()
        if reason:  # in a form that the SDKs of OpenAI and Anthropic show: they pass over pages
            message = f"the model API at {api['host']}:{api['port']} does not answer: {reason}"
            text = {"type": "error", "error": {"type": "api_error", "message": message}}
            kind = {"Content-Type": "application/json"}
            flow.response = http.Response.make(502, json.dumps(text).encode(), kind)
            self.end_call(call, -1, reason[:200])

    def read_answer(self, flow: "http.HTTPFlow", call: ModelCall) -> None:
        """Stream a response, and read the usage of the call from it."""
        if call.done:
            return
        kind = flow.response.headers.get("content-type", "").lower()
        answer = call.answer = StreamedAnswer() if "text/event-stream" in kind else None

        def look(piece: bytes) -> bytes:
            if answer is None:
                if len(call.whole) < _MAX_ANSWER:
                    call.whole.extend(piece)
                return piece
            arrived = time.time()
            answer.feed(piece)
            if answer.began and call.first is None:
                call.first = arrived
            return piece

        flow.response.stream = look

    def end_call(self, call: ModelCall, status: int, error: str | None) -> None:
        """Record a call; ``usage`` None: the response did not report it."""
        if call.done:
            return
        call.done, end = True, time.time()
        request = _fields(call.asked)
        requested = str(request.get("model") or "")
        if call.answer is not None:
            usage, model = call.answer.usage, call.answer.model or requested
            early = None if call.answer.ended else error or "the stream ended early"
            error = call.answer.error or early
        else:
            fields = _fields(call.whole)
            usage, named = parse_usage(fields.get("usage")), fields.get("model")
            model = named if isinstance(named, str) else requested
            error = error or (f"status {status}" if status >= 400 else None)
        self.note(
            call.task,
            "model",
            k=call.task.loads,
            api=call.api,
            path=call.path,
            model=model or None,
            stream=bool(request.get("stream")),
            status=status,
            usage=usage,
            ttft_ms=None if call.first is None else _ms(call.first - call.began),
            duration_ms=_ms(end - call.began),
            proxy_ms=_ms((call.sent or end) - call.began),
            error=error,
        )


def modes_of(port: int, door: int) -> list[str]:
    """Return mitmproxy's modes for a port to agents, and one to their model calls."""
    return [f"regular@127.0.0.1:{port}", f"reverse:http://127.0.0.1:9@127.0.0.1:{door}"]


async def _listening(ports: list[int]) -> None:
    """Wait until all ports accept connections."""
    for port in ports:
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.01)
            else:
                writer.close()
                break


def _reset(flow: "http.HTTPFlow") -> None:
    """Reset a client's connection, with HTTP/2 only the stream."""
    if not flow.request.is_http2:
        with suppress(AttributeError, KeyError, OSError):
            handlers = ctx.master.addons.get("proxyserver").connections
            writer = handlers[flow.client_conn.id].transports[flow.client_conn].writer
            linger = struct.pack("ii", 1, 0)
            connection = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    flow.kill()


addons = [FaultAddon()] if http is not None else []
