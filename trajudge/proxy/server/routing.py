"""Which part of the proxy answers a request."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from trajudge.proxy.http.front import PROTOCOL
from trajudge.proxy.http.origins import OriginAddress, protocol_of
from trajudge.proxy.pages.loads import watched_kind
from trajudge.proxy.pages.popup import BEACON
from trajudge.proxy.server import control, model_api
from trajudge.proxy.server.client import reason_of
from trajudge.proxy.server.context import ProxyContext, ReceivedRequest
from trajudge.proxy.server.exchange import ProxyExchange
from trajudge.proxy.server.forwarding import FAILURES, forward
from trajudge.proxy.server.sites import MITM
from trajudge.proxy.server.tunnels import is_websocket, tunnel

OWN_HOST = "127.0.0.1"
_OWN_NAMES = (OWN_HOST, "localhost")
_PORTS = {"http": 80, "https": 443}


class Destination(NamedTuple):
    """Where a request is meant to go; ``target`` is what the origin is asked for."""

    host: str
    port: int
    target: str
    tls: bool


@lru_cache(maxsize=256)
def _destination(target: str, schemes: tuple[str, ...]) -> Destination | None:
    """Parse the absolute address in a request line; None for what is none of these schemes."""
    try:
        parts = urlsplit(target)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return None
    if parts.scheme not in schemes or not host:
        return None
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Destination(host, port or _PORTS[parts.scheme], path, parts.scheme == "https")


async def route(context: ProxyContext, request: ReceivedRequest) -> None:
    """Hand a request to the part that answers it. Raises FAILURES where the connection breaks."""
    head = request.head
    if head.method == "CONNECT":
        await _connect(context, request)
        return
    if head.method == PROTOCOL and request.fronted:
        await _tell_protocol(context, request)
        return
    if head.target.startswith("/"):
        await _own(context, request)
        return
    to = _destination(head.target, ("http", "https") if request.fronted else ("http",))
    if to is None:
        text = (
            f"{head.target[:80]!r} is no address of plain HTTP: the embedded proxy carries no other"
        )
        await request.client.sentence(400, text)
    elif to.host in _OWN_NAMES and to.port == request.port:
        await _own(context, request._replace(head=head._replace(target=to.target)))
    elif (api := _api_at(context, to.host, to.port, to.target)) is not None:
        await _call(context, request, api, to.target.removeprefix(api.path))
    else:
        await _site(context, request, to)


def _api_at(
    context: ProxyContext, host: str, port: int, path: str | None = None
) -> model_api.ModelApi | None:
    """Return the model API at an address, for agents that call it by its own."""
    for api in context.settings.apis:
        here = (api.origin.host, api.origin.port) == (host, port)
        if here and (path is None or path.startswith(api.path)):
            return api
    return None


async def _call(
    context: ProxyContext, request: ReceivedRequest, api: model_api.ModelApi, path: str
) -> None:
    call = model_api.ApiRequest(request.client, request.head, request.body, path, request.received)
    await model_api.call_model(api, context.pool, call, context.tasks.current(request.port))


async def _own(context: ProxyContext, request: ReceivedRequest) -> None:
    """Answer what is asked of the proxy itself."""
    if request.head.target.startswith(control.PREFIX):
        await control.control(context, request)
        return
    for api in context.settings.apis:
        base = f"{model_api.PREFIX}{api.name}"
        if request.head.target.startswith(f"{base}/"):
            await _call(context, request, api, request.head.target.removeprefix(base))
            return
    await request.client.sentence(
        404, "This is a proxy: name it as HTTP proxy, or call a model API that --api named."
    )


async def _refuse(context: ProxyContext, request: ReceivedRequest, host: str) -> None:
    """Answer at once for a host that is not the site's: browsers ask for many by themselves."""
    task = context.tasks.current(request.port)
    task.refused += 1
    if host not in task.refused_hosts:
        task.refused_hosts.add(host)
        task.log.write("refused", task=task.id, host=host, method=request.head.method)
    await request.client.sentence(403, f"{host} is no host of the site: name it with --site")


async def _site(context: ProxyContext, request: ReceivedRequest, to: Destination) -> None:
    """Answer a request of the site."""
    head, client = request.head, request.client
    origin = context.settings.sites.origin(to.host, to.port, tls=to.tls)
    if origin is None:
        await _refuse(context, request, to.host)
        return
    if head.method == "POST" and to.target.startswith(BEACON):
        task = context.tasks.current(request.port)
        task.popup_closed(to.target.removeprefix(BEACON))
        await client.send(204, reason_of(204), (), b"", bodiless=True)
        return
    head, kind = watched_kind(
        head, context.settings.token, watched=context.settings.cdp is not None
    )
    url = head.target.partition("#")[0]
    if kind.page:
        context.tasks.begin_at(request.port, head.method, url)
    task = context.tasks.current(request.port)
    if is_websocket(head.headers):
        task.tunnels += 1
        await _carried(request, origin, to.target)
        return
    load = task.load(head.method, url, certain=kind.certain) if kind.page else None
    exchange = ProxyExchange(
        client, head, request.body, url, to.target, origin, kind, task, load, request.received
    )
    try:
        await forward(exchange, context.pool)
    except FAILURES as error:
        exchange.error = exchange.error or f"broke off: {type(error).__name__}: {error}"[:200]
        raise
    finally:
        exchange.record()


async def _connect(context: ProxyContext, request: ReceivedRequest) -> None:
    """Tunnel to a host of the site, as browsers do for WebSockets; refuse https and others.

    mitmproxy only asks whether a host may be reached: what comes then it hands on by itself.
    """
    host, _, port = request.head.target.rpartition(":")
    host, number = host.lower(), int(port) if port.isdecimal() else 0
    origin = context.settings.sites.origin(host, number)
    if request.fronted and _api_at(context, host, number) is not None:
        origin = OriginAddress(host, number)
    if origin is None:
        await _refuse(context, request, host)
        return
    if request.fronted:
        await request.client.send(200, reason_of(200), (), b"")
        return
    task = context.tasks.current(request.port)
    if number == _PORTS["https"]:
        task.refused += 1
        text = f"https://{host}: the embedded proxy carries plain HTTP; {MITM}"
        await request.client.sentence(501, text)
    else:
        task.tunnels += 1
        await _carried(request, origin, "")


async def _tell_protocol(context: ProxyContext, request: ReceivedRequest) -> None:
    """Tell mitmproxy what a host speaks by TLS, so that the agent's client speaks the same."""
    host, _, port = request.head.target.rpartition(":")
    host, number = host.lower(), int(port)
    api = _api_at(context, host, number)
    origin = api.origin if api else context.settings.sites.origin(host, number, tls=True)
    try:
        protocol = await protocol_of(origin) if origin else ""
    except OSError:
        protocol = ""
    status = 200 if protocol else 502
    await request.client.send(status, reason_of(status), (), protocol.encode())


async def _carried(request: ReceivedRequest, origin: OriginAddress, target: str) -> None:
    opening = request.head if target else None
    try:
        await tunnel(request.client, origin, opening=opening, target=target)
    except OSError as error:
        await request.client.sentence(502, f"{origin.host}:{origin.port} does not answer ({error})")
