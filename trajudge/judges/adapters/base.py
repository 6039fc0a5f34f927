"""Interface of the adapters: a Request goes in, a Reply and the reported rate limits come out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable
from urllib.parse import urlsplit, urlunsplit

from pydantic import JsonValue

from trajudge.judges.adapters.errors import RateHeaders
from trajudge.judges.model import Reply, Request
from trajudge.judges.models import ContextWindow, Price
from trajudge.util.errors import UserError
from trajudge.util.masking import remember_url

__all__ = [
    "AbandonsCalls",
    "Adapter",
    "AdapterResponse",
    "MarksPrompts",
    "RateHeaders",
    "ReportsContextWindow",
    "ReportsPrice",
    "TakesReasoning",
    "clean_url",
    "key_from",
]


class AdapterResponse(NamedTuple):
    """A reply, and the rate limits that came with it."""

    reply: Reply
    limits: RateHeaders | None = None


class Adapter(Protocol):
    """Sends requests with one SDK. ``endpoint`` tells who answers: it enters a request's hash.

    ``send`` makes one attempt (retries belong to the engine) and raises only CallFailed
    (``judges.adapters.errors``).
    """

    name: str
    endpoint: str

    async def send(self, request: Request) -> AdapterResponse: ...

    async def close(self) -> None: ...


@runtime_checkable
class ReportsContextWindow(Protocol):
    """An adapter whose server, or package, knows how many tokens a model's window holds."""

    def context_window(self, model: str) -> ContextWindow | None:
        """Return the window, None where it is not reported. Raises Unreachable if nobody
        answers."""
        ...


@runtime_checkable
class ReportsPrice(Protocol):
    """An adapter whose server may tell what a model costs."""

    def reported_price(self, model: str) -> Price | None:
        """Return the price, None where it is not reported. Raises Unreachable if nobody
        answers."""
        ...


@runtime_checkable
class ReportsSlots(Protocol):
    """An adapter whose server may tell how many requests it answers at once."""

    def slots(self, model: str) -> int | None:
        """Return their number, None where it is not reported. Raises Unreachable if nobody
        answers."""
        ...


@runtime_checkable
class MarksPrompts(Protocol):
    """An adapter whose provider caches what a prompt begins with only as far as it is marked; to be
    told whether whole prompts repeat, for to mark what is asked once costs more than it saves."""

    prompts_repeat: bool


@runtime_checkable
class AbandonsCalls(Protocol):
    """An adapter whose calls cost nothing and may take minutes: a run that is stopped does not wait
    for those under way."""

    def abandon(self, error: Exception) -> None:
        """End the calls under way: they raise ``error``."""
        ...


@runtime_checkable
class TakesReasoning(Protocol):
    """An adapter that can tell the model how much to reason."""

    def reasoning_fields(self, parameters: Mapping[str, JsonValue], model: str) -> dict[str, Any]:
        """Return the fields that go out for what the parameters say of reasoning. Raises UserError
        for what the model or its server does not take."""
        ...


def clean_url(url: str) -> str:
    """Return ``url`` without a trailing slash, so that it may be shown and hashed.

    Raises UserError if it is no http(s) URL, and for a user, a password or a query, which requests
    would lack.
    """
    try:
        parts = urlsplit(url)
        remember_url(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        parts, host, port = urlsplit(""), "", ""
    if parts.scheme not in {"http", "https"} or not host:
        raise UserError(f"--base-url {url!r} is not a URL: give one like http://127.0.0.1:8000/v1")
    host = f"[{host}]" if ":" in host else host
    clean = urlunsplit((parts.scheme, host + port, parts.path.rstrip("/"), "", ""))
    if "@" in parts.netloc or parts.query:
        raise UserError(
            f"--base-url {clean}: a user, a password or a query in the URL would not be sent: give "
            "what the server asks for with --extra-headers"
        )
    return clean


def key_from(variable: str, *, own_service: bool, model: str) -> str:
    """Return the key in the environment. Another server than the provider's may go without one.

    Raises UserError naming the variable if the provider's own service needs it.
    """
    key = os.environ.get(variable, "").strip()
    if key:
        return key
    if own_service:
        raise UserError(
            f"{variable} is not set, and {model!r} cannot be asked without a key: set it with  "
            f"export {variable}=...  or name a local server with --base-url"
        )
    return "none"
