"""What providers really say, through every adapter and its real SDK.

``provider_errors.jsonl`` holds errors as users of the providers reported them (``source``: an
issue as owner/repository#number, or a document), with the status and the class that each should
become. Where a report gives the words alone, the body around them is the provider's usual one. A
third of the rows (``split``: held-out) was put aside before the rules were written, and some
(later) were looked for when the rules stood; of both it was counted how many were right at first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.judges.adapters.every_adapter import every_adapter
from tests.judges.adapters.requests import adapter_for, request
from tests.llm_replies import Incoming, Outgoing
from tests.llm_server import LlmServer
from trajudge.judges.adapters import errors
from trajudge.judges.adapters.base import Adapter

pytestmark = pytest.mark.anyio

ROWS: list[dict[str, Any]] = [
    orjson.loads(line)
    for line in Path(__file__).with_name("provider_errors.jsonl").read_bytes().splitlines()
]
CLASSES: dict[str, type[errors.CallFailed]] = {
    "account_closed": errors.AccountClosed,
    "auth_failed": errors.AuthFailed,
    "bad_request": errors.BadRequest,
    "blocked": errors.Blocked,
    "context_overflow": errors.ContextOverflow,
    "forbidden": errors.Forbidden,
    "no_credit": errors.NoCredit,
    "overloaded": errors.Overloaded,
    "rate_limited": errors.RateLimited,
    "refused": errors.Refused,
    "server_failed": errors.ServerFailed,
    "unknown_model": errors.UnknownModel,
}


def test_the_table_is_broad() -> None:
    assert len(ROWS) >= 60
    assert len({row["provider"] for row in ROWS}) >= 12
    assert all(row["source"] for row in ROWS)


@pytest.mark.slow
@every_adapter
async def test_every_recorded_error_is_the_class_it_should_be(name: str) -> None:
    wrong = []
    current = ROWS[0]

    def respond(_: Incoming) -> Outgoing:
        body = current["body"]
        page = {"content-type": "text/html"}
        if isinstance(body, str):
            return Outgoing(current["status"], body.encode(), page)
        return Outgoing(current["status"], orjson.dumps(body))

    with LlmServer(text=respond) as server:
        adapter, model = adapter_for(name, server.url)
        # litellm takes its time over every error.
        for current in ROWS if name != "litellm" else ROWS[::2]:
            raised = await _error_of(adapter, model)
            if type(raised) is not CLASSES[current["expected"]]:
                wrong.append((current["provider"], current["source"], raised))
        await adapter.close()
    assert not wrong


async def _error_of(adapter: Adapter, model: str) -> errors.CallFailed | None:
    try:
        await adapter.send(request(model, parameters={"max_tokens": 100}))
    except errors.CallFailed as error:
        return error
    return None
