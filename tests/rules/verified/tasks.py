"""Small tasks and traces in the published forms."""

from __future__ import annotations

from typing import Any

import msgspec

from trajudge.rules.verified.network import Trace, trace_of_list
from trajudge.rules.verified.tasks import Task

SHOP = "http://shop.example:7770"
HOSTS = {"__SHOPPING__": (SHOP,)}


def task(
    data: Any = None,
    schema: dict[str, Any] | None = None,
    *network: dict[str, Any],
    task_type: str = "retrieve",
    status: str = "SUCCESS",
    **fields: Any,
) -> Task:
    """A task on the shop with one answer check and any network checks."""
    check = {
        "evaluator": "AgentResponseEvaluator",
        "results_schema": schema or {"type": "array", "items": {"type": "string"}},
        "expected": {"task_type": task_type, "status": status, "retrieved_data": data},
        **_own(fields, "ordered", "shape_only"),
    }
    events = [{"evaluator": "NetworkEventEvaluator", **check} for check in network]
    record = {"task_id": 1, "sites": ["shopping"], "intent": "Do it.", "eval": [check, *events]}
    return msgspec.convert({**record, **fields}, Task)


def _own(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    """Take the fields of these names out."""
    return {name: fields.pop(name) for name in names if name in fields}


def mutation(*network: dict[str, Any], **fields: Any) -> Task:
    """A task that changes something."""
    return task(None, {"type": "null"}, *network, task_type="mutate", **fields)


def navigation(*network: dict[str, Any], **fields: Any) -> Task:
    """A task that ends on a page."""
    return task(None, {"type": "null"}, *network, task_type="navigate", **fields)


def answer(data: Any = None, task_type: str = "retrieve", status: str = "SUCCESS") -> Any:
    """A response object."""
    return {"task_type": task_type, "status": status, "retrieved_data": data}


def request(
    path: str, method: str = "GET", status: int = 200, *, base: str = SHOP, **parts: Any
) -> dict[str, Any]:
    """A HAR entry. ``headers`` replace those of a script's request."""
    headers = parts.pop("headers", {"accept": "*/*"})
    made: dict[str, Any] = {
        "method": method,
        "url": base + path,
        "headers": [{"name": name, "value": value} for name, value in headers.items()],
    }
    if "form" in parts:
        made["postData"] = {
            "mimeType": "application/x-www-form-urlencoded",
            "text": parts.pop("form"),
        }
    if "body" in parts:
        text = msgspec.json.encode(parts.pop("body")).decode()
        made["postData"] = {"mimeType": "application/json", "text": text}
    return {"request": made, "response": {"status": status, **parts}}


def page(path: str, status: int = 200, *, dest: str = "document", **parts: Any) -> dict[str, Any]:
    """The load of a page, or with ``dest`` of a frame."""
    headers = {"accept": "text/html,*/*", "sec-fetch-dest": dest}
    return request(path, "GET", status, headers=headers, **parts)


def trace(*entries: dict[str, Any]) -> Trace:
    """The entries as a trace."""
    return trace_of_list(entries, "test")
