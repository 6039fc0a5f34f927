"""A run's view of its site: observe, act, and the trace of what went over the network."""

from __future__ import annotations

import asyncio
import contextlib
import html
import re
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from trajudge.environments.chromium.action_syntax import Action, BadAction, parse
from trajudge.environments.chromium.actions import (
    LAST_TAB,
    MAX_TABS,
    TOO_MANY_TABS,
    ActionRefused,
    check_arguments,
    covered_by,
    do,
    no_tab,
)
from trajudge.environments.chromium.axtree import Element, read
from trajudge.environments.chromium.browser import Browser
from trajudge.environments.chromium.observation import (
    Bids,
    MarkMode,
    PageDetails,
    PageSnapshot,
    Visible,
    snapshot,
)
from trajudge.environments.chromium.parity import browsergym_text
from trajudge.environments.chromium.protocol import ProtocolError, playwright_error
from trajudge.environments.chromium.tab import ACTION_PATIENCE, PageClosed, Tab, TabSettings
from trajudge.trajectories.model import ImageRef, Observation
from trajudge.util.errors import UserError
from trajudge.util.terminal import one_line

NOW = "2026-03-02T10:00:00Z"
VIEWPORT = (1024, 768)
MAX_LOOKS = 3
BLANK = "about:blank"  # what a new tab shows
_ON_TABS = ("new_tab", "tab_close", "tab_focus")
PATIENCE = 8.0  # seconds until a page counts as broken
_COVERED = re.compile(r"<(?P<tag>[\w-]+)(?P<more>[^>]*)>[^\n]*intercepts pointer events")
_ATTRIBUTE = re.compile(r"\b(role|aria-label)=\"([^\"]*)\"")
_CALL = re.compile(r"^\w+\.\w+: (?:Error: )?")  # which of Playwright's functions complains
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


T = TypeVar("T")


class AgentObservation(NamedTuple):
    """Observation of an agent: the observation itself, the elements to act on, the page's title,
    the bid of the element that has the focus, the addresses and titles of the open tabs, and the
    index of the one that is seen."""

    observation: Observation
    elements: list[Element]
    title: str
    focused: str | None = None
    open_pages: tuple[str, ...] = ()
    open_titles: tuple[str, ...] = ()
    active_page: int = 0


@dataclass
class _OpenTab:
    """A tab with what was seen in it last."""

    tab: Tab
    bids: Bids = field(default_factory=Bids)
    url: str = ""
    title: str = ""


