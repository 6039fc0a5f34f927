"""One Chromium for a worker: its sites live on loopback, no other host exists for it.

Playwright runs on an event loop in a thread of its own; what is public blocks until it is done.
So calls of the DevTools protocol go out side by side, every one of them has a time limit, and
several threads may drive sessions of one browser.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from trajudge.environments.chromium.process import (
    BLINK_SETTINGS,
    FLAGS,
    NO_PICTURES,
    ChromiumProcess,
)
from trajudge.environments.chromium.protocol import ProtocolError, playwright_error
from trajudge.environments.chromium.tab import Tab, TabSettings
from trajudge.util.errors import MissingExtra, UserError
from trajudge.util.machine import CHROMIUMS, installed_chromium

if TYPE_CHECKING:
    from playwright.async_api import Playwright

T = TypeVar("T")

START_PATIENCE = 60.0  # seconds
CLOSE_PATIENCE = 5.0  # seconds
MAX_IDLE = 4
RUNS_A_TAB = 50  # then a fresh one, so that memory stays flat
RUNS_A_BROWSER = 500
# The time stands still. One tab: what would open a window opens here. The caret blinks, pictures
# must not.
_PREPARED = """((now) => {
  const Real = Date;
  Real.now = () => now;
  globalThis.Date = Real.prototype.constructor = new Proxy(Real, {
    apply: () => new Real(now).toString(),
    construct: (_, values, made) => Reflect.construct(Real, values.length ? values : [now], made),
  });
  window.open = (url) => { if (url) location.assign(url); return null; };
  const here = (element) => element?.hasAttribute("target") && (element.target = "_self");
  addEventListener("click", (event) => {
    for (const element of event.composedPath())
      if (element.matches?.("a, area")) here(element);
  }, true);
  addEventListener("submit", (event) => {
    here(event.target);
    event.submitter?.removeAttribute("formtarget");
  }, true);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("* { caret-color: transparent !important }");
  document.adoptedStyleSheets = [sheet];
})(Date.parse(%s))"""


def find_chromium() -> str:
    """Return the system's chromium. Raises UserError where there is none."""
    if path := installed_chromium():
        return path
    raise UserError(
        f"none of {', '.join(CHROMIUMS)} on the PATH: install one, "
        "for example with  apt-get install chromium-headless-shell"
    )


class Browser:
    """Chromium, and the tabs that finished runs left for the next ones.

    A Chromium that ended, or served many runs, is started again: a run loses its page, the batch
    nothing. Without ``pictures`` none can be taken.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        playwright: Playwright,
        executable: str,
        flags: Sequence[str],
        patience: float,
        *,
        pictures: bool,
    ) -> None:
        self.pictures = pictures
        self._loop = loop
        self._playwright = playwright
        self._executable = executable
        self._flags = flags
        self._patience = patience
        self._process: ChromiumProcess | None = None
        self._idle: list[Tab] = []
        self._lent = 0
        self._runs = 0
        self._lock = Lock()

    @property
    def version(self) -> str:
        """Of Chromium."""
        return self._process.browser.version if self._process else ""

    def run(self, work: Coroutine[Any, Any, T], patience: float | None) -> T:
        """Do ``work`` on the browser's loop. Raises TimeoutError after ``patience`` seconds, None
        where the work has a limit of its own."""
        limited = asyncio.wait_for(work, patience)
        return asyncio.run_coroutine_threadsafe(limited, self._loop).result()

    def take_tab(self, settings: TabSettings) -> Tab:
        """Return a tab: one at rest, or a fresh one.

        Raises UserError if Chromium does not start.
        """
        with self._lock:
            process = self.run(self.start(), None)
            self._lent += 1
            self._runs += 1
            for index, tab in enumerate(self._idle):
                if tab.settings == settings and tab.usable:
                    return self._idle.pop(index)
        return self.run(_open_tab(process, settings), START_PATIENCE)

    def give_back(self, tab: Tab) -> None:
        """Keep the tab for another run if its page answers, else close it."""
        error = playwright_error()
        kept = False
        if tab.usable and tab.runs < RUNS_A_TAB:
            with contextlib.suppress(error, ProtocolError, TimeoutError):  # it hangs or is gone
                self.run(tab.rest(), CLOSE_PATIENCE)
                kept = True
        with self._lock:
            self._lent -= 1
            if kept and len(self._idle) < MAX_IDLE:
                self._idle.append(tab)
                return
        with contextlib.suppress(
            error, ProtocolError, TimeoutError
        ):  # then it ends with the browser
            self.run(tab.close(), CLOSE_PATIENCE)

    async def start(self) -> ChromiumProcess:
        """Return the Chromium that runs, after a fresh start if one is due. Raises UserError if
        that takes longer than the browser's patience."""
        worn = self._runs >= RUNS_A_BROWSER and not self._lent
        if self._process and self._process.usable and not worn:
            return self._process
        await self.stop()
        self._runs = 0
        process = ChromiumProcess()
        await process.start(self._playwright, self._executable, self._flags, self._patience)
        self._process = process
        return process

    async def stop(self) -> None:
        """End Chromium, if it runs."""
        self._idle.clear()
        if self._process:
            await self._process.stop()
            self._process = None


