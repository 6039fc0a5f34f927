"""Chromium as a process of ours: started on a pipe, with Playwright as a guest on it.

Chromium opens no debugging port: whoever reached one could read this user's files. Playwright comes
in through a WebSocket on loopback whose path is a secret of this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from secrets import token_urlsafe
from threading import Thread
from typing import IO, TYPE_CHECKING

from aiohttp import web

from trajudge.environments.chromium.protocol import (
    CLOSED,
    Incoming,
    Protocol,
    ProtocolError,
    playwright_error,
)
from trajudge.util.errors import UserError
from trajudge.util.files import read_regular

if TYPE_CHECKING:
    from playwright.async_api import Browser as Chromium
    from playwright.async_api import Playwright

ABANDONED = 60.0  # seconds after which a folder that nobody holds is removed
CLOSE_PATIENCE = 5.0
_PROFILE = "trajudge-chromium-"
_LOCK = "trajudge.lock"
_PIPE_BYTES = 2**20  # what Linux grants everyone: a large tree then comes in few pieces
_READS, _WRITES = 3, 4  # Chromium's ends of the pipe
_ABOVE = 10  # our ends must not stand where Chromium's will

# Of these Playwright passes the first group to the Chromium that it starts itself, and what it does
# with a page rests on them.
FLAGS = (
    "--allow-pre-commit-input",
    "--disable-back-forward-cache",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-breakpad",
    "--disable-component-extensions-with-background-pages",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-features=AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose,"
    "HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,LensOverlay,MediaRouter,PaintHolding,"
    "ThirdPartyStoragePartitioning,AvoidCorsURLLoaderRestartOnRedirect,OptimizationHints,"
    "NetworkTimeServiceQuerying,AimEnabled,PreconnectToSearch",
    "--disable-field-trial-config",
    "--disable-hang-monitor",
    "--disable-infobars",
    "--disable-ipc-flooding-protection",
    "--disable-popup-blocking",
    "--disable-prompt-on-repost",
    "--disable-renderer-backgrounding",
    "--disable-search-engine-choice-screen",
    "--disable-stack-profiler",
    "--enable-features=CDPScreenshotNewSurface,SkipListAccountsWithoutGaiaCookies",
    "--enable-unsafe-swiftshader",
    "--metrics-recording-only",
    "--no-default-browser-check",
    "--no-service-autorun",
    "--password-store=basic",
    "--unsafely-disable-devtools-self-xss-warnings",
    "--use-mock-keychain",
    "--headless",
    "--mute-audio",
    # Ours: the same pictures everywhere, nothing asked of other hosts, and one process for all
    # pages of a context: each run is a site of its own, and a process costs as much as two pages.
    "--renderer-process-limit=1",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-lcd-text",
    "--disable-smooth-scrolling",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
    "--no-startup-window",
)

BLINK_SETTINGS = (
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,"
    "primaryPointerType=4,availablePointerTypes=4"
)
# Without them a quarter less CPU goes into a page, and none of its boxes is another.
NO_PICTURES = ("--disable-threaded-compositing", f"{BLINK_SETTINGS},imagesEnabled=false")


class ChromiumProcess:
    """A Chromium on a pipe: ``browser`` is Playwright's view of it, ``protocol`` ours."""

    def __init__(self) -> None:
        self.protocol = Protocol(self._send, self._relay)
        _remove_abandoned()
        self._profile = tempfile.mkdtemp(prefix=_PROFILE)
        self._held = _hold(Path(self._profile))
        self._log = Path(self._profile) / "chromium.log"
        self._to_guest: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._browser: Chromium | None = None
        self._to_chromium: asyncio.WriteTransport
        self._from_chromium: asyncio.ReadTransport
        self._guests: web.AppRunner | None = None
        self._ended = asyncio.Event()
        self._pid = 0

    @property
    def browser(self) -> Chromium:
        """Playwright's view of it. Raises ProtocolError where it was not started."""
        if self._browser is None:
            raise ProtocolError(CLOSED)
        return self._browser

    @property
    def usable(self) -> bool:
        """Tell whether it runs and Playwright is connected."""
        return not self._ended.is_set() and self.browser.is_connected()

    async def start(
        self, playwright: Playwright, executable: str, flags: Sequence[str], patience: float
    ) -> None:
        """Start it. Raises UserError if it ends at once, or is not there after ``patience``
        seconds."""
        try:
            async with asyncio.timeout(patience):
                await self._spawn([executable, *flags, f"--user-data-dir={self._profile}"])
                await self.protocol.open()
                self._browser = await playwright.chromium.connect_over_cdp(await self._invite())
        except TimeoutError as error:
            await self.stop()
            raise UserError(
                f"{executable} did not start within {patience:g} seconds: run it again when the "
                "machine is less busy, or with fewer --workers"
            ) from error
        except (OSError, ProtocolError, playwright_error()) as error:
            reason = self._complaint() or str(error).splitlines()[0]
            await self.stop()
            raise UserError(f"{executable} does not start ({reason}): try it by hand") from error

    async def stop(self) -> None:
        """End it, if it runs, and remove what it wrote. One that never came up is not asked."""
        if self._pid and not self._ended.is_set():
            if self._browser:
                closing = self.protocol.ask("Browser.close", None, "")
                with contextlib.suppress(ProtocolError, TimeoutError):
                    await asyncio.wait_for(closing, CLOSE_PATIENCE)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._ended.wait(), CLOSE_PATIENCE)
            if not self._ended.is_set():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._pid, signal.SIGKILL)
                await self._ended.wait()
        with contextlib.suppress(playwright_error(), TimeoutError):
            if self._browser:
                await asyncio.wait_for(self._browser.close(), CLOSE_PATIENCE)
        if self._guests:
            await self._guests.cleanup()
        shutil.rmtree(self._profile, ignore_errors=True)
        self._held.close()

    async def _spawn(self, command: Sequence[str]) -> None:
        loop = asyncio.get_running_loop()
        to_read, to_write = _pipe()
        from_read, from_write = _pipe()
        self._pid = _spawned(command, self._log, to_read, from_write)
        incoming = Incoming(self.protocol.receive, self._pipe_ended)
        self._from_chromium, _ = await loop.connect_read_pipe(
            lambda: incoming, os.fdopen(from_read, "rb", 0)
        )
        self._to_chromium, _ = await loop.connect_write_pipe(
            asyncio.BaseProtocol, os.fdopen(to_write, "wb", 0)
        )
        Thread(target=self._await_end, args=(loop,), daemon=True).start()

    def _await_end(self, loop: asyncio.AbstractEventLoop) -> None:
        """Collect the process, in a thread of its own: no signal handler, no polling."""
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)
        with contextlib.suppress(RuntimeError):  # the loop was closed before it ended
            loop.call_soon_threadsafe(self._process_ended)

    def _process_ended(self) -> None:
        self._ended.set()
        self._from_chromium.close()
        self._to_chromium.close()
        self._pipe_ended()

    def _pipe_ended(self) -> None:
        self.protocol.close()
        self._to_guest.put_nowait(None)

    def _send(self, message: bytes) -> None:
        self._to_chromium.write(message + b"\0")

    def _relay(self, message: bytes) -> None:
        self._to_guest.put_nowait(message)

    async def _invite(self) -> str:
        """Return the address at which Playwright, and nobody else, may connect."""
        path = f"/{token_urlsafe(32)}"
        application = web.Application()
        application.router.add_get(path, self._serve_guest)
        self._guests = web.AppRunner(application, access_log=None, shutdown_timeout=0)
        await self._guests.setup()
        await web.TCPSite(self._guests, "127.0.0.1", 0).start()
        return f"ws://127.0.0.1:{self._guests.addresses[0][1]}{path}"

    async def _serve_guest(self, request: web.Request) -> web.WebSocketResponse:
        """Carry messages between Playwright and Chromium until one of them goes. The network's
        events, most of a page's, are ours alone: nobody asks Playwright for them."""
        guest = web.WebSocketResponse(compress=False, max_msg_size=0)
        await guest.prepare(request)
        outgoing = asyncio.create_task(self._to(guest))
        async for message in guest:
            call = json.loads(message.data)
            if call["method"] == "Network.enable":
                answer = {"id": call["id"], "sessionId": call["sessionId"], "result": {}}
                self._relay(json.dumps(answer).encode())
            else:
                self._send(message.data.encode())
        outgoing.cancel()
        return guest

    async def _to(self, guest: web.WebSocketResponse) -> None:
        while (message := await self._to_guest.get()) is not None:
            await guest.send_str(message.decode())
        await guest.close()

    def _complaint(self) -> str:
        """Return the last line that it wrote."""
        with contextlib.suppress(OSError):
            lines = read_regular(self._log).decode("utf-8", "replace").split("\n")
            return next((line.strip() for line in reversed(lines) if line.strip()), "")[:300]
        return ""


