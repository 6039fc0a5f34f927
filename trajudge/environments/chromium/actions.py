"""Doing a parsed action in a tab. What it refuses it refuses before anything happens."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from trajudge.environments.chromium import direct
from trajudge.environments.chromium.action_syntax import (
    LAST_WORDS,
    SIGNATURES,
    Action,
    Argument,
)
from trajudge.environments.chromium.network import inside
from trajudge.environments.chromium.observation import Bids
from trajudge.environments.chromium.protocol import ProtocolError, playwright_error
from trajudge.environments.chromium.tab import ACTION_PATIENCE, Tab

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle

MAX_FILL = 10_000  # characters
MAX_WAIT = 3_000.0  # milliseconds
MAX_TABS = 8
MAX_NAME = 200  # characters of a file's name
_BUTTONS = ("left", "middle", "right")
MODIFIERS = ("Alt", "Control", "ControlOrMeta", "Meta", "Shift")
KEYS = frozenset(
    {*map(chr, range(32, 127)), *(f"F{n}" for n in range(1, 25)), *(f"Digit{n}" for n in range(10))}
    | {f"Key{letter}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
    | {f"{key}{side}" for key in MODIFIERS[:2] + MODIFIERS[3:] for side in ("", "Left", "Right")}
    | {"ControlOrMeta", "Enter", "Tab", "Space", "Escape", "Backspace", "Delete", "Insert"}
    | {"Home", "End", "PageUp", "PageDown", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"}
    | {"CapsLock", "ContextMenu", "Backquote", "Minus", "Equal", "Backslash", "BracketLeft"}
    | {"BracketRight", "Semicolon", "Quote", "Comma", "Period", "Slash", "NumLock", "ScrollLock"}
)
"""The keys that can be pressed, by their names in the UI Events specification."""
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
_OPENS = "(element) => Boolean(element.closest('a[href], button'))"
_TAKES_FILES = "(element) => element.matches('input[type=file]')"
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


def check_arguments(action: Action) -> None:
    """Raise ActionRefused for a button, a modifier or a key that no browser knows."""
    signature = SIGNATURES[action.name]
    for parameter, value in zip(signature, action.arguments, strict=False):
        if parameter.name == "button" and value not in _BUTTONS:
            raise ActionRefused(f"no mouse button is called {value!r}")
        if parameter.name == "modifiers" and isinstance(value, list):
            for modifier in value:
                if modifier not in MODIFIERS:
                    raise ActionRefused(f"no modifier is called {str(modifier)[:50]!r}")
        if parameter.name in ("key", "key_comb"):
            for key in _keys(str(value)):
                if key not in KEYS:
                    raise ActionRefused(f"no key is called {key[:50]!r}")


def check_window(opens: object, button: str) -> None:
    """Raise ActionRefused where a click with another button or with keys held would open a window:
    ``opens`` is what of the page the click is on, if that leads anywhere."""
    if opens and button != "right":
        raise ActionRefused("the click would open another window, which a run has not")


def click_options(arguments: Sequence[Argument]) -> tuple[str, list[str]]:
    """Return the button and the modifiers of a click."""
    button = str(arguments[0]) if arguments else "left"
    held = arguments[1] if len(arguments) > 1 else []
    return button, [str(key) for key in held] if isinstance(held, list) else []


def _keys(combination: str) -> list[str]:
    """Return the keys of ``Control+a``; the last one may be ``+`` itself."""
    keys = combination[:-1].split("+") if combination.endswith("+") else combination.split("+")
    return [*filter(None, keys), "+"] if combination.endswith("+") else keys


def file_names(files: Argument) -> list[str]:
    """Return the names of the files that are to be uploaded, without folders: a run has no files
    but those that it makes up, so nothing of this machine is ever read. Raises ActionRefused."""
    listed = [str(file) for file in files] if isinstance(files, list) else [str(files)]
    names = [re.split(r"[/\\]", file)[-1] for file in listed]
    for file, name in zip(listed, names, strict=True):
        if not name.isprintable() or not 0 < len(name) <= MAX_NAME:
            raise ActionRefused(f"{file[:100]!r} is no name of a file")
    return names


def no_file(bid: str) -> ActionRefused:
    """Return the error of an upload to what is no control for files."""
    return ActionRefused(f"element {bid!r} takes no file")


def no_tab(index: Argument) -> ActionRefused:
    """Return the error of a tab that is not open."""
    return ActionRefused(f"there is no tab {index!r}")


LAST_TAB = "the last tab stays open"
TOO_MANY_TABS = f"no more than {MAX_TABS} tabs can be open"


async def do(tab: Tab, bids: Bids, action: Action) -> None:
    """Do the action, but for those on tabs. Raises ActionRefused, and what Playwright raises."""
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
    elif name.startswith(("mouse_", "scroll_")):
        await _by_mouse(tab, name, arguments)
    elif name.startswith("keyboard_"):
        await _by_keyboard(tab, name, str(arguments[0]))
    elif name == "drag_and_drop":
        await _drag(tab, bids, *map(str, arguments))
    elif name not in LAST_WORDS:
        bid, *others = arguments
        await _on_bid(tab, bids, name, str(bid), others)


async def _by_mouse(tab: Tab, name: str, arguments: tuple[Argument, ...]) -> None:
    """Do what BrowserGym's subset ``coord`` does, at pixels of the window."""
    mouse = tab.page.mouse
    x, y, *others = arguments
    if name == "mouse_upload_file":
        handle = await tab.page.evaluate_handle(
            "([x, y]) => document.elementFromPoint(x, y)", [x, y]
        )
        element = handle.as_element()
        if element is None or not await element.evaluate(_TAKES_FILES):
            raise ActionRefused(f"nothing at ({x}, {y}) takes a file")
        await _upload(element, others[0])
        return
    await mouse.move(_pixels(x), _pixels(y))
    button: Any = others[0] if others and isinstance(others[0], str) else "left"
    if name == "scroll_at":
        await mouse.wheel(_pixels(others[0]), _pixels(others[1]))
    elif name == "mouse_drag_and_drop":
        await mouse.down()
        await mouse.move(_pixels(others[0]), _pixels(others[1]))
        await mouse.up()
    elif name == "mouse_down":
        await mouse.down(button=button)
    elif name == "mouse_up":
        await mouse.up(button=button)
    elif name != "mouse_move":
        click = mouse.click if name == "mouse_click" else mouse.dblclick
        await click(_pixels(x), _pixels(y), button=button)


