"""The control address: tasks begin and end, and a caller sees that this is its own proxy."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from trajudge.proxy.efficiency.streams import parsed
from trajudge.proxy.server.client import ClientConnection, reason_of
from trajudge.proxy.server.context import ProxyContext, ReceivedRequest
from trajudge.proxy.server.settings import ProxySettings
from trajudge.util.commands import MOST_PAGE_LOADS

PREFIX = "/__ctl/"
_JSON = (("Content-Type", "application/json"), ("Cache-Control", "no-store"))


async def control(context: ProxyContext, request: ReceivedRequest) -> None:
    """Answer ``POST task``, ``POST end``, ``POST port`` or ``GET health``."""
    head = request.head
    token, _, action = head.target.removeprefix(PREFIX).partition("/")
    if token != context.settings.token:
        wrong = {"error": "the token is another proxy's: use the address this proxy printed"}
        await _send(request.client, 403, wrong)
        return
    status, answer = await _act(context, f"{head.method} {action}", request.body, request.port)
    await _send(request.client, status, answer)


async def _act(
    context: ProxyContext, action: str, body: bytes, port: int
) -> tuple[int, dict[str, Any]]:
    if action == "GET health":
        return 200, {"nonce": context.settings.nonce, "pid": os.getpid()}
    if action == "POST end":
        return 200, context.tasks.end(port) or {}
    if action not in ("POST task", "POST port"):
        return 404, {"error": f"no action {action!r}: POST task, POST end, POST port, GET health"}
    asked = next(parsed(body), None)
    asked = asked if isinstance(asked, dict) else {}
    if mistake := _mistake(asked, context.settings):
        return 400, {"error": mistake}
    name, seed, horizon = (asked.get(field) for field in ("id", "seed", "horizon"))
    if action == "POST port":
        port = await context.open_port()
    begun = context.tasks.begin(port, str(name), seed, horizon)
    return 200, {"task": begun.id, "seed": begun.schedule.seed, "port": port}


def _mistake(asked: Mapping[str, Any], settings: ProxySettings) -> str:
    """Say what is wrong with a task that is to begin; empty for one that may."""
    name, seed, horizon = (asked.get(field) for field in ("id", "seed", "horizon"))
    if not isinstance(name, str) or not name or not all(map(_may_be_count, (seed, horizon))):
        return 'send {"id": "shop.1", "seed": 0, "horizon": 6}; seed and horizon may be left out'
    if horizon and horizon > MOST_PAGE_LOADS:
        return f"the horizon {horizon} is more than {MOST_PAGE_LOADS} page loads"
    if settings.plan.needs_horizon and not (horizon or settings.horizon):
        return "a fault of the plan is random(n): send the task's horizon too"
    return ""


def _may_be_count(value: object) -> bool:
    """Tell whether a value was left out or is a whole number, 0 or more."""
    return value is None or (type(value) is int and value >= 0)


async def _send(client: ClientConnection, status: int, answer: dict[str, Any]) -> None:
    await client.send(status, reason_of(status), _JSON, json.dumps(answer).encode())
