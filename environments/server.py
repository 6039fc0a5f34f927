"""A static file server on loopback for the bundled site."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

SHOP = Path(__file__).parent / "shop"


class _Quiet(SimpleHTTPRequestHandler):
    """Files only, no listing of folders, no log; media types do not depend on the machine."""

    extensions_map: ClassVar[dict[str, str]] = {  # type: ignore[misc]
        "": "application/octet-stream",
        ".html": "text/html; charset=utf-8",
        ".css": "text/css; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
    }

    def list_directory(self, path: object) -> None:
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serve(folder: Path = SHOP) -> Iterator[int]:
    """Serve ``folder`` on 127.0.0.1; yields the port, which the system chooses."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
