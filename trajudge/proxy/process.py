"""Run mitmproxy with the addon as a process, and serve the control address by which harnesses
begin and end tasks."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import ssl
import time
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import Process
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, NamedTuple

from aiohttp import web

from trajudge.proxy import addon
from trajudge.proxy.pages import page_of
from trajudge.proxy.plan import FaultPlan
from trajudge.proxy.results import har, task_results
from trajudge.util.commands import MOST_PAGE_LOADS
from trajudge.util.errors import UserError
from trajudge.util.files import make_folder, open_regular, read_regular, save_bytes
from trajudge.util.machine import PinnedPackage, cache_folder

MITMPROXY = PinnedPackage(
    "mitmproxy",
    Path(__file__).with_name("pins.txt"),
    module="mitmproxy",
    variable="TRAJUDGE_MITMPROXY_PYTHON",
)
"""An environment of mitmproxy's own, which tests make: its pins exclude those of the SDKs."""
VARIABLE = "TRAJUDGE_MITMDUMP"
HOST = "127.0.0.1"
CONTROL = "/__ctl/"
_START_PATIENCE, _END_PATIENCE = 60.0, 5.0  # seconds
_STARTS = 3  # a port that was free may be taken before mitmproxy listens on it
_TAKEN = "address already in use"
_LONGEST_LINE = 64 * 2**20  # bytes
_ENDED = "mitmproxy ended by itself: the run's figures end there"
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
# OpenSSL (and with it Python), requests, curl, Node and Deno.
TRUST_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "DENO_CERT")
NODE_VARIABLE = "NODE_EXTRA_CA_CERTS"


class SiteServer(NamedTuple):
    """The server of a host's requests."""

    host: str
    port: int
    tls: bool


class SiteHost(NamedTuple):
    """A host of the site, ``*.`` before it for all subdomains; ``server`` is its server, None
    for the one that its name resolves to."""

    host: str
    server: SiteServer | None


class ModelApi(NamedTuple):
    """A model API; ``path`` is prepended to that of a request."""

    name: str
    server: SiteServer
    path: str


@dataclass(frozen=True, kw_only=True)
class ProxySettings:
    """Settings of the proxy.

    ``signature`` matches ``METHOD URL`` of a page load that begins a task; its first group, if any,
    is the task's name. ``page_requests`` matches it for page loads by programs that are not
    browsers. ``horizon`` is the number of a task's page loads, for ``random(n)``. The health check
    answers with ``nonce``, which differs between proxies. ``mitmdump`` is the program.
    """

    plan: FaultPlan
    sites: tuple[SiteHost, ...]
    out: Path
    seed: int
    port: int
    task: str = "task"
    horizon: int | None = None
    apis: tuple[ModelApi, ...] = ()
    signature: str | None = None
    page_requests: str | None = None
    mitmdump: Path | None = None
    nonce: str = field(default_factory=lambda: secrets.token_hex(16))
    token: str = field(default_factory=lambda: secrets.token_hex(16))

    def of_addon(self, link: int) -> dict[str, Any]:
        """Return the addon's settings; ``link`` is the port of the connection for orders."""
        faults = [
            fault.model_dump(mode="json", exclude={"policy"})
            | {"policy": fault.policy.model_dump(exclude_none=True)}
            | {"replaces": fault.replaces, "page": page_of(fault)}
            for fault in self.plan.faults
        ]
        same = ("seed", "task", "horizon", "nonce", "signature", "page_requests")
        return {
            **{name: getattr(self, name) for name in same},
            "out": str(self.out),
            "plan": {"faults": faults},
            "digest": self.plan.digest,
            "sites": [
                {"host": site.host, "server": site.server and site.server._asdict()}
                for site in self.sites
            ],
            "apis": [
                {"name": api.name, "path": api.path, **api.server._asdict()} for api in self.apis
            ],
            "link": {"port": link, "token": self.token},
        }


def find_mitmdump(named: Path | None = None) -> Path:
    """Return mitmproxy's program: ``named``, that of the environment variable, on the PATH, or
    in its own environment. Raises UserError with how to install it."""
    name = named or os.environ.get(VARIABLE)
    if name:
        program = shutil.which(name)
        if program is None:
            origin = "--mitmdump" if named else VARIABLE
            raise UserError(f"{origin} {name}: no program: name mitmproxy's mitmdump")
        return Path(program)
    own = MITMPROXY.folder / "bin" / "mitmdump"
    if program := shutil.which("mitmdump") or shutil.which(own):
        return Path(program)
    raise UserError(
        "mitmproxy is not installed: install it with  pipx install mitmproxy , or name its "
        f"mitmdump with --mitmdump FILE or {VARIABLE}=FILE"
    )


