"""Style sheets and scripts of ours: read once, served by name, kept by browsers by their hash."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trajudge.app.server.problems import PageError

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
