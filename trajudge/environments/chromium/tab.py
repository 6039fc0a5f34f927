"""A browser's tab: one site to go to, a fixed time, and word of what it loads.

The guard is the second line behind the filter of actions: whatever a page or an action starts, a
document of another origin is refused before it is asked for (redirects too), and so are other
hosts' parts of a page.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from trajudge.environments.chromium.network import NetworkTrace, inside
from trajudge.environments.chromium.protocol import (
    Protocol,
    ProtocolError,
    ProtocolSession,
    playwright_error,
)
from trajudge.util.terminal import one_line

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, ConsoleMessage, Frame, Page
ACTION_PATIENCE = 2.0  # seconds until an element counts as out of reach
MAX_POST_BYTES = 2**20
MAX_COMPLAINTS = 100
MAX_HOPS = 10  # documents that one action leads to: a page may load itself for ever
NEXT_DOCUMENT = 0.02  # seconds
_BETWEEN_DOCUMENTS = "Not attached to an active page"
# Until the page did what was due (a form is sent by a task, not by the click itself) and, where it
# says so, is idle: the scripts of a page that has <html data-idle="no"> wait for something.
_SETTLED = """new Promise((done) => setTimeout(() => {
  const root = document.documentElement;
  if (root?.dataset.idle !== "no") return done();
  const watch = new MutationObserver(() => root.dataset.idle === "no" || end());
  const end = () => { watch.disconnect(); done(); };
  watch.observe(root, {attributeFilter: ["data-idle"]});
  setTimeout(end, 2000);
}, 0))"""
_FORGET = "if (top === window) { sessionStorage.clear(); window.name = ''; }"

T = TypeVar("T")


class PageClosed(Exception):
    """The run has no page to look at."""


@dataclass(frozen=True)
class TabSettings:
    """What is fixed for the life of a tab. ``now`` is the pages' time, as ISO 8601; a page that
    takes longer than ``patience`` seconds counts as broken."""

    viewport: tuple[int, int]
    now: str
    patience: float


@dataclass
class Tab:
    """A page with storage of its own, or with that of its ``opener``, the run's first tab, which
    lists the run's ``others``. ``documents`` counts those that its main frame showed."""

    settings: TabSettings
    context: BrowserContext
    page: Page
    protocol: Protocol
    opener: Tab | None = None
    others: list[Tab] = field(default_factory=list)
    cdp: ProtocolSession = field(init=False)
    frame: str = ""
    origin: str = ""
    documents: int = 0
    runs: int = 0
    healthy: bool = True
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    refused: str | None = None
    other_window: bool = False
    trace: NetworkTrace = field(default_factory=lambda: NetworkTrace(""))
    console_errors: list[str] = field(default_factory=list)
    _arriving: bool = False
    _leaving: bool = False
    _staying: bool = False
    _left: asyncio.Event = field(default_factory=asyncio.Event)
    _pages_wanted: int = 0
    _windows_due: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def unless_lost(self, work: Coroutine[Any, Any, T]) -> T:
        """Do ``work``. Raises PageClosed once the page crashed or was closed."""
        done = await _unless(self.lost, work)
        if not done:
            raise PageClosed("the page crashed or was closed")
        return done.result()

    async def unless_left(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Do ``work``. Returns None once the page leaves for another document, for Chromium may
        never send the screenshot of one that is replaced. A page that was told to stay stays."""
        self._left.clear()
        done = await _unless(self._left, work)
        return done.result() if done else None

    async def begin(self, url: str, origin: str) -> None:
        """Open the first page of a run at ``origin``, to which the tab belongs from now on, in
        place of the last run's page. What pages of this origin kept is forgotten, the history
        too. Raises ProtocolError if the page cannot be opened."""
        if self.origin == origin:  # its page could write until it is left
            await self.page.goto("about:blank", timeout=self.settings.patience * 1000)
        self.origin = origin
        self.runs += 1
        self.trace = NetworkTrace(origin)
        self.console_errors = []
        self.refused, self._arriving = None, True
        forget, *_ = await asyncio.gather(
            self.cdp.send("Page.addScriptToEvaluateOnNewDocument", {"source": _FORGET}),
            self.cdp.send("Page.resetNavigationHistory"),
            self.cdp.send("Network.clearBrowserCookies"),
            self.cdp.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"}),
            self.guard(),
        )
        self.set_out()
        opening = self.cdp.send("Page.navigate", {"url": url})
        try:
            opened = await asyncio.wait_for(opening, self.settings.patience)
        finally:
            self.cdp.tell("Page.removeScriptToEvaluateOnNewDocument", forget)
        self.trace.begun = True
        if failure := opened.get("errorText"):
            raise ProtocolError(f"{failure} at {url}")
        await self.settled()
        await self.cdp.send("Page.resetNavigationHistory")

    async def guard(self) -> None:
        """Refuse parts of pages that other origins would deliver."""
        patterns = [
            {"urlPattern": f"{self.origin}/*", "block": False},
            {"urlPattern": "*://*/*", "block": True},
        ]
        await self.cdp.send("Network.setBlockedURLs", {"urlPatterns": patterns})

    def set_out(self) -> None:
        """Let the page lead to other documents: an action begins."""
        self._staying = False

    def stay(self) -> None:
        """Let the page lead to no other document until the next action."""
        self._staying = True

    async def goto(self, url: str) -> None:
        """Open an address; ``settled`` then waits for the page."""
        self.set_out()
        await self.page.goto(url, wait_until="commit", timeout=self.settings.patience * 1000)

    async def settled(self) -> bool:
        """Wait for the page that the last action leads to, if it leads to one, and for answers
        that its scripts wait for. A page that loads itself for ever keeps its last document until
        the next action. Returns False if that took too long; loading is stopped then."""
        try:
            async with asyncio.timeout(self.settings.patience):
                first = self.documents
                while True:
                    if self.documents >= first + MAX_HOPS:
                        self.stay()
                    await self._tasks_run()
                    if not self._leaving and not self.trace.awaited:
                        return True
                    self._changed.clear()
                    if self._leaving or self.trace.awaited:
                        await self._changed.wait()
        except TimeoutError:
            await self._stop()
            return False

    async def _stop(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop_loading(self.cdp), 1)
        self._leaving = False
        self.trace.give_up()

    async def _tasks_run(self) -> None:
        with contextlib.suppress(ProtocolError):  # the page left under the question
            await self.cdp.send("Runtime.evaluate", {"expression": _SETTLED, "awaitPromise": True})

    async def rest(self) -> None:
        """Keep the page where it is until the next run begins. Raises ProtocolError where it does
        not answer."""
        self.stay()
        await self.cdp.send("Runtime.evaluate", {"expression": "0"})

    async def close(self) -> None:
        """Close the page and its context; of another tab than the first the page alone."""
        if self.opener is None:
            await self.context.close()
        else:
            self.opener.others.remove(self)
            await _close(self.page)

    async def open_other(self) -> Tab:
        """Return another tab of the run, which shares storage, trace and guard; it is blank."""
        first = self.opener or self
        first._pages_wanted += 1
        page = await first.context.new_page()
        other = Tab(first.settings, first.context, page, first.protocol, opener=first)
        other.origin, other.runs = first.origin, first.runs
        other.trace, other.console_errors = first.trace, first.console_errors
        await other.attach()
        await other.guard()
        first.others.append(other)
        return other

    @property
    def usable(self) -> bool:
        """Tell whether another run can have it."""
        return self.healthy and not self.lost.is_set()

    def shows(self, url: str) -> bool:
        """Tell whether the tab may show this address: its run's, or none yet."""
        return inside(url, self.origin) or (self.opener is not None and url == "about:blank")

    async def reopen(self, url: str) -> None:
        """Open a new page at ``url`` in place of one that crashed, hangs or was closed."""
        first = self.opener or self
        self.healthy = first.healthy = False
        first._pages_wanted += 1
        if not self.lost.is_set():  # pages share a process, and this one may hang it
            self.cdp.tell("Page.crash", {})
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.lost.wait(), 1)
        old, self.page = self.page, await self.context.new_page()
        await self.attach()
        await self.guard()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(_close(old), 1)
        await self.goto(url)
        await self.settled()

    async def attach(self) -> None:
        """Listen to the tab's page."""
        self.lost = asyncio.Event()
        self._leaving = False
        page = self.page
        page.set_default_timeout(ACTION_PATIENCE * 1000)
        page.on("crash", self._on_loss)
        page.on("close", self._on_loss)
        page.on("framenavigated", self._on_navigated)
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self._complain(str(error)))
        page.on("filechooser", lambda _: None)  # else a native dialog would open
        self.cdp = cdp = await self.protocol.attach_page(page)
        self.trace.listen(cdp, self._wake, lambda: self.trace)
        for event, heard in self._listeners().items():
            cdp.on(event, heard)
        await asyncio.gather(
            cdp.send("Page.enable"),
            cdp.send("Network.enable", {"maxPostDataSize": MAX_POST_BYTES}),
            cdp.send(
                "Fetch.enable", {"patterns": [{"urlPattern": "*", "resourceType": "Document"}]}
            ),
        )
        tree = await cdp.send("Page.getFrameTree")
        self.frame = tree["frameTree"]["frame"]["id"]

    def _listeners(self) -> dict[str, Callable[[dict[str, Any]], None]]:
        return {
            "Page.frameStartedNavigating": self._on_leaving,
            "Page.frameRequestedNavigation": self._on_leaving,
            "Page.frameStartedLoading": self._on_leaving,
            "Page.frameStoppedLoading": self._on_arrival,
            "Page.frameNavigated": self._on_document,
            "Fetch.requestPaused": self._on_paused,
        }

    def _wake(self) -> None:
        self._changed.set()

    def _on_leaving(self, event: dict[str, Any]) -> None:
        where = event.get("disposition", "currentTab")
        if where in ("newTab", "newWindow"):
            self.other_window = True
            self._windows_due += 1
        same = event.get("navigationType", "").startswith("same")
        if event["frameId"] == self.frame and where == "currentTab" and not same:
            self._leaving = True
            if not self._staying:
                self._left.set()

    def _on_arrival(self, event: dict[str, Any]) -> None:
        if event["frameId"] == self.frame:
            self._leaving = False
            self._wake()

    def _on_document(self, event: dict[str, Any]) -> None:
        if event["frame"]["id"] == self.frame:
            self.documents += 1
            self._left.set()

    def _on_paused(self, event: dict[str, Any]) -> None:
        self._start(self._let_pass(event))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)  # the loop alone would not keep it
        task.add_done_callback(self._tasks.discard)

    async def _let_pass(self, event: dict[str, Any]) -> None:
        url = event["request"]["url"]
        allowed = inside(url, self.origin) or url == "about:blank"
        stays = self._staying and event["frameId"] == self.frame
        with contextlib.suppress(ProtocolError):  # the page went away meanwhile
            if allowed and not stays:
                await self.cdp.send("Fetch.continueRequest", {"requestId": event["requestId"]})
            else:
                if not allowed:
                    self.refused = url
                answer = {"requestId": event["requestId"], "errorReason": "Aborted"}
                await self.cdp.send("Fetch.failRequest", answer)

    def _on_loss(self, page: Page) -> None:
        if page is self.page:
            self.lost.set()

    def _on_navigated(self, frame: Frame) -> None:
        """Forget complaints of the last run's page, which Playwright passes on late, in order."""
        if self._arriving and frame is self.page.main_frame and inside(frame.url, self.origin):
            self._arriving = False
            self.console_errors.clear()

    def _on_console(self, line: ConsoleMessage) -> None:
        is_icon = line.location["url"].endswith("/favicon.ico")  # asked for by the browser itself
        if line.type == "error" and not is_icon:
            self._complain(line.text)

    def _complain(self, text: str) -> None:
        if len(self.console_errors) < MAX_COMPLAINTS:
            self.console_errors.append(one_line(text[:500]))

    def on_page(self, page: Page) -> None:
        """Close a window that opened all the same."""
        if self._pages_wanted:
            self._pages_wanted -= 1
        else:
            for tab in (self, *self.others):
                tab.other_window = True
            self.healthy = False
            self._start(self._close_window(page))

    async def _close_window(self, page: Page) -> None:
        await _close(page)
        for tab in (self, *self.others):  # whichever asked for it
            tab._windows_due = max(0, tab._windows_due - 1)
            tab._wake()

    async def windows_closed(self) -> None:
        """Wait for the windows that an action asked for: Playwright tells of one after Chromium
        does."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ACTION_PATIENCE):
                while self._windows_due > 0:
                    self._changed.clear()
                    await self._changed.wait()
        self._windows_due = 0


async def _unless(event: asyncio.Event, work: Coroutine[Any, Any, T]) -> asyncio.Future[T] | None:
    """Do ``work``. Returns None, with the work ended, where the event comes first."""
    task = asyncio.ensure_future(work)
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        return task if task.done() else None
    finally:
        task.cancel()
        waiting.cancel()


async def stop_loading(cdp: ProtocolSession) -> None:
    """Stop what the page loads. One that loads itself for ever is now and then between two
    documents, a moment later it is not."""
    while True:
        try:
            await cdp.send("Page.stopLoading")
            return
        except ProtocolError as error:
            if _BETWEEN_DOCUMENTS not in error.message:
                raise
            await asyncio.sleep(NEXT_DOCUMENT)


async def _close(page: Page) -> None:
    with contextlib.suppress(playwright_error()):
        await page.close()
