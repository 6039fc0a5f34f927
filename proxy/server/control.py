"""The control address: tasks begin and end, and a caller sees that this is its own proxy."""

from __future__ import annotations

import json
import os
from typing import Any

from trajudge.proxy.efficiency.streams import parsed
from trajudge.proxy.server.client import ClientConnection, reason_of
from trajudge.proxy.server.context import ProxyContext, ReceivedRequest

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
    name = asked.get("id") if isinstance(asked, dict) else None
    seed = asked.get("seed") if isinstance(asked, dict) else None
    if not isinstance(name, str) or not name or not (seed is None or _is_seed(seed)):
        return 400, {"error": 'send {"id": "shop.1", "seed": 0}; the seed may be left out'}
    if action == "POST port":
        port = await context.open_port()
    begun = context.tasks.begin(port, name, seed)
    return 200, {"task": begun.id, "seed": begun.schedule.seed, "port": port}


def _is_seed(seed: object) -> bool:
    return isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0


async def _send(client: ClientConnection, status: int, answer: dict[str, Any]) -> None:
    await client.send(status, reason_of(status), _JSON, json.dumps(answer).encode())