class Session:
    """One run's pages, of which the one in ``tab`` is seen. Made by ``open_session``."""

    def __init__(
        self, browser: Browser, tab: Tab, mark: MarkMode, visible: Visible, *, pictures: bool
    ) -> None:
        self._browser = browser
        self._tabs = [_OpenTab(tab)]
        self._active = self._tabs[0]
        self._seen: PageSnapshot | None = None
        self._mark: MarkMode = mark
        self._visible: Visible = visible
        self._pictures = pictures
        self._patience = 2 * tab.settings.patience + ACTION_PATIENCE

    def begin(self, url: str, origin: str) -> None:
        """Open the run's first page. Raises UserError if it cannot be opened."""
        try:
            self._run(self.tab.begin(url, origin))
        except self._troubles() as trouble:
            raise UserError(f"{url} cannot be opened: {_said(trouble)}") from trouble
        self._active.url = url

    @property
    def tab(self) -> Tab:
        """The tab that is seen and acted in."""
        return self._active.tab

    @property
    def url(self) -> str:
        """Of the page that was observed last, or that the session began with."""
        return self._active.url

    @property
    def console_errors(self) -> list[str]:
        """What the pages' scripts complained of. Playwright hears it later than we see the page:
        an answer that comes the same way says that nothing is under way."""
        with contextlib.suppress(*self._troubles()):
            self._run(asyncio.wait_for(self.tab.page.evaluate("() => 0"), ACTION_PATIENCE))
        return list(self.tab.console_errors)

    def evaluate(self, script: str) -> Any:
        """Return what a script gives in the page: for validators, never for agents."""
        return self._run(self.tab.page.evaluate(script))

    def har(self) -> dict[str, Any]:
        """Return the run's requests so far as a HAR 1.2 document, in the order they were sent,
        without cookies, credentials and the bodies of answers."""
        return self.tab.trace.har(self._browser.version)

    def observe(self, error: str | None = None) -> AgentObservation:
        """Return the page as it is now; ``error`` is what the last action failed with.

        A page that crashed or hangs is opened again, and the error says so; if that fails too, the
        view is empty but for the error.
        """
        try:
            seen_page = self._run(self._look())
        except self._troubles() as trouble:
            recovered = self._recover(trouble)
            error = f"{error}; {recovered}" if error else recovered
            try:
                seen_page = self._run(self._look())
            except self._troubles() as again:
                failed = f"Error: the page cannot be shown: {_said(again)}"
                return AgentObservation(
                    Observation(url=self.url, page_error=error or failed), [], ""
                )
        return self._view(seen_page, error)

    def _view(self, seen_page: PageSnapshot, error: str | None) -> AgentObservation:
        tree = read(seen_page.nodes, seen_page.marks)
        written = self._mark == "browsergym"
        full = browsergym_text(seen_page.nodes, seen_page.marks) if written else tree.full
        observation = Observation(
            url=seen_page.url,
            axtree=full,
            axtree_pruned=tree.pruned,
            screenshot=_image(seen_page.png) if seen_page.png else None,
            page_error=error,
        )
        return AgentObservation(
            observation,
            tree.elements,
            seen_page.title,
            tree.focused,
            tuple(one.url for one in self._tabs),
            tuple(one.title for one in self._tabs),
            self._tabs.index(self._active),
        )

    def details(self) -> PageDetails:
        """Return what BrowserGym's observation holds beyond the tree, of the page that was observed
        last."""
        return self._seen.details() if self._seen else PageDetails({"documents": []}, {})

    async def _look(self) -> PageSnapshot:
        seen_page = await self._steady_look()
        if not self.tab.shows(seen_page.url):
            raise PageClosed(f"the page is {seen_page.url[:100]}")
        self._active.url, self._active.title = seen_page.url, seen_page.title
        self._seen = seen_page
        return seen_page

    async def _steady_look(self) -> PageSnapshot:
        """Return a look in which tree, marks and picture are of one document. A page that goes
        whenever it is looked at has to stay for the last look."""
        tab = self.tab
        for _ in range(MAX_LOOKS - 1):
            await tab.settled()
            if seen_page := await tab.unless_left(self._snapshot()):
                return seen_page
        tab.stay()
        await tab.settled()
        return await self._snapshot()

    async def _snapshot(self) -> PageSnapshot:
        tab, bids = self.tab, self._active.bids
        bids.start((tab.page, tab.documents))
        return await snapshot(tab.cdp, bids, self._mark, self._visible, pictures=self._pictures)

    def act(self, text: str) -> str | None:
        """Do an action and wait until the page that it leads to is there.

        Returns the error that it failed with, one line; the page is then usable all the same.
        """
        try:
            action = parse(text)
        except BadAction as error:
            return one_line(f"{type(error).__name__}: {error}")
        try:
            if action.name in _ON_TABS:  # the tab that is closed is not lost
                self._browser.run(self._on_tabs(action), self._patience)
                return None
            return self._run(self._do(action))
        except ActionRefused as refused:
            return one_line(f"Error: {refused}")
        except self._troubles() as trouble:
            if self._broken():
                return self._recover(trouble)
            return self._refusal() or one_line(f"Error: {_said(trouble)}")

    async def _do(self, action: Action) -> str | None:
        check_arguments(action)
        tab = self.tab
        tab.refused, tab.other_window = None, False
        tab.set_out()
        await do(tab, self._active.bids, action)
        loaded = await tab.settled()
        if tab.other_window:
            await tab.windows_closed()
            return "Error: the action opened another window, which was closed"
        if not loaded:
            return f"Error: the page did not load within {tab.settings.patience:g} s"
        return self._refusal()

    async def _on_tabs(self, action: Action) -> None:
        """Open, close or choose a tab."""
        if action.name == "new_tab":
            if len(self._tabs) == MAX_TABS:
                raise ActionRefused(TOO_MANY_TABS)
            self._active = _OpenTab(await self.tab.open_other(), url=BLANK)
            self._tabs.append(self._active)
        elif action.name == "tab_focus":
            [index] = action.arguments
            if not isinstance(index, int) or not 0 <= index < len(self._tabs):
                raise no_tab(index)
            self._active = self._tabs[index]
            await self.tab.page.bring_to_front()
        elif len(self._tabs) == 1:
            raise ActionRefused(LAST_TAB)
        else:
            self._tabs.remove(self._active)
            closed, self._active = self._active, self._tabs[-1]
            await self._retire(closed.tab)
            await self.tab.page.bring_to_front()

    async def _retire(self, tab: Tab) -> None:
        """Close a tab; of the run's first one, which is lent, the page is only emptied."""
        if tab.opener is None:
            await tab.page.goto(BLANK)
        else:
            await tab.close()

    def close_others(self) -> None:
        """Close all tabs but the one that is lent."""
        with contextlib.suppress(*self._troubles()):
            for one in self._tabs:
                if one.tab.opener is not None:
                    self._browser.run(one.tab.close(), self._patience)

    def _refusal(self) -> str | None:
        """Return the error if the action led to another origin, which the guard refused."""
        refused = self.tab.refused
        return refused and one_line(f"Error: {refused[:200]!r} is outside of {self.tab.origin}")

    def _broken(self) -> bool:
        """Tell whether the page does not answer or is none of the run's."""
        try:
            url = self._run(asyncio.wait_for(self.tab.page.evaluate("() => document.URL"), 1.0))
        except self._troubles():
            return True
        return not self.tab.shows(url)

    def _recover(self, trouble: Exception) -> str:
        """Open the last page again; returns the error for the agent."""
        try:
            self._browser.run(self.tab.reopen(self.url), self._patience)
        except self._troubles() as again:
            return one_line(f"Error: {_said(trouble)}; opened again: {_said(again)}")
        return one_line(f"Error: {_said(trouble)}; {self.url} was opened again")

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._browser.run(self.tab.unless_lost(work), self._patience)

    def _troubles(self) -> tuple[type[Exception], ...]:
        return (playwright_error(), ProtocolError, TimeoutError, PageClosed)


