"""The application from its parts, and its start: inputs, hosts, a port, a clean end on Ctrl-C.

A page's module has a function ``routes(...)`` that lists Starlette's routes; ``app.inspect`` puts
them together as rooms. A handler takes a request and gives a response: what the application shows
is ``workspace.workspace_of(request)``, what it answers with stands in ``web``.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from errno import EADDRNOTAVAIL
from pathlib import Path
from typing import NamedTuple

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from trajudge.annotations import open_labels, parse_labels
from trajudge.app.keys import read_keys
from trajudge.app.security import (
    WRONG_TOKEN_SECONDS,
    WRONG_TOKENS,
    Guard,
    People,
    RequestLimit,
    SecurityHeaders,
    Sessions,
    SignIn,
    access_routes,
    allowed_hosts,
    bracketed,
    check_server,
    new_token,
    own_hosts,
)
from trajudge.app.settings import ServerConfig
from trajudge.app.web import NavLink, PageError, show_problem, static_routes
from trajudge.app.workspace import Workspace
from trajudge.eval.store.inputs import open_spec
from trajudge.trajectories.goals import read_goals, split_goals
from trajudge.trajectories.loaders import parse_source
from trajudge.trajectories.sample import SAMPLE
from trajudge.util.errors import UserError
from trajudge.util.files import check_folder
from trajudge.util.machine import is_loopback


def check_data(specs: Sequence[str]) -> None:
    """Refuse data that could not be opened for a page. Raises UserError."""
    for spec in specs:
        goals = split_goals(spec)[1]
        if goals is not None:
            read_goals(goals)
        if parse_source(open_spec(spec))[1] is None:
            raise UserError(
                f"--data {spec}: names no copy on this machine: write --data {spec}:PATH"
            )


def check_annotations(spec: str) -> None:
    """Refuse labels whose file is not there, or whose annotators differ. Raises UserError."""
    path = None if spec == SAMPLE else parse_labels(spec).path
    if path is not None and not path.exists():
        raise UserError(
            f"--annotations {spec}: there is no file or folder {str(path)!r}: write KIND:PATH with "
            "the path of the labels"
        )
    open_labels(spec)


def check_queues(folder: Path) -> None:
    """Refuse a folder of queues that could not be one. It is made with the first queue, but not
    the folder that it is to lie in: that one would be misspelt. Raises UserError."""
    check_folder(folder, "--queues")
    if not folder.absolute().parent.is_dir():
        raise UserError(
            f"--queues {folder}: there is no folder {str(folder.parent)!r} to make it in: name a "
            "folder that exists, or make that one"
        )


# Requests of one session in so many seconds: more than a person causes, fewer than a script gone
# wrong.
_MOST_REQUESTS, _SECONDS = 1_000, 10.0


class Room(NamedTuple):
    """Pages that belong together, and their entries of the navigation."""

    routes: Sequence[Route]
    links: Sequence[NavLink] = ()


def application(
    workspace: Workspace,
    rooms: Sequence[Room],
    hosts: frozenset[str],
    port: int,
    people: People | None = None,
    *,
    keys: Mapping[str, str] | None = None,
) -> ASGIApp:
    """Make the application that shows a workspace to requests for ``hosts`` at ``port``. ``people``
    is asked who a token belongs to; None: nobody signs in. ``keys`` are those that others take the
    place of."""
    sessions = Sessions(f"trajudge-{port}")
    tries = RequestLimit(WRONG_TOKENS, WRONG_TOKEN_SECONDS)
    sign_in = SignIn(sessions, people, tries) if people else None
    own = [
        Route("/healthz", _healthy),
        Route("/favicon.ico", _no_icon),
        *static_routes(),
        *access_routes(sign_in),
    ]
    problems: Sequence[type[Exception]] = (PageError, UserError, HTTPException, Exception)
    inner = Starlette(
        routes=[*own, *(route for room in rooms for route in room.routes)],
        exception_handlers=dict.fromkeys(problems, _answer_problem),
    )
    inner.router.redirect_slashes = False
    inner.state.workspace = workspace
    inner.state.links = [link for room in rooms for link in room.links]
    inner.state.keys = orjson.dumps(dict(keys or {})).decode()
    limit = RequestLimit(_MOST_REQUESTS, _SECONDS)
    return SecurityHeaders(Guard(inner, hosts, sessions, sign_in, limit))


async def _answer_problem(request: Request, error: Exception) -> Response:
    return show_problem(request, error)


async def _healthy(request: Request) -> Response:
    return PlainTextResponse("ok\n")


async def _no_icon(request: Request) -> Response:
    return Response(status_code=204)


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
