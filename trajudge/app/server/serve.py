"""Starting the application: a bound port, its address on the screen, a clean end on Ctrl-C."""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from errno import EADDRNOTAVAIL

import uvicorn
from starlette.types import ASGIApp

from trajudge.app.server.application import Room, application
from trajudge.app.server.hosts import (
    allowed_hosts,
    bracketed,
    check_server,
    own_hosts,
)
from trajudge.app.server.keys import read_keys
from trajudge.app.server.security.sessions import People, new_token
from trajudge.app.server.workspace import Workspace
from trajudge.app.settings import ServerConfig
from trajudge.util.errors import UserError
from trajudge.util.machine import is_loopback

# How this machine reaches what listens on all of its addresses.
LOCAL = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - compared, not listened on
# Seconds that open requests have to end after Ctrl-C.
_GRACE = 2


def serve(
    workspace: Workspace,
    rooms: Sequence[Room],
    config: ServerConfig,
    people: People | None = None,
) -> None:
    """Serve until Ctrl-C. The addresses are printed, with a token that everybody signs in with
    unless ``people`` have their own or ``no_token`` is set. Raises UserError for an address that
    cannot be listened on, or that others would reach unasked, and for keys that cannot be used."""
    check_server(config)
    keys = read_keys(config.keys) if config.keys else {}
    sockets = bound_sockets(config.host, config.port)
    port = int(sockets[0].getsockname()[1])
    token = ""
    if people is None and not config.no_token:
        token, people = new_token()
    app = application(workspace, rooms, allowed_hosts(config, port), port, people, keys=keys)
    sys.stdout.write("\n".join(addresses(config, port, token)) + "\n")
    sys.stdout.flush()
    with suppress(KeyboardInterrupt):
        server_of(app).run(sockets=sockets)


def addresses(config: ServerConfig, port: int, token: str) -> list[str]:
    """Return the lines that say where the application is: first for this machine, where it listens
    there, then for others. ``token`` "": it is in none of them."""
    query = f"?token={token}" if token else ""
    others = own_hosts(config)
    here = bracketed(config.host) if is_loopback(config.host) else LOCAL.get(config.host)
    first = [f"http://{here}:{port}/{query}"] if here else []
    lines = [*first, *(f"http://{host}:{port}/{query}" for host in others)]
    lines[0] += "   (Ctrl-C ends it)"
    if others and first:
        lines.insert(1, "from other machines, by any of these that they know:")
    return lines


def server_of(app: ASGIApp) -> uvicorn.Server:
    """Make the server that answers with an application, on sockets that it is given."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE,
        )
    )


def bound_sockets(host: str, port: int) -> list[socket.socket]:
    """Bind the port; loopback of the other internet protocol too, where that is there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        first = _listening(family, host, port)
    except OSError as error:
        raise UserError(
            f"--host {host} --port {port}: cannot be listened on ({error.strerror or error}): "
            f"choose another --{'host' if error.errno == EADDRNOTAVAIL else 'port'}"
        ) from error
    sockets = [first]
    if host == "127.0.0.1":
        with suppress(OSError):
            sockets.append(_listening(socket.AF_INET6, "::1", first.getsockname()[1]))
    return sockets


def _listening(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((host, port))
        made.listen(128)
    except OSError:
        made.close()
        raise
    return made