def _hold(profile: Path) -> IO[bytes]:
    """Return the open file whose lock says that this process still uses the folder."""
    held = (profile / _LOCK).open("wb")
    fcntl.flock(held, fcntl.LOCK_EX)
    return held


def _remove_abandoned() -> None:
    """Remove the folders of processes that were killed: nobody holds their locks."""
    for lock in Path(tempfile.gettempdir()).glob(f"{_PROFILE}*/{_LOCK}"):
        with contextlib.suppress(OSError):  # held, or another user's
            if time.time() - lock.stat().st_mtime > ABANDONED:
                with lock.open("rb") as held:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(lock.parent, ignore_errors=True)


def _spawned(command: Sequence[str], log: Path, reads: int, writes: int) -> int:
    """Start a program in a group of its own, with these ends of pipes, which are closed here, as
    Chromium wants them; returns its id. What it says goes to the file ``log``."""
    log_end = os.open(log, os.O_CREAT | os.O_WRONLY, 0o600)
    ends = ((reads, _READS), (writes, _WRITES), (log_end, 1), (log_end, 2))
    try:
        return os.posix_spawn(
            command[0],
            list(command),
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, ours, theirs) for ours, theirs in ends],
            setpgroup=0,
        )
    finally:
        for end in (reads, writes, log_end):
            os.close(end)


def _pipe() -> tuple[int, int]:
    """Return both ends of a pipe, closed in any program that is started, above the numbers that
    Chromium's ends get."""
    ends = []
    for end in os.pipe():
        ends.append(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _ABOVE))
        os.close(end)
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):  # the user's share of pipe memory is used up
            fcntl.fcntl(ends[0], fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return ends[0], ends[1]
