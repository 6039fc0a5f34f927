"""A room of the server with forms, and what is sent to it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from trajudge.app.serving import Room
from trajudge.app.web import form_fields, page
from trajudge.util.errors import UserError

FORM = "application/x-www-form-urlencoded"


async def _form(request: Request) -> Response:
    return page(request, "login.html", problem="")


async def _change(request: Request) -> Response:
    return PlainTextResponse("changed " + (await form_fields(request)).get("text", ""))


async def _mistake(request: Request) -> Response:
    raise UserError("run: <b>is not there</b>")


async def _defect(request: Request) -> Response:
    raise ValueError("the secret of the machine")


ROOM = Room(
    [
        Route("/form", _form),
        Route("/change", _change, methods=["POST"]),
        Route("/mistake", _mistake),
        Route("/defect", _defect),
    ]
)
