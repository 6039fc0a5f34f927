"""``trajudge env serve`` and ``env play``: what listens where, until it is over."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from secrets import token_urlsafe
from socket import socket

from aiohttp import web

from trajudge.environments.hosting.control import Control
from trajudge.environments.hosting.person import PERSON, PersonPage, verdict_table
from trajudge.environments.hosting.runs import HostedRun, RunHost, TaskRequest
from trajudge.environments.serving.server import BODY
from trajudge.util.errors import UserError
from trajudge.util.files import make_folder
from trajudge.util.machine import stop_event
from trajudge.util.tables import print_tables

Listener = tuple[web.Application, socket]


def port_of(address: socket) -> int:
    """Return the port that a socket listens on."""
    return int(address.getsockname()[1])


def site_application(host: RunHost) -> web.Application:
    """Return the pages of all runs, each at its own origin."""
    application = web.Application(client_max_size=BODY)
    application.router.add_route("*", "/{path:.*}", host.serve_page)
    return application


@asynccontextmanager
async def listening(host: RunHost, listeners: Sequence[Listener]) -> AsyncIterator[None]:
    """Answer on the sockets, which are closed at the end, and end the runs whose time is over."""
    runners: list[web.AppRunner] = []
    watching = asyncio.create_task(host.watch())
    try:
        for application, address in listeners:
            runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
            runners.append(runner)
            await runner.setup()
            await web.SockSite(runner, address).start()
        yield
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        for runner in runners:
            await runner.cleanup()
        await asyncio.to_thread(host.close)


def default_origin(site: socket) -> str:
    """Return the form of the runs' origins on this machine."""
    return f"http://{{run}}.localhost:{port_of(site)}"


def new_token(folder: Path) -> tuple[str, Path]:
    """Draw a token and write it to a file that only this user reads. Raises UserError."""
    token, file = token_urlsafe(32), folder / "harness-token"
    try:
        make_folder(folder, "--out")
        file.unlink(missing_ok=True)
        file.touch(mode=0o600)
        file.write_text(token)
    except OSError as error:
        raise UserError(f"{file}: cannot be written ({error.strerror or error})") from error
    return token, file


async def serve_runs(
    host: RunHost, token: str, site: socket, control: socket, others: Sequence[Listener] = ()
) -> None:
    """Serve runs until Ctrl-C or SIGTERM."""
    stop = stop_event()
    applications = [(site_application(host), site), (Control(host, token).application(), control)]
    async with listening(host, [*applications, *others]):
        await stop.wait()


async def play_run(host: RunHost, wish: TaskRequest, site: socket, control: socket) -> None:
    """Let a person play a run, and print what it came to. Raises NoSuchTask."""
    stop = stop_event()
    hosted = host.open(wish.model_copy(update={"agent": PERSON, "answer": "none"}))
    address = f"127.0.0.1:{port_of(control)}"
    page = PersonPage(host, hosted, address)
    sys.stdout.write(f"{hosted.run.goal}\n\n  site       {hosted.run.start_url}\n")
    sys.stdout.write(f"  I am done  http://{address}/\n")
    sys.stdout.flush()
    async with listening(host, [(site_application(host), site), (page.application(), control)]):
        await _over(hosted, page, stop)
        hosted.end("expired")
        recorded = await asyncio.to_thread(host.settle, hosted)
        await asyncio.sleep(0.5)  # the person's page comes first
    print_tables([verdict_table(recorded.finding)])


async def _over(hosted: HostedRun, page: PersonPage, stop: asyncio.Event) -> None:
    """Wait until the run is over, or the person stops it."""
    while hosted.status == "open" and not stop.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), 0.2)
    if not stop.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(page.ended.wait(), 2)
