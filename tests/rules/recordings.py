"""A small shop on the loopback, and what the real Playwright records of one run in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.http_thread import serving

PAGE = (
    b"<!doctype html><link rel=stylesheet href=/a.css><p>Tea</p>"
    b"<form method=post action=/cart><input name=qty value=2></form>"
    b"<script>window.prices = fetch('/data?q=1').then(reply => reply.text())</script>"
)
PRICES = b'{"price": 12}'
NOTE = b'{"note": "green"}'
_SEND_NOTE = """fetch('/note', {method: 'POST', body: '{"note": "green"}',
    headers: {'content-type': 'application/json'}}).then(reply => reply.text())"""
_SEND_FILE = """(() => { const form = new FormData(); form.append('x', '1');
    form.append('file', new File(['a'], 'a.txt'));
    return fetch('/file', {method: 'POST', body: form}).then(reply => reply.text()) })()"""

Requests = list[tuple[str, str, bytes]]
"""What the server was asked, in order: method, path, body."""


@contextmanager
def shop() -> Iterator[tuple[str, Requests]]:
    """Serve the shop; yield its address and the requests that it hears."""
    heard: Requests = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            heard.append(("GET", self.path, b""))
            kinds = {"/a.css": ("text/css", b"p {}"), "/data?q=1": ("application/json", PRICES)}
            self._reply(200, *kinds.get(self.path, ("text/html", PAGE)))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            heard.append(("POST", self.path, body))
            if self.path == "/cart":
                self._reply(302, "text/html", b"", location="/done")
            else:
                self._reply(200, "application/json", b'{"ok": true}')

        def _reply(self, status: int, kind: str, body: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in {"content-type": kind, **headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as address:
        yield address, heard


def record(
    chromium: Path, files: dict[Path, dict[str, Any]], traced: Path
) -> dict[Path, tuple[str, Requests]]:
    """Run the same visit once for each HAR file with Playwright's options for it, and once with a
    Playwright trace. Return the address and the requests that the server heard, by file."""
    from playwright.sync_api import sync_playwright

    made = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for path, options in {**files, traced: {}}.items():
            with shop() as (address, heard):
                har = {"record_har_path": path, **options} if options else {}
                context = browser.new_context(**har)
                if not options:
                    context.tracing.start(snapshots=True)
                page = context.new_page()
                page.goto(f"{address}/tea")
                page.evaluate("window.prices")
                page.evaluate("document.forms[0].submit()")
                page.wait_for_url("**/done")
                page.evaluate("window.prices")
                page.evaluate(_SEND_NOTE)
                page.evaluate(_SEND_FILE)
                if not options:
                    context.tracing.stop(path=path)
                context.close()
                made[path] = (address, list(heard))
        browser.close()
    return made