def _said(trouble: Exception) -> str:
    """Return the reason in one line; of an element that others cover, what covers it."""
    if isinstance(trouble, TimeoutError):
        return "the page does not answer"
    message = _COLOURS.sub("", str(getattr(trouble, "message", trouble)))
    if covered := _COVERED.search(message):
        attributes = dict(_ATTRIBUTE.findall(covered["more"]))
        role = attributes.get("role", f"<{covered['tag']}>")
        return covered_by(role, html.unescape(attributes.get("aria-label", "")))[:300]
    return _CALL.sub("", message).splitlines()[0][:300] if message else type(trouble).__name__


def _image(png: bytes) -> ImageRef:
    return ImageRef(data=png, sha256=sha256(png).hexdigest())


@contextmanager
def open_session(
    browser: Browser,
    url: str,
    *,
    viewport: tuple[int, int] = VIEWPORT,
    mark: MarkMode = "native",
    visible: Visible = "window",
    pictures: bool = True,
    now: str = NOW,
    patience: float = PATIENCE,
) -> Iterator[Session]:
    """Open a session at ``url``, whose origin is all that it may visit; ``now`` is its pages' time;
    a page that takes longer than ``patience`` seconds is given up.

    Raises UserError if the address cannot be opened, ValueError for ``pictures`` in a browser that
    takes none.
    """
    if pictures and not browser.pictures:
        raise ValueError("the browser was launched without pictures")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise UserError(f"{url!r} is no http address: give one like http://run.localhost/")
    tab = browser.take_tab(TabSettings(viewport, now, patience))
    session = Session(browser, tab, mark, visible, pictures=pictures)
    try:
        session.begin(url, f"{parts.scheme}://{parts.netloc}")
        yield session
    finally:
        session.close_others()
        browser.give_back(tab)
