"""HTTP calls through the openai and anthropic SDKs: a client whose ``post`` takes a prepared body.

The SDK keeps authentication, connections and timeouts; the body is ours, so that an image is
encoded once and not again for every request, and so is the parsing of the answer.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson

from trajudge.judges.adapters.errors import BadReply, CallFailed, Unreachable, causes
from trajudge.judges.adapters.failures import ErrorBody, read_error
from trajudge.judges.adapters.wire import (
    json_bytes,
    json_object,
    refused_tunnel,
    through_proxy,
    without_credentials,
)
from trajudge.judges.model import Picture

_JSON = {"headers": {"Content-Type": "application/json"}}
_KEPT_BYTES = 64 * 2**20


class HttpResult(NamedTuple):
    """A status, the JSON object of a 200 or the error of anything else, and the headers.
    ``failure`` is what to raise where status and words do not tell."""

    status: int
    content: dict[str, Any]
    error: ErrorBody
    headers: Mapping[str, str]
    failure: CallFailed | None = None


class ImageBase64Cache:
    """Base64 of images as JSON strings, the latest 64 MB of them kept by hash."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0

    def __contains__(self, picture: Picture) -> bool:
        return picture.sha256 in self._kept

    def string(self, picture: Picture, prefix: str = "") -> orjson.Fragment:
        """Return the JSON string of ``prefix``, which is always that of the picture's media type,
        and the image's base64."""
        key = picture.sha256
        encoded = self._kept.get(key)
        if encoded is None:
            encoded = b'"' + prefix.encode() + b64encode(picture.data) + b'"'
            self._kept[key] = encoded
            self._bytes += len(encoded)
            while self._bytes > _KEPT_BYTES:
                self._bytes -= len(self._kept.popitem(last=False)[1])
        else:
            self._kept.move_to_end(key)
        return orjson.Fragment(encoded)


@cache
def http_library(sdk: ModuleType) -> ModuleType:
    """Import the HTTP library that this version of the SDK is built on: httpx, or its successor."""
    classes = sdk.DefaultAioHttpClient.__mro__
    base = next(kind for kind in classes if kind.__name__ == "AsyncClient")
    return import_module(base.__module__.partition(".")[0])


def http_client(sdk: ModuleType, *, timeout: float, max_connections: int) -> Any:
    """Make the SDK's aiohttp transport, which costs least under many connections."""
    library = http_library(sdk)
    limits = library.Limits(
        max_connections=max_connections, max_keepalive_connections=max_connections
    )
    # Waiting for a connection of the pool is not the server's silence: no timeout for it.
    patience = library.Timeout(timeout, connect=min(timeout, 30.0), pool=None)
    certificates = tuple(map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))
    return sdk.DefaultAioHttpClient(
        limits=limits, timeout=patience, verify=_tls(library, certificates)
    )


@cache
def _tls(library: ModuleType, certificates: tuple[str | None, ...]) -> Any:
    """Return what the library would make for every client, and for every proxy of each: to read
    all authorities takes 20 ms. ``certificates`` are the variables that it goes by."""
    return library.create_ssl_context()


async def post(
    sdk: ModuleType, client: Any, path: str, body: dict[str, Any], *, where: str
) -> HttpResult:
    """Make one attempt. Raises Unreachable and BadReply; a status that is not 200 is returned."""
    from aiohttp import ClientError  # noqa: PLC0415 - imported when it is first used

    try:
        response = await client.post(
            path,
            content=json_bytes(body),
            cast_to=http_library(sdk).Response,
            options=_JSON,
        )
    except sdk.APIStatusError as error:
        error_body = read_error(error.response.content)
        return HttpResult(error.status_code, {}, error_body, dict(error.response.headers.items()))
    except (sdk.APIConnectionError, ClientError) as error:  # openai 3 lets some of the latter pass
        raise no_answer(error, where) from None
    # A plain dict, of the items: every look into httpx's headers goes through all of them again.
    headers = dict(response.headers.items())
    return HttpResult(200, json_object(response.content, where), ErrorBody(), headers)


def no_answer(error: Exception, where: str) -> CallFailed:
    """Make the error from the end of the chain: the aiohttp transport calls every error of a
    connection (refused, reset, dropped) a timeout, and the SDK repeats it. A connection that
    closed within the answer gives BadReply: the server was there, and may charge for it."""
    if refused := refused_tunnel(error, where.partition(" ")[0]):
        return refused
    if any(isinstance(cause, TimeoutError) for cause in causes(error)):
        return Unreachable(f"{where} did not answer in time")
    if any(map(_breaks_off, causes(error))):
        return BadReply(f"{where} closed the connection in the middle of its answer")
    if any("BadHttpMessage" in _names(cause) for cause in causes(error)):
        return Unreachable(f"{where} answers with something that is not HTTP")
    return Unreachable(f"cannot reach {where}: {root_cause(error)}")


def _breaks_off(cause: BaseException) -> bool:
    """Return True if an answer had begun: its body is not whole, or its head is not."""
    names = _names(cause)
    if "ServerDisconnectedError" in names:  # its message is a head, as far as it came
        return not isinstance(getattr(cause, "message", ""), str)
    return bool(names & {"ClientPayloadError", "PayloadEncodingError"})


def _names(cause: BaseException) -> set[str]:
    """Name an error's classes: aiohttp, whose they are, is imported when it is first used."""
    return {kind.__name__ for kind in type(cause).__mro__}


def root_cause(error: BaseException) -> str:
    """Return the message of the deepest cause: "Connect call failed", not "Connection error"."""
    *_, deepest = causes(error)
    return without_credentials(str(deepest)) or type(deepest).__name__


def host_of(url: str) -> str:
    """Return host and port of a URL, for messages."""
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    return f"{parts.hostname}:{port}"


def place_of(url: str) -> str:
    """Return host and port of a URL, for messages, and the proxy that answers for it: an answer
    over plain HTTP may be the proxy's own."""
    return host_of(url) + (through_proxy(url) if url.startswith("http:") else "")
