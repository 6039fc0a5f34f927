"""Doing a parsed action in a tab. What it refuses it refuses before anything happens."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from trajudge.environments.chromium import direct
from trajudge.environments.chromium.action_syntax import LAST_WORDS, Action, Argument
from trajudge.environments.chromium.observation import Bids
from trajudge.environments.chromium.protocol import ProtocolError, playwright_error
from trajudge.environments.chromium.tab import ACTION_PATIENCE, Tab, inside

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle

MAX_FILL = 10_000  # characters
MAX_WAIT = 3_000.0  # milliseconds
_BUTTONS = ("left", "middle", "right")
_KEY = "trajudge-target"

_HOLD = f"function() {{ window[Symbol.for('{_KEY}')] = this; }}"
_TAKE = f"""() => {{
  const held = window[Symbol.for('{_KEY}')];
  delete window[Symbol.for('{_KEY}')];
  return held;
}}"""
_LABELS = """(select) => select.matches("select")
  ? [...select.options].flatMap((option) => option.disabled ? [] : [option.label, option.value])
  : null"""


_FLOAT = re.compile(r"-?(\d+|\d*\.\d+)([eE][-+]?\d+)?", re.ASCII)
_KIND = """(element) => element.isContentEditable || element.matches("textarea") ? "text"
  : element.matches("input") ? element.type : null"""
_HAS_BOX = "(element) => element.checkVisibility()"
TYPED = frozenset({"text", "search", "email", "url", "tel", "password", "number", "date"})
COVERED = "covered by"
_NOT_KEPT = "net::ERR_CACHE_MISS"


class ActionRefused(Exception):
    """The action was not done; the message is one line for the agent."""


def check_fill(bid: str, kind: str | None, text: str) -> None:
    """Raise ActionRefused where a control takes no text, or not this one. ``kind`` is the type of
    an input, "text" of another control that is typed into, None of what is no such control."""
    if kind not in TYPED:
        raise ActionRefused(f"element {bid!r} takes no text")
    if text and kind == "number" and not _FLOAT.fullmatch(text):
        raise ActionRefused(f"element {bid!r} takes a number, not {text[:100]!r}")
    if text and kind == "date" and not _is_date(text):
        raise ActionRefused(f"element {bid!r} takes a date as 2026-03-02, not {text[:100]!r}")


def not_shown(bid: str) -> ActionRefused:
    """Return the error of an action that needs a place on the page, on an element without one."""
    return ActionRefused(f"element {bid!r} is not shown on the page")


def covered_by(role: str, name: str) -> str:
    """Return the message of an action on an element that another one covers."""
    return f"{COVERED} {role} {name!r}" if name else f"{COVERED} {role}"


def _is_date(text: str) -> bool:
    with contextlib.suppress(ValueError):
        return date.fromisoformat(text).isoformat() == text
    return False


async def do(tab: Tab, bids: Bids, action: Action) -> None:
    """Do the action. Raises Refused, and what Playwright raises."""
    name, arguments = action
    if name == "goto":
        await tab.goto(checked_address(str(arguments[0]), tab.origin))
    elif name in ("go_back", "go_forward"):
        await _through_history(tab, -1 if name == "go_back" else 1)
    elif name == "scroll":
        await tab.page.evaluate(
            "([x, y]) => scrollBy({left: x, top: y, behavior: 'instant'})", list(arguments)
        )
    elif name == "noop":
        await asyncio.sleep(min(_number(arguments), MAX_WAIT) / 1000)
    elif name not in LAST_WORDS:
        bid, *others = arguments
        await _on_bid(tab, bids, name, str(bid), others)


def _number(arguments: tuple[Argument, ...]) -> float:
    return (
        max(0.0, float(arguments[0]))
        if arguments and isinstance(arguments[0], int | float)
        else 0.0
    )


def checked_address(url: str, origin: str) -> str:
    """Return the address if it is on the run's own origin, spelt plainly: ``javascript:`` would run
    before it fails. Raises ActionRefused."""
    plain = url.isprintable() and not any(character.isspace() for character in url)
    if not plain or "\\" in url or not inside(url, origin):
        raise ActionRefused(f"{url[:200]!r} is outside of {origin}")
    return url


async def _through_history(tab: Tab, by: int) -> None:
    history = await tab.cdp.send("Page.getNavigationHistory")
    index = history["currentIndex"] + by
    entries = history["entries"]
    if not 0 <= index < len(entries) or not inside(entries[index]["url"], tab.origin):
        raise ActionRefused(f"there is no page to go {'back' if by < 0 else 'forward'} to")
    go = tab.page.go_back if by < 0 else tab.page.go_forward
    try:
        await go(wait_until="commit", timeout=tab.settings.patience * 1000)
    except playwright_error() as error:
        # The reply to a form is in no cache: ask for its address, which leads to its page.
        if _NOT_KEPT not in str(error):
            raise
        await tab.cdp.send("Page.navigate", {"url": entries[index]["url"]})


async def _on_bid(tab: Tab, bids: Bids, name: str, bid: str, arguments: Sequence[Argument]) -> None:
    """Act on the element with this bid: at once where it is ready, else with Playwright's
    patience."""
    resolved = await asyncio.wait_for(_resolved(tab, bids, bid), ACTION_PATIENCE)
    if name == "click" and arguments in ([], ["left"]):
        done = await direct.click(tab.cdp, resolved)
    elif name == "fill" and len(str(arguments[0])) <= MAX_FILL:
        done = await direct.fill(tab.cdp, resolved, str(arguments[0]))
    else:
        done = False
    if not done:
        element = await asyncio.wait_for(_element(tab, resolved, bid), ACTION_PATIENCE)
        await _on_element(element, name, bid, arguments)


def _missing(bid: str) -> ActionRefused:
    return ActionRefused(f"no element with bid {bid[:50]!r}")


async def _resolved(tab: Tab, bids: Bids, bid: str) -> str:
    """Return the id of the remote object that is the element with this bid."""
    node = bids.node(bid)
    if node is None:
        raise _missing(bid)
    try:
        resolved = await tab.cdp.send("DOM.resolveNode", {"backendNodeId": node})
    except ProtocolError:
        raise _missing(bid) from None
    return str(resolved["object"]["objectId"])


async def _element(tab: Tab, resolved: str, bid: str) -> ElementHandle:
    """Return the element, handed from the protocol to Playwright through the page."""
    held = {"objectId": resolved, "functionDeclaration": _HOLD}
    await tab.cdp.send("Runtime.callFunctionOn", held)
    element = (await tab.page.evaluate_handle(_TAKE)).as_element()
    if element is None or not await element.evaluate("(element) => element.isConnected"):
        raise _missing(bid)
    return element


async def _on_element(
    element: ElementHandle, name: str, bid: str, arguments: Sequence[Argument]
) -> None:
    if not await element.is_enabled():
        raise ActionRefused(f"element {bid!r} is disabled")
    if name in ("click", "dblclick", "hover") and not await element.evaluate(_HAS_BOX):
        raise not_shown(bid)
    if name in ("click", "dblclick"):
        button = arguments[0] if arguments else "left"
        if button not in _BUTTONS:
            raise ActionRefused(f"no mouse button is called {button!r}")
        click = element.click if name == "click" else element.dblclick
        await click(button=button, no_wait_after=True)  # type: ignore[arg-type]
    elif name == "hover":
        await element.hover()
    elif name == "press":
        await element.press(str(arguments[0]), no_wait_after=True)
    elif name == "fill":
        await _fill(element, bid, str(arguments[0]))
    else:
        await _select(element, bid, arguments[0])


async def _fill(element: ElementHandle, bid: str, value: str) -> None:
    if len(value) > MAX_FILL:
        raise ActionRefused(f"a text of {len(value)} characters: at most {MAX_FILL} are filled in")
    check_fill(bid, await element.evaluate(_KIND), value)
    await element.fill(value)


async def _select(element: ElementHandle, bid: str, wanted: Argument) -> None:
    known = await element.evaluate(_LABELS)
    if known is None:
        raise ActionRefused(f"element {bid!r} has no options")
    options = [str(one) for one in wanted] if isinstance(wanted, list) else [str(wanted)]
    for option in options:
        if option not in known:
            raise ActionRefused(f"element {bid!r} has no option {option[:100]!r}")
    await element.select_option(options)
