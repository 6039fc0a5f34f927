"""Clicking and typing without Playwright, where an element is plainly ready for it.

Playwright waits two frames until an element stands still and loads a library into every document
that it acts in. Neither is needed for what is visible, enabled, not covered and not animated. Where
anything of that is in doubt nothing is done here, and Playwright does the action: it waits, and its
errors say what stood in the way. The events that a page sees are the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from trajudge.environments.chromium.protocol import ProtocolError, ProtocolSession

PATIENCE = 2.0  # seconds until an element counts as out of reach
SMALLEST = 0.99  # CSS pixels: of a smaller area nothing can be hit

Point = tuple[float, float]

# What follows is called on an element. Anything out of the ordinary is left to Playwright.
_PLAIN = """
  const plain = this.nodeType === 1 && this.isConnected && this.ownerDocument === document
    && document.readyState === "complete" && !document.getAnimations().length
    && this.checkVisibility({visibilityProperty: true}) && !this.matches(":disabled, option")
    && !this.closest("[aria-disabled=true], fieldset[disabled], [inert], svg");
"""

_READY = f"""function() {{{_PLAIN}
  if (!plain) return null;
  const inner = this.matches("input, textarea, select")
    ? this
    : this.closest("a, button, label, [role=link], [role=button], [role=checkbox], [role=radio]");
  if (inner && inner !== this || this.matches("label")) return null;
  const box = this.getBoundingClientRect();
  return box.width && box.height ? [innerWidth, innerHeight] : null;
}}"""

_GUARD_KEY = "trajudge-guard"

# Whether the point is on the element; if so, a click that will hit another one after all (what the
# mouse passes may open something above it) is kept from the page.
_GUARD = f"""function(x, y) {{
  const hits = (x, y) => {{
    let over = document.elementsFromPoint(x, y)[0];
    while (over && over !== this)
      over = over.assignedSlot ?? over.parentElement ?? over.getRootNode().host;
    return over === this;
  }};
  if (!hits(x, y)) return false;
  let hit;
  const guard = (event) => {{
    if (!event.isTrusted) return;
    hit ??= hits(event.clientX, event.clientY);
    if (hit) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }};
  const kinds = ["pointerdown", "mousedown", "pointerup", "mouseup", "click"];
  for (const kind of kinds) window.addEventListener(kind, guard, true);
  this[Symbol.for("{_GUARD_KEY}")] = () => {{
    for (const kind of kinds) window.removeEventListener(kind, guard, true);
  }};
  return true;
}}"""

_UNGUARD = f"""function() {{
  this[Symbol.for("{_GUARD_KEY}")]?.();
  delete this[Symbol.for("{_GUARD_KEY}")];
}}"""

# Only inputs whose text is typed; a number's may be no number.
_SELECT_TEXT = f"""function(text) {{{_PLAIN}
  const typed = this.matches("textarea, input:not([type])")
    || ["text", "search", "email", "url", "tel", "password"].includes(this.type)
    || this.type === "number" && text.trim() !== "" && !isNaN(Number(text));
  const box = plain && typed && this.matches("input, textarea") && !this.readOnly
    && !this.closest("[aria-readonly=true]") && this.getBoundingClientRect();
  if (!box || !box.width || !box.height) return false;
  this.select();
  this.focus();
  return document.activeElement === this;
}}"""


async def click(cdp: ProtocolSession, element: str) -> bool:
    """Click the element, a remote object's id, with the left button; False: it was not tried.
    Raises ProtocolError."""
    async with _in_time():
        if (point := await _target(cdp, element)) is None:
            return False
        if not await _call(cdp, element, _GUARD, *point):
            return False
        await _press(cdp, point)
        cdp.tell("Runtime.callFunctionOn", _asked(element, _UNGUARD))
    return True


async def fill(cdp: ProtocolSession, element: str, text: str) -> bool:
    """Replace the text of the element, a remote object's id; False: it was not tried.
    Raises ProtocolError."""
    async with _in_time():
        if not text or not await _call(cdp, element, _SELECT_TEXT, text):
            return False
        await cdp.send("Input.insertText", {"text": text})
    return True


@asynccontextmanager
async def _in_time() -> AsyncIterator[None]:
    """Raise ProtocolError, in Playwright's words, where the block takes longer than PATIENCE."""
    try:
        async with asyncio.timeout(PATIENCE):
            yield
    except TimeoutError as error:
        raise ProtocolError(f"Timeout {1000 * PATIENCE:.0f}ms exceeded.") from error


async def _target(cdp: ProtocolSession, element: str) -> Point | None:
    """Return where to click, in CSS pixels of the window, after scrolling the element into it."""
    window = await _call(cdp, element, _READY)
    if not window:
        return None
    try:
        scrolled = cdp.send("DOM.scrollIntoViewIfNeeded", {"objectId": element})
        drawn = cdp.send("DOM.getContentQuads", {"objectId": element})
        quads = (await asyncio.gather(scrolled, drawn))[1]["quads"]
    except ProtocolError:  # it is not drawn, or left meanwhile
        return None
    inside = (_clipped(quad, *window) for quad in quads)
    return next((_middle(corners) for corners in inside if _area(corners) > SMALLEST), None)


def _clipped(quad: Sequence[float], width: float, height: float) -> list[Point]:
    """Return the corners of a quad (x, y four times), moved into the window."""
    corners = zip(quad[::2], quad[1::2], strict=True)
    return [(min(max(x, 0.0), width), min(max(y, 0.0), height)) for x, y in corners]


def _area(corners: Sequence[Point]) -> float:
    following = [*corners[1:], corners[0]]
    pairs = zip(corners, following, strict=True)
    return abs(sum(x * below - right * y for (x, y), (right, below) in pairs)) / 2


def _middle(corners: Sequence[Point]) -> Point:
    """Return the middle, in hundredths of a pixel as Playwright clicks."""
    x, y = (sum(corner[axis] for corner in corners) / 4 for axis in (0, 1))
    return int(x * 100) / 100, int(y * 100) / 100


async def _press(cdp: ProtocolSession, point: Point) -> None:
    place = {"x": point[0], "y": point[1], "modifiers": 0}
    pressed = {**place, "button": "left", "clickCount": 1}
    await asyncio.gather(
        _mouse(cdp, "mouseMoved", {**place, "button": "none", "buttons": 0, "force": 0}),
        _mouse(cdp, "mousePressed", {**pressed, "buttons": 1, "force": 0.5}),
        _mouse(cdp, "mouseReleased", {**pressed, "buttons": 0}),
    )


async def _mouse(cdp: ProtocolSession, kind: str, more: dict[str, Any]) -> None:
    await cdp.send("Input.dispatchMouseEvent", {"type": kind, **more})


async def _call(cdp: ProtocolSession, element: str, function: str, *arguments: Any) -> Any:
    """Return what a function of the page gives for the element; None where it raises."""
    answer = await cdp.send("Runtime.callFunctionOn", _asked(element, function, *arguments))
    return None if "exceptionDetails" in answer else answer["result"].get("value")


def _asked(element: str, function: str, *arguments: Any) -> dict[str, Any]:
    return {
        "objectId": element,
        "functionDeclaration": function,
        "arguments": [{"value": value} for value in arguments],
        "returnByValue": True,
    }
