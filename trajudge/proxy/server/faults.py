"""How each fault is carried out on a page load or an asset."""

from __future__ import annotations

import asyncio
import secrets
from html import escape
from typing import Any

from trajudge.proxy.http.bodies import Framing
from trajudge.proxy.http.messages import HeaderFields, field
from trajudge.proxy.pages.popup import PopupOverlay
from trajudge.proxy.pages.rewriting import no_store
from trajudge.proxy.plans.faults import (
    DelayFault,
    DripFault,
    Fault,
    OfflineFault,
    PopupFault,
    ResetFault,
    SessionFault,
    Stage,
    StatusFault,
    TruncateFault,
)
from trajudge.proxy.server.client import reason_of
from trajudge.proxy.server.exchange import ProxyExchange
from trajudge.proxy.server.tasks import PageLoad

_HTML = ("Content-Type", "text/html; charset=utf-8")
_OFFLINE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>No connection</title>{refresh}</head>
<body><h1>You are offline</h1><p>{url} cannot be reached because there is no connection.</p>
<p>{advice}</p></body></html>
"""
_STATUS = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body><h1>{title}</h1></body></html>
"""
_DRIP_STEP = 0.1  # seconds between two pieces


def replacing_fault(load: PageLoad) -> Fault | None:
    """Return the first open fault that takes the answer's place."""
    return next((fault for fault in load.open if fault.replaces), None)


def replaces_at(fault: Fault | None, stage: Stage) -> bool:
    """Tell whether a fault answers at this stage, without the origin's document."""
    if isinstance(fault, StatusFault | ResetFault):
        return fault.stage == stage
    return isinstance(fault, SessionFault | OfflineFault) and stage == "before"


async def hold_back(exchange: ProxyExchange, stage: Stage) -> None:
    """Wait as the delays of a stage say."""
    load = exchange.load
    for fault in list(load.open) if load else ():
        if load and isinstance(fault, DelayFault) and fault.stage == stage:
            _fired(exchange, load, fault, stage=stage, seconds=fault.seconds)
            with exchange.timed("injected"):
                await asyncio.sleep(fault.seconds)


async def answer_instead(
    exchange: ProxyExchange, load: PageLoad, fault: Fault, stage: Stage
) -> None:
    """Answer a page load by a fault that takes the origin's place."""
    exchange.replaced = True
    if isinstance(fault, ResetFault):
        exchange.error = "reset by a fault"
        exchange.client.reset()
        again = load.again is fault
        exchange.task.expect_retry(load, fault, exchange.head.method, exchange.url)
        if not again:
            _fired(exchange, load, fault, stage=stage)
    elif isinstance(fault, StatusFault):
        after = fault.retry_after
        headers = (("Retry-After", str(after)),) if after is not None else ()
        await _send_status(exchange, fault, headers)
        _fired(exchange, load, fault, stage=stage, status=fault.status)
    elif isinstance(fault, SessionFault):
        expired = fault.cookies if fault.cookies is not None else _cookies(exchange)
        gone = tuple(("Set-Cookie", f"{name}=; Path=/; Max-Age=0") for name in expired)
        exchange.task.follow(load, _absolute(exchange, fault.location))
        await _send(exchange, 303, (("Location", fault.location), *gone), b"")
        _fired(exchange, load, fault, stage=stage, status=303, cookies=list(expired))
    elif isinstance(fault, OfflineFault):
        await _send(exchange, 503, (_HTML,), _offline_page(exchange.url, fault))
        _fired(exchange, load, fault, stage=stage, status=503)
    _mask_others(exchange, load, fault)


async def _send_status(exchange: ProxyExchange, fault: StatusFault, headers: HeaderFields) -> None:
    page = b""
    if fault.body == "page":
        title = f"{fault.status} {reason_of(fault.status)}"
        page = _STATUS.format(title=title).encode()
        headers = (_HTML, *headers)
    await _send(exchange, fault.status, headers, page)


async def _send(exchange: ProxyExchange, status: int, headers: HeaderFields, body: bytes) -> None:
    headers = no_store(headers)
    exchange.answered(status, reason_of(status), headers)
    await exchange.client.send(status, reason_of(status), headers, body)


def _fired(exchange: ProxyExchange, load: PageLoad, fault: Fault, **details: Any) -> None:
    exchange.faults.append(fault.id)
    exchange.task.settle(load, fault, "fired", exchange.url, **details)


def impossible(exchange: ProxyExchange, load: PageLoad, fault: Fault, reason: str) -> None:
    """Record that the answer has no room for a fault."""
    exchange.task.settle(load, fault, "impossible", exchange.url, reason)


def _mask_others(exchange: ProxyExchange, load: PageLoad, fault: Fault) -> None:
    for other in list(load.open):
        exchange.task.settle(load, other, "masked", exchange.url, f"by {fault.id}")


def _cookies(exchange: ProxyExchange) -> tuple[str, ...]:
    pairs = field(exchange.head.headers, "cookie").split(";")
    return tuple(name for pair in pairs if (name := pair.partition("=")[0].strip()))


def _absolute(exchange: ProxyExchange, path: str) -> str:
    scheme, _, rest = exchange.url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}{path}"


def _offline_page(url: str, fault: OfflineFault) -> bytes:
    seconds = fault.retry_seconds
    refresh = "" if seconds is None else f'<meta http-equiv="refresh" content="{seconds}">'
    advice = "Check the connection." if seconds is None else "Trying to reconnect ..."
    return _OFFLINE.format(refresh=refresh, url=escape(url), advice=advice).encode()


def overlays_due(load: PageLoad) -> list[PopupOverlay]:
    """Return the overlays that a document gets, of one nonce."""
    nonce = secrets.token_urlsafe(16)
    popups = [fault for fault in load.open if isinstance(fault, PopupFault)]
    return [PopupOverlay(f"p{secrets.token_hex(6)}", nonce, fault) for fault in popups]


async def send_document(
    exchange: ProxyExchange,
    load: PageLoad,
    headers: HeaderFields,
    body: bytes,
    overlays: list[PopupOverlay],
) -> None:
    """Send a document that is whole, as overlays, truncation and drip would have it."""
    for overlay in overlays:
        fault = overlay.fault
        _fired(exchange, load, fault, overlay=overlay.id, accessibility=fault.accessibility)
    cut = next((fault for fault in load.open if isinstance(fault, TruncateFault)), None)
    drip = next((fault for fault in load.open if isinstance(fault, DripFault)), None)
    kept = body if cut is None else body[: int(len(body) * cut.share)]
    client = exchange.client
    await client.begin(
        exchange.status, exchange.reason, headers, Framing("length", len(body)), "HTTP/1.1"
    )
    if drip is not None:
        _fired(exchange, load, drip, seconds=drip.seconds)
        await _drip(exchange, kept, drip.seconds)
    else:
        await client.piece(kept)
    if cut is not None:
        exchange.replaced = True
        _fired(exchange, load, cut, kept=len(kept), size=len(body))
        exchange.error, client.open = "cut off by a fault", False


async def _drip(exchange: ProxyExchange, body: bytes, seconds: float) -> None:
    steps = max(1, min(len(body), round(seconds / _DRIP_STEP)))
    size = -(-len(body) // steps) or 1
    for start in range(0, len(body), size):
        with exchange.timed("injected"):
            await asyncio.sleep(seconds / steps)
        await exchange.client.piece(body[start : start + size])
