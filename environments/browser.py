"""One agent's view of the site: observe, act, read the state, in Chromium through Playwright."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from PIL import Image

from environments.actions import Action, BadAction, parse
from environments.axtree import Element, Mark, axtree_text, elements
from environments.server import serve
from environments.tasks.model import START
from trajectories.errors import MissingExtra, UserError
from trajectories.model import ImageRef, Observation

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ORIGIN = START.rstrip("/")
NOW = "2026-03-02T10:00:00Z"
VIEWPORT = (720, 540)
COLOURS = 32
PATIENCE = 20.0  # seconds until a page counts as broken

_QUIET = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-lcd-text",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
)

# Gives every element of the body a bid once, in document order, and says what can be seen.
_MARK = """() => {
  let next = window.nextBid ?? 0;
  const marks = {};
  for (const element of document.body.querySelectorAll(":not(svg *)")) {
    if (!element.hasAttribute("bid")) element.setAttribute("bid", String(next++));
    const box = element.getBoundingClientRect();
    const visible = box.width > 0 && box.height > 0 && box.bottom > 0 && box.right > 0
      && box.top < innerHeight && box.left < innerWidth;
    const clickable = element.matches("a[href], button, input, select, textarea, label");
    marks[element.getAttribute("bid")] = [visible, clickable];
  }
  window.nextBid = next;
  return marks;
}"""

# A click returns before the page it leads to is there; this tells whether one is on its way.
_WATCH = "navigation.addEventListener('navigate', () => { window.leaving = true; });"
_LEAVING = """() => new Promise((resolve) =>
  requestAnimationFrame(() => setTimeout(() => resolve(Boolean(window.leaving)), 0)))"""

_TAKES_TEXT = """(element) =>
  element.matches("textarea, input:not([type=checkbox], [type=radio])")"""


class View(NamedTuple):
    """What an agent sees: the observation, its elements, the page's title."""

    observation: Observation
    elements: list[Element]
    title: str