def _pixels(value: Argument) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


async def _by_keyboard(tab: Tab, name: str, text: str) -> None:
    keyboard = tab.page.keyboard
    if name == "keyboard_press":
        await keyboard.press(text)
    elif name == "keyboard_down":
        await keyboard.down(text)
    elif name == "keyboard_up":
        await keyboard.up(text)
    elif name == "keyboard_type":
        await keyboard.type(text)
    else:
        await keyboard.insert_text(text)


async def _drag(tab: Tab, bids: Bids, first: str, second: str) -> None:
    """Press the mouse on one element and let it go on another one."""
    elements = []
    for bid in (first, second):
        resolved = await asyncio.wait_for(_resolved(tab, bids, bid), ACTION_PATIENCE)
        elements.append(await asyncio.wait_for(_element(tab, resolved, bid), ACTION_PATIENCE))
    for element, bid in zip(elements, (first, second), strict=True):
        await _check_ready(element, bid, shown=True)
    await elements[0].hover()
    await tab.page.mouse.down()
    await elements[1].hover()
    await tab.page.mouse.up()


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
    if name == "click" and arguments in ([], ["left"], ["left", []]):
        done = await direct.click(tab.cdp, resolved)
    elif name == "fill" and len(str(arguments[0])) <= MAX_FILL and True not in arguments[1:]:
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


async def _check_ready(element: ElementHandle, bid: str, *, shown: bool) -> None:
    """Raise ActionRefused where an element is disabled, or has no box on the page if it needs
    one."""
    if not await element.is_enabled():
        raise ActionRefused(f"element {bid!r} is disabled")
    if shown and not await element.evaluate(_HAS_BOX):
        raise not_shown(bid)


async def _on_element(
    element: ElementHandle, name: str, bid: str, arguments: Sequence[Argument]
) -> None:
    await _check_ready(element, bid, shown=name in ("click", "dblclick", "hover"))
    if name in ("click", "dblclick"):
        button, modifiers = click_options(arguments)
        if button == "middle" or modifiers:
            check_window(await element.evaluate(_OPENS), button)
        click: Any = element.click if name == "click" else element.dblclick
        await click(button=button, modifiers=modifiers or None, no_wait_after=True)
    elif name == "hover":
        await element.hover()
    elif name == "focus":
        await element.focus()
    elif name == "press":
        await element.press(str(arguments[0]), no_wait_after=True)
    elif name == "clear":
        await _fill(element, bid, "")
    elif name == "fill":
        await _fill(element, bid, str(arguments[0]), typed=True in arguments[1:])
    elif name == "upload_file":
        if not await element.evaluate(_TAKES_FILES):
            raise no_file(bid)
        await _upload(element, arguments[0])
    else:
        await _select(element, bid, arguments[0])


async def _upload(element: ElementHandle, files: Argument) -> None:
    """Give the control small files of these names, which are made up here."""
    made = [
        {"name": name, "mimeType": "text/plain", "buffer": name.encode()}
        for name in file_names(files)
    ]
    await element.set_input_files(made)  # type: ignore[arg-type]


async def _fill(element: ElementHandle, bid: str, value: str, *, typed: bool = False) -> None:
    """Replace the text of a control; ``typed`` as keys, so that suggestions open."""
    if len(value) > MAX_FILL:
        raise ActionRefused(f"a text of {len(value)} characters: at most {MAX_FILL} are filled in")
    check_fill(bid, await element.evaluate(_KIND), value)
    await element.fill("" if typed else value)
    if typed:
        await element.type(value)


async def _select(element: ElementHandle, bid: str, wanted: Argument) -> None:
    known = await element.evaluate(_LABELS)
    if known is None:
        raise ActionRefused(f"element {bid!r} has no options")
    options = [str(one) for one in wanted] if isinstance(wanted, list) else [str(wanted)]
    for option in options:
        if option not in known:
            raise ActionRefused(f"element {bid!r} has no option {option[:100]!r}")
    await element.select_option(options)
