"""Pages as the browser knows them: which document request is for a page, which for a frame.

Every request for a document is held for a moment and marked with a field that the proxy reads and
removes. So pages are told from frames on every host, also where browsers do not say what a request
is for. Navigations that reach no proxy are recorded.
"""

from __future__ import annotations

import asyncio
import json
import urllib.request
from asyncio import IncompleteReadError
from collections.abc import Callable
from typing import Any

from trajudge.proxy.browser.websocket import WebSocketClient
from trajudge.proxy.pages.loads import DOCUMENT_FIELD

_PAUSE = 0.1  # seconds between two tries to reach a browser that has not started
_ATTACH = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
_DOCUMENTS = {"patterns": [{"urlPattern": "*", "resourceType": "Document"}]}
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))

Navigated = Callable[[str, str], None]
"""Gets the address of a navigation, and its kind: loaded, cached, restored or within."""


class BrowserWatch:
    """Attaches to all pages of the browser at a debugging port, now and later."""

    def __init__(self, port: int, token: str, navigated: Navigated) -> None:
        self._port, self._token, self._navigated = port, token, navigated
        self._socket: WebSocketClient
        self._number = 0
        self._tops: dict[str, str] = {}  # session -> the frame that is its page
        self._cached: set[str] = set()  # loaders whose document came from the browser's cache

    async def run(self) -> None:
        """Watch whichever browser is there, until cancelled."""
        while True:
            try:
                url = await asyncio.to_thread(self._address)
                self._socket = await WebSocketClient.open(url)
                self._send("", "Target.setAutoAttach", _ATTACH)
                while True:
                    self._take(json.loads(await self._socket.receive()))
            except (OSError, IncompleteReadError, ValueError):
                await asyncio.sleep(_PAUSE)

    def _address(self) -> str:
        with _DIRECT.open(f"http://127.0.0.1:{self._port}/json/version", timeout=2) as answer:
            return str(json.load(answer)["webSocketDebuggerUrl"])

    def _send(self, session: str, method: str, params: dict[str, Any] | None = None) -> None:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        self._socket.send(json.dumps(message))

    def _take(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params", {})
        session = message.get("sessionId", "")
        if method == "Target.attachedToTarget":
            self._attached(params["sessionId"], params["targetInfo"])
        elif method == "Fetch.requestPaused":
            self._mark(session, params)
        elif method == "Network.responseReceived" and params["response"].get("fromDiskCache"):
            self._cached.add(params["loaderId"])
        elif method == "Page.frameNavigated" and not params["frame"].get("parentId"):
            self._loaded(params["frame"], params.get("type"))
        elif method == "Page.navigatedWithinDocument" and self._is_page(session, params):
            self._navigated(params["url"], "within")

    def _is_page(self, session: str, params: dict[str, Any]) -> bool:
        return bool(params["frameId"] == self._tops.get(session))

    def _attached(self, session: str, target: dict[str, Any]) -> None:
        if target["type"] in ("page", "iframe"):
            if target["type"] == "page":
                self._tops[session] = target["targetId"]
            self._send(session, "Fetch.enable", _DOCUMENTS)
            self._send(session, "Network.enable")
            self._send(session, "Page.enable")
        self._send(session, "Target.setAutoAttach", _ATTACH)
        self._send(session, "Runtime.runIfWaitingForDebugger")

    def _mark(self, session: str, params: dict[str, Any]) -> None:
        kind = "page" if self._is_page(session, params) else "frame"
        headers = [{"name": n, "value": v} for n, v in params["request"]["headers"].items()]
        headers.append({"name": DOCUMENT_FIELD, "value": f"{self._token} {kind}"})
        told = {"requestId": params["requestId"], "headers": headers}
        self._send(session, "Fetch.continueRequest", told)

    def _loaded(self, frame: dict[str, Any], kind: str | None) -> None:
        if not frame["url"].startswith(("http://", "https://")):
            return
        if kind == "BackForwardCacheRestore":
            self._navigated(frame["url"], "restored")
        else:
            cached = frame["loaderId"] in self._cached
            self._navigated(frame["url"], "cached" if cached else "loaded")
