"""What every request passes: the token, its size and form, and errors as one sentence."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import orjson
from aiohttp import web

from trajudge.rewards.server.service import RewardService, TooBusy
from trajudge.util.errors import UserError
from trajudge.util.terminal import one_line

log = logging.getLogger(__name__)

SERVICE = web.AppKey("service", RewardService)
LARGEST_BODY = 32 * 2**20
_OPEN = frozenset({"/healthz", "/readyz"})
_LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class RequestRefused(Exception):
    """A request that is answered with an error: its status and one sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@web.middleware
async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse whoever has no token, and answer what goes wrong with its status and a sentence."""
    service = request.app[SERVICE]
    try:
        _check_token(request)
        return await handler(request)
    except RequestRefused as refusal:
        return refused(service, refusal.status, str(refusal))
    except TooBusy:
        most = service.config.queue
        return refused(service, 429, f"{most} rewards are at work: ask again in a second", 1)
    except web.HTTPException as error:
        return refused(service, error.status, _sentence(request, error))
    except UserError as error:
        return refused(service, 503, one_line(str(error)), 5)
    except Exception:
        # A defect of ours, or a judge's code: it ends this request, and no other.
        log.exception("%s %s", request.method, request.match_info.route.resource)
        return refused(service, 500, "the server failed: its log says why")


def _sentence(request: web.Request, error: web.HTTPException) -> str:
    if error.status == 413:
        return f"the body is larger than {LARGEST_BODY // 2**20} MB: send less of it at once"
    return f"{request.method} {request.path}: {error.reason}"


def refused(
    service: RewardService, status: int, sentence: str, again: int | None = None
) -> web.Response:
    """Make the answer to a refused request; ``again``: seconds until asking again may help."""
    service.metrics.refused += 1
    headers = {} if again is None else {"Retry-After": str(again)}
    return json_response({"error": sentence}, status=status, headers=headers)


def json_response(
    content: Any, *, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    """Make an answer of JSON; NaN and infinity are null there."""
    return web.Response(
        body=orjson.dumps(content),
        status=status,
        headers=headers,
        content_type="application/json",
    )


async def json_object(request: web.Request) -> dict[str, Any]:
    """Return the body, a JSON object. Raises RequestRefused."""
    if request.content_type != "application/json":
        # A page in a browser can send other types to a server on this machine unasked.
        raise RequestRefused(415, "send the body as Content-Type: application/json")
    try:
        content = orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise RequestRefused(400, f"the body is not JSON ({error})") from error
    if not isinstance(content, dict):
        raise RequestRefused(400, "the body is no JSON object")
    return content


@lru_cache(maxsize=64)
def _host_of(header: str) -> str | None:
    """Return the name in a header ``Host``, without its port."""
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return header


def _check_token(request: web.Request) -> None:
    config = request.app[SERVICE].config
    token = config.token
    if token is None:
        # A name that leads to this machine lets a page in a browser ask from elsewhere.
        if (name := _host_of(request.host)) not in _LOCAL and name != config.host:
            raise RequestRefused(403, f"the host {name!s:.80} is not this server's: ask 127.0.0.1")
        return
    if request.path in _OPEN:
        return
    kind, _, given = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() != "bearer":
        # Clients that send no headers have it as the last part of the path.
        given = request.match_info.get("token", "")
    expected = token.get_secret_value().encode()
    if not hmac.compare_digest(given.strip().encode("utf-8", "replace"), expected):
        raise RequestRefused(401, "the token is missing or wrong: send Authorization: Bearer TOKEN")
