"""What a handler makes its answer with: pages from templates, JSON, the fields of a form."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from trajudge.app.pages.templates import templates
from trajudge.app.server.problems import PageError
from trajudge.app.server.security.guard import read_form
from trajudge.app.server.static_files import static_address
from trajudge.util import jsonl as python_json
from trajudge.util.errors import UserError

MAX_FIELD = 20_000
"""Characters of one field of a form."""
HTMX_CONFIG = (
    '{"allowEval":false,"includeIndicatorStyles":false,"selfRequestsOnly":true,'
    '"historyCacheSize":0,"allowScriptTags":false,"responseHandling":['
    '{"code":"204","swap":false},{"code":"[23]..","swap":true},{"code":"422","swap":true},'
    '{"code":"[45]..","swap":false,"error":true}]}'
)
"""How htmx is set: nothing is evaluated or kept, and what a page says of a mistake (422) is
shown."""


Handler = Callable[[Request], Awaitable[Response]]


class NavLink(NamedTuple):
    """An entry of the navigation; ``keys`` open it."""

    address: str
    title: str
    keys: str = ""


def page(request: Request, template: str, status: int = 200, **context: Any) -> Response:
    """Render a template into a response, with what every page shows besides ``context``."""
    text = (
        templates()
        .get_template(template)
        .render(
            **{
                "csrf": getattr(request.state, "csrf", ""),
                "person": getattr(request.state, "person", None),
                "signed_in": getattr(request.state, "signed_in", False),
                "links": request.app.state.links,
                "here": _here(request),
                "static": static_address,
                "htmx_config": HTMX_CONFIG,
                "other_keys": request.app.state.keys,
                **context,
            }
        )
    )
    # Lone surrogates, which no encoding has, are shown as boxes where they are text.
    return HTMLResponse(text.encode("utf-8", "replace"), status)


def _here(request: Request) -> str:
    query = request.url.query
    return request.url.path + (f"?{query}" if query else "")


def form_routes(path: str, show: Handler, write: Handler) -> list[Route]:
    """Route a page with a form, and what is sent with it."""
    return [Route(path, show), Route(path, write, methods=["POST"])]


def wants_json(request: Request) -> bool:
    """Tell whether a program asks: it accepts JSON, and no page."""
    accepted = request.headers.get("accept", "")
    return "application/json" in accepted and "text/html" not in accepted


def json_page(value: Any, status: int = 200) -> Response:
    """Answer a program. ``value`` is what ``python_json`` encodes."""
    return Response(python_json.encode(value), status, media_type="application/json")


async def form_fields(request: Request) -> dict[str, str]:
    """Read the form that was sent; of several values of a name the last.

    Raises PageError for a field that is too long.
    """
    fields = read_form(await request.body())
    for name, values in fields.items():
        if any(len(value) > MAX_FIELD for value in values):
            raise PageError(
                413, f"The field {name[:40]} has more than {MAX_FIELD:,} characters: shorten it."
            )
    return {name: values[-1] for name, values in fields.items()}


def show_problem(request: Request, error: Exception) -> Response:
    """Answer with what went wrong, in one sentence; what is behind a defect is not told."""
    status, sentence = _problem(error)
    if wants_json(request):
        return json_page({"error": sentence.encode("utf-8", "replace").decode()}, status)
    return page(request, "error.html", status, sentence=sentence, status_code=status)


def _problem(error: Exception) -> tuple[int, str]:
    if isinstance(error, PageError):
        return error.status, error.sentence
    if isinstance(error, UserError):
        return 422, str(error)
    if isinstance(error, HTTPException):
        if error.status_code == 404:
            return 404, "There is no page at this address: go back to the list of runs."
        return error.status_code, f"This cannot be done here ({error.detail})."
    return 500, "This page cannot be shown because of a defect; the terminal shows more."
