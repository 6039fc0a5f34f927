"""One server on loopback for many runs, each at an origin of its own: ``http://RUN.localhost``.

Nothing secret is sent: pages are rendered from the state, and whether a task is done is decided
out of band. What a run answers is in ``pages``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from secrets import token_bytes
from threading import Thread

from aiohttp import web

from trajudge.environments.model.config import Config
from trajudge.environments.model.payload import Payload
from trajudge.environments.serving.pages import PageRequest, PageResponse, answer
from trajudge.environments.serving.run import ServedRun, open_run

BODY = 64 * 1024


class Server:
    """The runs that are open. ``secret`` keys their codes; the same secret, the same codes."""

    def __init__(self, secret: bytes) -> None:
        self.port = 0
        self._secret = secret
        self._runs: dict[str, ServedRun] = {}

    def open(
        self,
        config: Config,
        name: str = "",
        goal: str | None = None,
        payload: Payload | None = None,
    ) -> ServedRun:
        """Return a fresh run, reachable at once; raises what ``open_run`` raises."""
        run = open_run(config, self._secret, name, goal, payload)
        self._runs[run.id] = run
        return run

    @property
    def runs(self) -> int:
        """How many runs are open."""
        return len(self._runs)

    def close(self, run: ServedRun) -> None:
        """Forget a run and its state."""
        if self._runs.pop(run.id, None) is not None:
            with run.lock:
                run.state.close()

    async def handle(self, request: web.Request) -> web.Response:
        """Answer a request with the run that its host names."""
        run = self._runs.get(request.host.partition(".")[0])
        if run is None:
            return web.Response(status=404, text="no such run")
        return await send_page(run, answer(run, await read_request(request)))


async def read_request(request: web.Request) -> PageRequest:
    """Read a browser's request."""
    posted = (await request.post()).items()
    # Browsers send every line break as two characters.
    form = {k: v.replace("\r\n", "\n") for k, v in posted if isinstance(v, str)}
    return PageRequest(request.method, request.path, request.query, form, request.headers)


async def send_page(run: ServedRun, response: PageResponse) -> web.Response:
    """Return what a run answered as a response, which its noise may hold back."""
    if response.content_type == "text/html":
        await asyncio.sleep(_latency(run))
    body = response.body.encode() if isinstance(response.body, str) else response.body
    kind = response.content_type
    charset = "utf-8" if kind.startswith("text/") else None
    return web.Response(
        status=response.status,
        body=body,
        content_type=kind,
        charset=charset,
        headers=response.headers,
    )


def _latency(run: ServedRun) -> float:
    return sum(item.seconds for item in run.noise if item.kind == "latency")


@contextmanager
def serve(secret: bytes | None = None) -> Iterator[Server]:
    """Open a server on 127.0.0.1 at a port that the system chooses, in a thread of its own; without
    a ``secret`` one is drawn."""
    server = Server(secret or token_bytes(32))
    with loop_in_thread() as loop:
        runner = asyncio.run_coroutine_threadsafe(_start(server), loop).result()
        try:
            yield server
        finally:
            asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()


@contextmanager
def loop_in_thread() -> Iterator[asyncio.AbstractEventLoop]:
    """Run an event loop in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _start(server: Server) -> web.AppRunner:
    application = web.Application(client_max_size=BODY)
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.port = runner.addresses[0][1]
    return runner
