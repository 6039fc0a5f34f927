"""Pages as the browser knows them: which document request is for a page, which for a frame.

Every request for a document is held for a moment and marked with a field that the proxy reads and
removes. So pages are told from frames on every host, also where browsers do not say what a request
is for. Navigations that reach no proxy are recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aiohttp import ClientError, ClientSession, ClientTimeout

from trajudge.proxy.browser.probing import HOST
from trajudge.proxy.pages.loads import DOCUMENT_FIELD

if TYPE_CHECKING:
    from aiohttp import ClientWebSocketResponse

_PAUSE = 0.1  # seconds between two tries to reach a browser that has not started
_ATTACH = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
_DOCUMENTS = {"patterns": [{"urlPattern": "*", "resourceType": "Document"}]}
_LARGEST = 64 * 2**20  # bytes of a message

Navigated = Callable[[str, str], None]
"""Gets the address of a navigation, and its kind: loaded, cached, restored or within."""


class BrowserWatch:
    """Attaches to all pages of the browser at a debugging port, now and later. ``attached``: it
    has been there at least once."""

    def __init__(self, port: int, token: str, navigated: Navigated) -> None:
        self._port, self._token, self._navigated = port, token, navigated
        self.attached = False
        self._socket: ClientWebSocketResponse
        self._number = 0
        self._tops: dict[str, str] = {}  # session -> the frame that is its page
        self._cached: set[str] = set()  # loaders whose document came from the browser's cache

    async def run(self) -> None:
        """Watch whichever browser is there, until cancelled."""
        # The WebSocket has a limit of its own, for its opening alone.
        async with ClientSession(timeout=ClientTimeout(total=2)) as client:
            while True:
                # It has not started, or it has ended: the next one is awaited.
                with suppress(ClientError, OSError, ValueError, TypeError):
                    await self._watch(client)
                await asyncio.sleep(_PAUSE)

    async def _watch(self, client: ClientSession) -> None:
        async with client.get(f"http://{HOST}:{self._port}/json/version") as answer:
            url = (await answer.json(content_type=None)).get("webSocketDebuggerUrl", "")
        async with client.ws_connect(url, max_msg_size=_LARGEST) as self._socket:
            self.attached = True
            await self._send("", "Target.setAutoAttach", _ATTACH)
            while True:
                await self._take(await self._socket.receive_json())

    async def _send(self, session: str, method: str, params: dict[str, Any] | None = None) -> None:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        await self._socket.send_json(message)

    async def _take(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params", {})
        session = message.get("sessionId", "")
        if method == "Target.attachedToTarget":
            await self._attached(params["sessionId"], params["targetInfo"])
        elif method == "Fetch.requestPaused":
            await self._mark(session, params)
        elif method == "Network.responseReceived" and params["response"].get("fromDiskCache"):
            self._cached.add(params["loaderId"])
        elif method == "Page.frameNavigated" and not params["frame"].get("parentId"):
            self._loaded(params["frame"], params.get("type"))
        elif method == "Page.navigatedWithinDocument" and self._is_page(session, params):
            self._navigated(params["url"], "within")

    def _is_page(self, session: str, params: dict[str, Any]) -> bool:
        return bool(params["frameId"] == self._tops.get(session))

    async def _attached(self, session: str, target: dict[str, Any]) -> None:
        if target["type"] in ("page", "iframe"):
            if target["type"] == "page":
                self._tops[session] = target["targetId"]
            await self._send(session, "Fetch.enable", _DOCUMENTS)
            await self._send(session, "Network.enable")
            await self._send(session, "Page.enable")
        await self._send(session, "Target.setAutoAttach", _ATTACH)
        await self._send(session, "Runtime.runIfWaitingForDebugger")

    async def _mark(self, session: str, params: dict[str, Any]) -> None:
        kind = "page" if self._is_page(session, params) else "frame"
        headers = [{"name": n, "value": v} for n, v in params["request"]["headers"].items()]
        headers.append({"name": DOCUMENT_FIELD, "value": f"{self._token} {kind}"})
        told = {"requestId": params["requestId"], "headers": headers}
        await self._send(session, "Fetch.continueRequest", told)

    def _loaded(self, frame: dict[str, Any], kind: str | None) -> None:
        if not frame["url"].startswith(("http://", "https://")):
            return
        if kind == "BackForwardCacheRestore":
            self._navigated(frame["url"], "restored")
        else:
            cached = frame["loaderId"] in self._cached
            self._navigated(frame["url"], "cached" if cached else "loaded")
