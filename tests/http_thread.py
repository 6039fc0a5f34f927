"""A real HTTP server on loopback, in a thread beside the test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from threading import Thread


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[str]:
    """Serve until the end of the block; yield the address. The port is closed and the thread has
    ended then."""
    # Ending waits for the next poll: half a second where the library's own interval is kept.
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    with server:
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def announce(url: str) -> None:
    """Tell whoever started the server where it listens."""
    sys.stdout.write(url + "\n")
    sys.stdout.flush()
