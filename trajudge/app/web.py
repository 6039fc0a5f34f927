"""What a handler makes its answer with: addresses, forms, pages, JSON, style sheets and scripts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple, ParamSpec, TypeVar
from urllib.parse import parse_qs, quote, unquote, urlencode

import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from trajudge.app.rendering import templates
from trajudge.eval.store.filters import Filter, FilterError, parse_filter
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util import jsonl as python_json
from trajudge.util.errors import UserError
from trajudge.util.files import without_surrogates


class PageError(Exception):
    """A request that is answered by ``status`` and one ``sentence``: what is wrong, what to do."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Call a function in a thread of its own and return what it returns."""
    return await anyio.to_thread.run_sync(partial(function, *arguments, **options))


_MARK = "~"


def address(*parts: str | int, **query: str | int | None) -> str:
    """Join parts of a path and a query; a query's None and "" are left out."""
    path = "/" + "/".join(_part(str(part)) for part in parts)
    named = {name: value for name, value in query.items() if value not in (None, "")}
    return path + ("?" + urlencode(named, errors="replace") if named else "")


def trajectory_link(key: TrajectoryKey, **query: str | int | None) -> str:
    """Return the address of a trajectory's page."""
    return address("t", key.benchmark, key.agent, key.task_id, key.attempt, **query)


def last_page_link(key: TrajectoryKey, run: str = "") -> str:
    """Return the address of a small picture of a trajectory's last page, of a run's data."""
    return address("last", key.benchmark, key.agent, key.task_id, key.attempt, run=run)


def read_part(quoted: str) -> str:
    """Return the text of a quoted part of an address that ``address`` made."""
    text = unquote(quoted)
    return text[1:] if text.startswith(_MARK) else text


def _part(text: str) -> str:
    # A browser takes "." and ".." out of a path, quoted or not: they are marked. So is what begins
    # with the mark itself.
    marked = _MARK + text if text in (".", "..") or text.startswith(_MARK) else text
    return quote(str(without_surrogates(marked)), safe="")


class AskedFilter(NamedTuple):
    """The ``text`` as it was written; where it cannot be read, ``problem`` is a sentence for beside
    the field."""

    text: str
    chosen: Filter
    problem: str


def asked_filter(values: Mapping[str, str]) -> AskedFilter:
    """Read the filter ``f`` of an address."""
    text = values.get("f", "").strip()
    try:
        return AskedFilter(text, parse_filter(text), "")
    except FilterError as error:
        return AskedFilter(text, Filter(), str(error))


_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
_FOR_EVER = "private, immutable, max-age=31536000"


class StaticFile(NamedTuple):
    """A file's bytes, their type and the first digits of their hash."""

    content: bytes
    kind: str
    version: str


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Read every style sheet and script of the folder, by name."""
    return {
        file.name: StaticFile(content, kind, sha256(content).hexdigest()[:12])
        for file in files("trajudge.app").joinpath("static").iterdir()
        if (kind := _TYPES.get("." + file.name.rpartition(".")[2]))
        for content in [file.read_bytes()]
    }


def static_address(name: str) -> str:
    """Return the address of a file of ours; another one for another content."""
    return f"/static/{name}?v={static_files()[name].version}"


async def _serve(request: Request) -> Response:
    file = static_files().get(request.path_params["name"])
    if file is None:
        raise PageError(404, "There is no such file here.")
    dated = request.query_params.get("v") == file.version
    headers = {"Cache-Control": _FOR_EVER if dated else "no-cache", "Content-Type": file.kind}
    return Response(file.content, headers=headers)


def static_routes() -> list[Route]:
    """Route the files, which only those names reach that were read."""
    return [Route("/static/{name}", _serve)]


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


MAX_FIELDS = 1_000


def read_form(body: bytes) -> dict[str, list[str]]:
    """Read the fields of a form with all their values. Raises PageError for too many."""
    try:
        return parse_qs(
            body.decode("latin-1"),
            keep_blank_values=True,
            encoding="utf-8",
            errors="replace",
            max_num_fields=MAX_FIELDS,
        )
    except ValueError as error:
        raise PageError(413, f"A form has at most {MAX_FIELDS:,} fields.") from error