def find_chromium() -> str:
    """The system's chromium. Raises UserError where there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    raise UserError(
        "no chromium, chromium-browser or google-chrome on the PATH: install one, "
        "for example with  apt-get install chromium"
    )


@contextmanager
def launch() -> Iterator[Browser]:
    """A headless Chromium for which the shop's origin is a server on loopback and no other host
    exists. Raises MissingExtra without Playwright, UserError without a browser."""
    try:
        from playwright.sync_api import Error, sync_playwright  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("playwright", "browser", "recording trajectories") from None
    executable = find_chromium()
    as_root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with serve() as port, sync_playwright() as playwright:
        hosts = f"MAP shop.localhost:80 127.0.0.1:{port}, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
        try:
            browser = playwright.chromium.launch(
                executable_path=executable,
                args=[*_QUIET, *as_root, f"--host-resolver-rules={hosts}"],
                chromium_sandbox=not as_root,
            )
        except Error as error:
            reason = error.message.splitlines()[0]
            raise UserError(f"{executable} does not start ({reason}): try it by hand") from error
        try:
            yield browser
        finally:
            browser.close()


class Session:
    """One page with storage of its own, at a fixed time. ``requests`` are the URLs it asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[str] = []
        self._loads = 0
        self._cdp = page.context.new_cdp_session(page)
        self._cdp.send("Accessibility.enable")
        page.on("load", self._count_load)
        page.on("request", lambda request: self.requests.append(request.url))

    def _count_load(self, _: object) -> None:
        self._loads += 1

    def state(self) -> dict[str, Any]:
        """The shop's state, read from the browser's storage."""
        state: dict[str, Any] = self.page.evaluate("() => JSON.parse(localStorage.getItem('shop'))")
        return state

    def observe(self, error: str | None = None) -> View:
        """The page as it is now; ``error`` is what the last action failed with."""
        traits = self.page.evaluate(_MARK)
        document = self._cdp.send("DOM.getDocument", {"depth": -1, "pierce": True})
        marks = {
            backend: Mark(bid, *traits.get(bid, ())) for backend, bid in _bids(document["root"])
        }
        nodes = self._cdp.send("Accessibility.getFullAXTree")["nodes"]
        observation = Observation(
            url=self.page.url,
            axtree=axtree_text(nodes, marks),
            axtree_pruned=axtree_text(nodes, marks, pruned=True),
            screenshot=self._screenshot(),
            page_error=error,
        )
        return View(observation, elements(nodes, marks), self.page.title())

    def _screenshot(self) -> ImageRef:
        data = smaller(self.page.screenshot(animations="disabled", caret="hide"))
        return ImageRef(data=data, sha256=sha256(data).hexdigest())

    def act(self, text: str) -> str | None:
        """Do an action and wait until the page is quiet; returns the error it failed with."""
        try:
            action = parse(text)
        except BadAction as error:
            return f"{type(error).__name__}: {error}"
        from playwright.sync_api import Error  # noqa: PLC0415

        loads = self._loads
        try:
            failure = self._do(action)
        except Error as error:
            failure = f"Error: {error.message.splitlines()[0]}"
        if failure is None:
            self._settle(loads)
        return failure

    def _do(self, action: Action) -> str | None:
        name, arguments = action
        page = self.page
        if name == "goto":
            return self._goto(str(arguments[0]))
        if name == "go_back":
            page.go_back()
        elif name == "scroll":
            page.mouse.wheel(float(arguments[0]), float(arguments[1]))
        elif name in ("click", "fill", "select_option", "press"):
            return self._do_on_element(name, *map(str, arguments))
        return None

    def _goto(self, url: str) -> str | None:
        if not url.startswith(ORIGIN + "/"):  # also javascript:, which would run
            return f"Error: {url!r} is outside of {ORIGIN}"
        self.page.goto(url)
        return None

    def _do_on_element(self, name: str, bid: str, *arguments: str) -> str | None:
        if not bid.isalnum() or not (found := self.page.query_selector(f'[bid="{bid}"]')):
            return f"ValueError: no element with bid {bid!r}"
        if not found.is_enabled():
            return f"Error: element {bid!r} is disabled"
        if name == "click":
            found.click()
        elif name == "press":
            found.press(arguments[0])
        elif name == "fill":
            if not found.evaluate(_TAKES_TEXT):
                return f"Error: element {bid!r} takes no text"
            found.fill(arguments[0])
        elif arguments[0] not in found.eval_on_selector_all(
            "option", "all => all.map(o => o.label)"
        ):
            return f"Error: element {bid!r} has no option {arguments[0]!r}"
        else:
            found.select_option(label=arguments[0])
        return None

    def _settle(self, loads: int) -> None:
        from playwright.sync_api import Error  # noqa: PLC0415

        try:
            leaving = bool(self.page.evaluate(_LEAVING))
        except Error:  # the page went away under the question
            leaving = True
        deadline = time.monotonic() + PATIENCE
        while leaving and self._loads == loads:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.page.url} did not load within {PATIENCE:.0f} s")
            self.page.wait_for_timeout(2)
        self.page.wait_for_load_state("load")


@contextmanager
def open_session(browser: Browser, url: str = START) -> Iterator[Session]:
    """A fresh session at ``url``."""
    width, height = VIEWPORT
    context = browser.new_context(
        viewport={"width": width, "height": height},
        locale="en-GB",
        timezone_id="UTC",
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE * 1000)
    context.clock.set_fixed_time(NOW)
    context.add_init_script(_WATCH)
    try:
        session = Session(context.new_page())
        session.page.goto(url)
        yield session
    finally:
        context.close()


@lru_cache(maxsize=64)  # many steps show the same page
def smaller(png: bytes) -> bytes:
    """The same picture with few colours: flat pages stay legible at a fraction of the bytes."""
    with Image.open(BytesIO(png)) as picture:
        few = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    out = BytesIO()
    few.save(out, "PNG", optimize=True)
    return out.getvalue()


def _bids(root: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """(backend node id, bid) of every marked element of a DOM tree."""
    pending = [root]
    while pending:
        node = pending.pop()
        attributes = node.get("attributes", [])
        named = dict(zip(attributes[::2], attributes[1::2], strict=True))
        if "bid" in named:
            yield node["backendNodeId"], named["bid"]
        pending.extend(node.get("children", []))
