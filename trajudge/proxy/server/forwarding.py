"""A request of the site, forwarded: streamed as it comes, held where a fault needs it whole."""

from __future__ import annotations

from asyncio import IncompleteReadError
from urllib.parse import urljoin, urlsplit

from trajudge.proxy.http.bodies import (
    BodyTooLarge,
    Framing,
    read_body,
    response_framing,
)
from trajudge.proxy.http.messages import (
    BadMessage,
    HeaderFields,
    ResponseHead,
    end_to_end,
    field,
    replaced,
    request_bytes,
    without,
)
from trajudge.proxy.http.origins import OriginConnection, OriginPool
from trajudge.proxy.pages.rewriting import (
    MAX_DOCUMENT,
    CannotRewrite,
    check_rewritable,
    no_store,
    plain_response,
    with_overlays,
)
from trajudge.proxy.plans.faults import AssetFault, DripFault, PopupFault, TruncateFault
from trajudge.proxy.server.client import reason_of
from trajudge.proxy.server.exchange import ProxyExchange
from trajudge.proxy.server.faults import (
    answer_instead,
    hold_back,
    impossible,
    overlays_due,
    replaces_at,
    replacing_fault,
    send_document,
)
from trajudge.proxy.server.tasks import PageLoad

REPEATABLE = ("GET", "HEAD", "OPTIONS")
_REDIRECTS = (301, 302, 303, 307, 308)
_NEED_THE_DOCUMENT = (PopupFault, TruncateFault, DripFault)
FAILURES = (OSError, BadMessage, IncompleteReadError, BodyTooLarge)


async def forward(exchange: ProxyExchange, pool: OriginPool) -> None:
    """Answer a request of the site: by the origin, or by the fault that is due."""
    load = exchange.load
    if load is not None:
        await hold_back(exchange, "before")
        fault = load.again or replacing_fault(load)
        if fault is not None and (load.again or replaces_at(fault, "before")):
            await answer_instead(exchange, load, fault, "before")
            return
    elif await _asset_failed(exchange):
        return
    repeatable = exchange.head.method in REPEATABLE
    try:
        with exchange.timed("site"):
            message = _message(exchange)
            connection, head = await pool.send(exchange.origin, message, repeatable=repeatable)
    except (OSError, BadMessage) as error:
        await _unreachable(exchange, str(error) or type(error).__name__)
        return
    try:
        await _answer(exchange, pool, connection, head)
    except BaseException:
        connection.close()
        raise


async def _unreachable(exchange: ProxyExchange, failure: str) -> None:
    exchange.error = f"no answer from the site: {failure}"
    exchange.answered(502, reason_of(502), ())
    where = f"{exchange.origin.host}:{exchange.origin.port}"
    await exchange.client.sentence(502, f"{where} does not answer ({failure}): is the site up?")


async def _asset_failed(exchange: ProxyExchange) -> bool:
    """Answer an asset by the fault of its page; tell whether there is one."""
    task = exchange.task
    fault = task.asset_fault(exchange.kind.asset)
    if fault is None or task.page is None:
        return False
    exchange.faults.append(fault.id)
    headers = no_store(())
    exchange.answered(fault.status, reason_of(fault.status), headers)
    await exchange.client.send(fault.status, exchange.reason, headers, b"")
    if fault in task.page.open:
        task.settle(task.page, fault, "fired", exchange.url, status=fault.status)
    return True


def _message(exchange: ProxyExchange) -> bytes:
    """Return the request as the origin gets it."""
    headers = end_to_end(exchange.head.headers, "expect", "content-length")
    if _needs_document(exchange.load):
        # A 304 or a part has no document; what is encoded differently cannot be read.
        headers = without(headers, "if-none-match", "if-modified-since", "if-range", "range")
        headers = replaced(headers, "Accept-Encoding", "gzip")
    if exchange.body or exchange.head.method in ("POST", "PUT", "PATCH"):
        headers = (*headers, ("Content-Length", str(len(exchange.body))))
    return request_bytes(exchange.head.method, exchange.target, headers) + exchange.body


def _needs_document(load: PageLoad | None) -> bool:
    return load is not None and any(isinstance(f, _NEED_THE_DOCUMENT) for f in load.open)


async def _answer(
    exchange: ProxyExchange, pool: OriginPool, connection: OriginConnection, head: ResponseHead
) -> None:
    """Pass the origin's answer on, as the faults would have it."""
    load, framing = exchange.load, response_framing(exchange.head.method, head)
    headers = _own_headers(exchange, head)
    if load is not None:
        await hold_back(exchange, "after")
        fault = replacing_fault(load)
        if fault is not None and replaces_at(fault, "after"):
            connection.close()
            await answer_instead(exchange, load, fault, "after")
            return
        if head.status in _REDIRECTS and (location := field(head.headers, "location")):
            exchange.task.follow(load, urljoin(exchange.url, location))
        elif _needs_document(load):
            await _whole(exchange, load, connection, head, framing)
            pool.release(connection, head, framing)
            return
    exchange.answered(head.status, head.reason, headers)
    await _stream(exchange, connection, headers, framing)
    pool.release(connection, head, framing)


def _own_headers(exchange: ProxyExchange, head: ResponseHead) -> HeaderFields:
    """Return the fields that the client gets. A page, and under a plan with asset faults all that
    belongs to one, is loaded anew each time: what a browser keeps never reaches the proxy."""
    headers = end_to_end(head.headers)
    plan = exchange.task.schedule.plan
    watched = exchange.kind.asset and any(isinstance(f, AssetFault) for f in plan.faults)
    return no_store(headers) if exchange.load is not None or watched else headers


async def _stream(
    exchange: ProxyExchange, connection: OriginConnection, headers: HeaderFields, framing: Framing
) -> None:
    client, version = exchange.client, exchange.head.version
    if framing.kind == "none":  # what HEAD and 304 say of a length holds for the body they lack
        await client.send(exchange.status, exchange.reason, headers, b"", bodiless=True)
        return
    await client.begin(exchange.status, exchange.reason, headers, framing, version)
    with exchange.timed("site"):
        await client.pass_on(connection.reader, framing)


async def _whole(
    exchange: ProxyExchange,
    load: PageLoad,
    connection: OriginConnection,
    head: ResponseHead,
    framing: Framing,
) -> None:
    """Send a document that faults change. Raises as ``read_body``."""
    with exchange.timed("site"):
        body = await read_body(connection.reader, framing, MAX_DOCUMENT)
    headers, overlays = _own_headers(exchange, head), overlays_due(load)
    own = head._replace(headers=headers)
    try:
        if overlays:
            check_rewritable(own)
            host = urlsplit(exchange.url).netloc
            headers, body = with_overlays(*plain_response(own, body), overlays, host)
    except CannotRewrite as error:
        for overlay in overlays:
            impossible(exchange, load, overlay.fault, str(error))
        headers, overlays = own.headers, []
    exchange.answered(head.status, head.reason, headers)
    if framing.kind == "none":
        await exchange.client.send(head.status, head.reason, headers, b"", bodiless=True)
        return
    await send_document(exchange, load, headers, body, overlays)