@contextmanager
def launch(
    port: int, proxy: str = "", patience: float = START_PATIENCE, *, pictures: bool = True
) -> Iterator[Browser]:
    """Open a headless Chromium in which ``http://<run>.localhost/`` is the server on loopback's
    ``port``, for every run, and no other host exists. ``proxy`` is the address of a proxy that
    knows the same server: all requests go through it then. Without ``pictures`` none can be
    taken, and Chromium loads no images: that saves a quarter of the CPU of opening a page.

    Raises MissingExtra without Playwright, UserError without a browser or where it takes longer
    than ``patience`` seconds to start.
    """
    if importlib.util.find_spec("playwright") is None:
        raise MissingExtra("playwright", "browser", "recording trajectories")
    from playwright.async_api import async_playwright  # noqa: PLC0415

    executable = find_chromium()
    with _event_loop() as loop:
        run = _runner(loop)
        playwright = run(async_playwright().start())
        flags = [*_flags(port, proxy), *([BLINK_SETTINGS] if pictures else NO_PICTURES)]
        browser = Browser(loop, playwright, executable, flags, patience, pictures=pictures)
        try:
            browser.run(browser.start(), None)
            yield browser
        finally:
            run(browser.stop())
            run(playwright.stop())


def _runner(loop: asyncio.AbstractEventLoop) -> Callable[[Coroutine[Any, Any, T]], T]:
    def run(work: Coroutine[Any, Any, T]) -> T:
        try:
            return asyncio.run_coroutine_threadsafe(work, loop).result(START_PATIENCE)
        except TimeoutError as error:
            raise UserError(
                f"Playwright does not answer within {START_PATIENCE:g} seconds: run it again when "
                "the machine is less busy, or with fewer --workers"
            ) from error

    return run


@contextmanager
def _event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _flags(port: int, proxy: str) -> list[str]:
    """Return what Chromium is started with: it knows one server, at ``port`` of this machine."""
    as_root = hasattr(os, "geteuid") and os.geteuid() == 0
    hosts = f"MAP *.localhost:80 127.0.0.1:{port}, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    # Without the second Chromium goes past its proxy for names on this machine.
    through = [f"--proxy-server={proxy}", "--proxy-bypass-list=<-loopback>"] if proxy else []
    sandbox = ["--no-sandbox"] * as_root
    return [*FLAGS, *sandbox, *through, f"--host-resolver-rules={hosts}"]


async def _open_tab(chromium: ChromiumProcess, settings: TabSettings) -> Tab:
    """Return a fresh tab."""
    width, height = settings.viewport
    context = await chromium.browser.new_context(
        viewport={"width": width, "height": height},
        locale="en-GB",
        timezone_id="UTC",
        reduced_motion="reduce",
        accept_downloads=False,
        service_workers="block",
    )
    await context.add_init_script(_PREPARED % json.dumps(settings.now))
    page = await context.new_page()
    tab = Tab(settings, context, page, chromium.protocol)
    context.on("page", tab.on_page)
    await tab.attach()
    return tab
