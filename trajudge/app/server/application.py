"""The application: rooms of pages behind one guard.

A room is a package with a module ``routes``, whose function ``routes(...)`` lists Starlette's
routes; ``app.rooms`` puts them together. A handler takes a request and gives a response: what the
application shows is ``workspace.workspace_of(request)``, what it answers with stands in ``pages``.
Whatever a room needs besides is an argument of its ``routes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from trajudge.app.server.pages import NavLink, show_problem
from trajudge.app.server.problems import PageError
from trajudge.app.server.security.access import access_routes
from trajudge.app.server.security.guard import Guard
from trajudge.app.server.security.headers import SecurityHeaders
from trajudge.app.server.security.limits import RequestLimit
from trajudge.app.server.security.sessions import (
    WRONG_TOKEN_SECONDS,
    WRONG_TOKENS,
    People,
    Sessions,
    SignIn,
)
from trajudge.app.server.static_files import static_routes
from trajudge.app.server.workspace import Workspace
from trajudge.util.errors import UserError

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
