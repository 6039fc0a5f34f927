"""The application on a real port of this machine, in a thread of the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from typing import NamedTuple

from trajudge.app.inspect import inspect_rooms
from trajudge.app.security import People, allowed_hosts
from trajudge.app.serving import Room, application, bound_sockets, server_of
from trajudge.app.settings import ServerConfig
from trajudge.app.workspace import Workspace


class Answer(NamedTuple):
    """A response as it came."""

    status: int
    headers: dict[str, str]
    text: str


class Served(NamedTuple):
    """An application that listens on ``port``."""

    port: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self,
        path: str,
        method: str = "GET",
        body: str | bytes | None = None,
        at: str = "127.0.0.1",
        **headers: str,
    ) -> Answer:
        """Send one request from and to the address ``at``; ``Sec_Fetch_Site`` is the header
        Sec-Fetch-Site."""
        connection = HTTPConnection(at, self.port, timeout=60, source_address=(at, 0))
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        response: HTTPResponse = connection.getresponse()
        text = response.read().decode(errors="replace")
        connection.close()
        kept = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, kept, text)


@contextmanager
def served(
    workspace: Workspace,
    rooms: Sequence[Room] | None = None,
    people: People | None = None,
    keys: Mapping[str, str] | None = None,
    host: str = "127.0.0.1",
) -> Iterator[Served]:
    """Serve a workspace until the end of the block."""
    config = ServerConfig(host=host)
    sockets = bound_sockets(config.host, config.port)
    port = int(sockets[0].getsockname()[1])
    app = application(
        workspace,
        inspect_rooms() if rooms is None else rooms,
        allowed_hosts(config, port),
        port,
        people,
        keys=keys,
    )
    server = server_of(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": sockets})
    thread.start()
    try:
        yield Served(port)
    finally:
        server.should_exit = True
        thread.join()