class RunningProxy:
    """A running mitmproxy, created by ``running``.

    ``summaries`` are the figures of ended tasks, ``failures`` why others have none; ``certificate``
    is the authority's that signs the certificates for agents.
    """

    def __init__(self, settings: ProxySettings) -> None:
        self.settings = settings
        self.summaries: list[dict[str, Any]] = []
        self.failures: list[Exception] = []
        self.port = self.door = self.control_port = 0
        self.certificate = cache_folder() / "mitmproxy-authority" / "mitmproxy-ca-cert.pem"
        self._offsets = dict.fromkeys(("events.jsonl", "requests.jsonl"), 0)
        self._records: dict[int, dict[str, list[dict[str, Any]]]] = {}
        self._names: Counter[str] = Counter()
        self._asking = asyncio.Lock()
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._linked = asyncio.Event()
        self._closed = asyncio.Event()
        self._writer: StreamWriter | None = None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def control_url(self) -> str:
        return f"http://{HOST}:{self.control_port}{CONTROL}{self.settings.token}"

    def api_url(self, name: str) -> str:
        """Return the base address of a model API."""
        return f"http://{HOST}:{self.door}{addon.API}{name}"

    def chromium_flags(self) -> list[str]:
        """Return Chromium's flags to use the proxy for all requests, including loopback, to
        trust it, and to send ``Sec-Fetch`` headers of the site's requests over http as well."""
        plain = [
            f"http://{site.host}{port}"
            for site in self.settings.sites
            for port in ("", f":{site.server.port}" if site.server else "")
        ]
        return [
            f"--proxy-server={self.url}",
            "--proxy-bypass-list=<-loopback>",
            f"--ignore-certificate-errors-spki-list={key_hash(self.certificate)}",
            f"--unsafely-treat-insecure-origin-as-secure={','.join(dict.fromkeys(plain))}",
        ]

    def trust_variables(self) -> dict[str, str]:
        """Return environment variables with which a program trusts the proxy in addition to the
        machine's authorities."""
        paths = ssl.get_default_verify_paths()
        names = (name for name in (paths.cafile, paths.openssl_cafile) if name)
        machine = next((Path(name) for name in names if Path(name).is_file()), None)
        known = read_regular(machine) if machine else b""
        bundle = self.certificate.with_name("authorities.pem")
        save_bytes(bundle, known + b"\n" + read_regular(self.certificate))
        return {
            **dict.fromkeys(TRUST_VARIABLES, str(bundle)),
            NODE_VARIABLE: str(self.certificate),
            "TRAJUDGE_PROXY_CERTIFICATE": str(self.certificate),
        }

    # Orders to the addon, and what it sends.

    async def order(self, do: str, **fields: Any) -> dict[str, Any]:
        """Send the addon an order and return its answer. Raises UserError if mitmproxy ended, or
        if the figures of a task cannot be computed."""
        async with self._asking:
            if self._writer is None or self._closed.is_set():
                raise UserError(_ENDED)
            failures = len(self.failures)
            self._writer.write(json.dumps({"do": do, **fields}).encode() + b"\n")
            answer = await self._answers.get()
            if len(self.failures) > failures:
                raise self.failures[-1]
            if not answer:  # the link closed meanwhile
                raise UserError(_ENDED)
            return answer

    async def listen(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Read the addon's messages until the connection closes."""
        try:
            first = json.loads(await reader.readline())
            if self._writer is not None or first.get("token") != self.settings.token:
                return
            self._writer = writer
            self._linked.set()
            while line := await reader.readline():
                self._take(json.loads(line))
        except (OSError, ValueError):  # the link broke
            pass
        finally:
            if self._writer is writer:
                self._closed.set()
                self._answers.put_nowait({})  # whoever waits for an answer gets none
            writer.close()

    def _take(self, message: Mapping[str, Any]) -> None:
        """Handle an answer or the end of a task. A task whose figures cannot be computed does
        not affect others."""
        if "ended" not in message:
            self._answers.put_nowait(message["answer"])
            return
        try:
            self._end_task(message["ended"])
        except Exception as error:
            self.failures.append(error)

    def _read_records(self) -> None:
        """Read the addon's new records, except for an incomplete last line. Raises UserError for
        a damaged line, after which the next call continues."""
        for name in self._offsets:
            path = self.settings.out / name
            with open_regular(path) as file:
                file.seek(self._offsets[name])
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    at, self._offsets[name] = self._offsets[name], self._offsets[name] + len(line)
                    try:
                        record = json.loads(line)
                    except ValueError as error:
                        raise UserError(
                            f"{path}: a record is damaged ({error}, at byte {at}): its task has no "
                            "figures: run the task again in another folder"
                        ) from None
                    if "number" in record:
                        kinds = self._records.setdefault(record["number"], {})
                        kinds.setdefault(name, []).append(record)

    def _end_task(self, ended: Mapping[str, Any]) -> None:
        """Compute the results of a task that ended; write its trace and its last events."""
        self._read_records()
        records = self._records.pop(ended["number"])
        requests = records.get("requests.jsonl", [])
        recovered, summary = task_results(
            self.settings.plan, records["events.jsonl"], requests, ended
        )
        summary["trace"] = self._trace_name(ended["id"])
        save_bytes(self.settings.out / summary["trace"], json.dumps(har(requests)).encode())
        self.summaries.append(summary)
        last = [{"type": "recovery", **one} for one in recovered]
        for event in (*last, {"type": "task_end", **summary}):
            line = {"type": event["type"], "t": round(ended["ended"], 6), "task": ended["id"]}
            self.write({**line, "number": ended["number"], **event})
        self._read_records()
        self._records.pop(ended["number"], None)

    def write(self, event: Mapping[str, Any]) -> None:
        """Append an event to the addon's events, in one write."""
        with (self.settings.out / "events.jsonl").open("ab", buffering=0) as file:
            file.write(json.dumps(event).encode() + b"\n")

    def _trace_name(self, task: str) -> str:
        """Return a unique file name for a task's trace: names of tasks may repeat, or not be
        valid file names."""
        stem = _UNSAFE.sub("_", task)[:80] or "task"
        self._names[stem] += 1
        number = self._names[stem]
        return f"traces/{stem}.har" if number == 1 else f"traces/{stem}-{number}.har"

    # The control address.

    async def control(self, request: web.Request) -> web.Response:
        """Answer ``POST task``, ``POST end``, ``POST port`` or ``GET health``; 503 if mitmproxy
        ended."""
        try:
            return await self._controlled(request)
        except UserError as error:
            return web.json_response({"error": str(error)}, status=503)

    async def _controlled(self, request: web.Request) -> web.Response:
        if request.match_info["token"] != self.settings.token:
            wrong = "the token is another proxy's: use the address this proxy printed"
            return web.json_response({"error": wrong}, status=403)
        action = f"{request.method} {request.match_info['action']}"
        if action == "GET health":
            return web.json_response({"nonce": self.settings.nonce, "pid": os.getpid()})
        if action == "POST end":
            count = len(self.summaries)
            await self.order("end", port=self.port)
            return web.json_response(self.summaries[-1] if len(self.summaries) > count else {})
        if action not in ("POST task", "POST port"):
            text = f"no action {action!r}: POST task, POST end, POST port, GET health"
            return web.json_response({"error": text}, status=404)
        try:
            task = json.loads(await request.read())
        except ValueError:
            task = None
        task = task if isinstance(task, dict) else {}
        if mistake := self._mistake(task):
            return web.json_response({"error": mistake}, status=400)
        opened = {"port": self.port, "door": self.door}
        if action == "POST port":
            opened = await self.order("open")
        fields = {"seed": task.get("seed"), "horizon": task.get("horizon")}
        begun = await self.order("begin", port=opened["port"], task=task["id"], **fields)
        apis = {
            api.name: f"http://{HOST}:{opened['door']}{addon.API}{api.name}"
            for api in self.settings.apis
        }
        return web.json_response({**begun, "port": opened["port"], "apis": apis})

    def _mistake(self, task: Mapping[str, Any]) -> str:
        """Return the error in a request to begin a task; "" for a valid one."""
        name, seed, horizon = (task.get(field) for field in ("id", "seed", "horizon"))
        if not isinstance(name, str) or not name or not all(map(_may_be_count, (seed, horizon))):
            return (
                'send {"id": "shop.1", "seed": 0, "horizon": 6}; seed and horizon may be left out'
            )
        if horizon and horizon > MOST_PAGE_LOADS:
            return f"the horizon {horizon} is more than {MOST_PAGE_LOADS} page loads"
        if self.settings.plan.needs_horizon and not (horizon or self.settings.horizon):
            return "a fault of the plan is random(n): send the task's horizon too"
        return ""


def _may_be_count(value: object) -> bool:
    """Return True for None or a non-negative integer."""
    return value is None or (type(value) is int and value >= 0)


@asynccontextmanager
async def running(settings: ProxySettings) -> AsyncIterator[RunningProxy]:
    """Run a proxy in this context. Raises UserError without mitmproxy, for a port or folder in
    use, and at the end if mitmproxy ended early or a task has no figures."""
    mitmdump = settings.mitmdump or find_mitmdump()
    if (settings.out / "events.jsonl").exists():
        raise UserError(f"--out {settings.out} holds a run already: name another folder")
    proxy = RunningProxy(settings)
    _free_ports(settings.port)  # one that is not free is refused before there is a folder
    make_folder(settings.out, "--out")
    make_folder(settings.out / "traces", "--out")
    proxy.certificate.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    link = await asyncio.start_server(proxy.listen, HOST, 0, limit=_LONGEST_LINE)
    site = web.Application()
    site.router.add_route("*", CONTROL + "{token}/{action}", proxy.control)
    runner = web.AppRunner(site, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, HOST, 0).start()
    proxy.control_port = runner.addresses[0][1]
    with TemporaryDirectory(prefix="trajudge-proxy-") as folder, TemporaryFile() as log:
        file = Path(folder) / "settings.json"
        file.write_text(json.dumps(settings.of_addon(link.sockets[0].getsockname()[1])))
        try:
            process = await _started(proxy, mitmdump, file, log)
            try:
                yield proxy
            finally:
                alive = process.returncode is None and not proxy._closed.is_set()
                await _end(proxy, process)
        finally:
            link.close()
            await runner.cleanup()
        tasks = len(proxy.summaries)
        proxy.write({"type": "end", "t": round(time.time(), 6), "tasks": tasks})
        (settings.out / "requests.jsonl").unlink(missing_ok=True)  # the traces hold it
        if proxy.failures:
            raise proxy.failures[0]
        if not alive:
            raise UserError(f"mitmproxy ended by itself{_last_line(log)}: the figures end there")


def _free_ports(port: int) -> tuple[int, int]:
    """Return two free ports, the first as given, 0 for any. Raises UserError."""
    with socket.socket() as first, socket.socket() as second:
        first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            first.bind((HOST, port))
        except OSError as error:
            reason = error.strerror or error
            raise UserError(f"--port {port}: {reason}: name a free port, or 0 for any") from error
        second.bind((HOST, 0))
        return first.getsockname()[1], second.getsockname()[1]


async def _start(proxy: RunningProxy, mitmdump: Path, settings: Path, log: Any) -> Process:
    options: dict[str, object] = {
        "trajudge": settings,
        "confdir": proxy.certificate.parent,
        "connection_strategy": "lazy",
        "upstream_cert": "false",
        "flow_detail": 0,
        "termlog_verbosity": "error",
    }
    words = [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
    modes = [word for mode in addon.modes_of(proxy.port, proxy.door) for word in ("--mode", mode)]
    return await asyncio.create_subprocess_exec(
        *(str(mitmdump), "-s", str(addon.__file__), *modes, *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        process_group=0,  # Ctrl-C is our business: the tasks end first
    )


async def _started(proxy: RunningProxy, mitmdump: Path, settings: Path, log: Any) -> Process:
    """Start mitmproxy and wait until the addon is connected. Raises UserError."""
    for left in reversed(range(_STARTS)):
        proxy.port, proxy.door = _free_ports(proxy.settings.port)
        process = await _start(proxy, mitmdump, settings, log)
        waits = [asyncio.create_task(proxy._linked.wait()), asyncio.create_task(process.wait())]
        await asyncio.wait(waits, timeout=_START_PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        if proxy._linked.is_set():
            return process
        await _end(proxy, process)
        reason = _last_line(log)
        if not left or _TAKEN not in reason:
            break
        for name in proxy._offsets:
            (proxy.settings.out / name).unlink(missing_ok=True)
    raise UserError(f"mitmproxy did not start{reason}: try  mitmdump --version")


async def _end(proxy: RunningProxy, process: Process) -> None:
    """End all tasks, then close the connection, which ends mitmproxy."""
    if proxy._writer is not None and process.returncode is None:
        proxy._writer.write_eof()
        waits = [asyncio.create_task(proxy._closed.wait())]
        await asyncio.wait(waits, timeout=_END_PATIENCE)
    try:
        async with asyncio.timeout(_END_PATIENCE if proxy._linked.is_set() else 0):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _last_line(log: Any) -> str:
    """Return mitmproxy's last output in parentheses; "" without output."""
    log.seek(0)
    lines = log.read().decode("utf-8", "replace").strip().splitlines()
    return f" ({lines[-1].strip()[:300]})" if lines else ""


def key_hash(certificate: Path) -> str:
    """Return the hash of a certificate's public key in Chromium's format, base64 of SHA-256. All
    certificates by mitmproxy have the key of its authority."""
    der = ssl.PEM_cert_to_DER_cert(read_regular(certificate).decode("ascii"))
    signed = _elements(_elements(der)[0][1])[0][1]
    fields = _elements(signed)  # version, number, algorithm, issuer, dates, subject, key
    return base64.b64encode(hashlib.sha256(fields[6][0]).digest()).decode()


def _elements(der: bytes) -> list[tuple[bytes, bytes]]:
    """Return the elements of a DER sequence, each with and without its header."""
    elements, at = [], 0
    while at < len(der):
        size, head = der[at + 1], 2
        if size & 0x80:
            head += size & 0x7F
            size = int.from_bytes(der[at + 2 : at + head])
        elements.append((der[at : at + head + size], der[at + head : at + head + size]))
        at += head + size
    return elements
