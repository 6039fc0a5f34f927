"""The adapter without an SDK; what it shares with the others is in ``test_over_http``."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.judges.adapters.requests import adapter_for, request
from tests.llm_server import LlmServer
from trajudge.judges.adapters.wire import proxy_for

PROXIES = ("HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_its_replies_are_those_of_the_sdk_so_the_cache_serves_both() -> None:
    adapters = [adapter_for(name, "http://127.0.0.1:9")[0] for name in ("openai", "http")]
    assert len({adapter.endpoint for adapter in adapters}) == 1


@pytest.mark.anyio
async def test_it_goes_through_the_proxy_of_the_environment(
    environment: pytest.MonkeyPatch,
) -> None:
    with LlmServer(text="from the proxy") as proxy:
        environment.setenv("HTTP_PROXY", proxy.url)
        adapter, model = adapter_for("http", "http://model.invalid")
        sent = await adapter.send(request(model))
        await adapter.close()
        assert proxy.seen[0].path == "http://model.invalid/v1/chat/completions"
    assert sent.reply.text == "from the proxy"


def test_hosts_that_need_no_proxy_get_none(environment: pytest.MonkeyPatch) -> None:
    assert proxy_for("http://model.invalid/v1") is None
    environment.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    environment.setenv("NO_PROXY", "localhost")
    assert proxy_for("http://localhost:8000/v1") is None
    assert proxy_for("http://model.invalid/v1") == "http://127.0.0.1:9"


def test_it_needs_no_sdk() -> None:
    program = (
        "import asyncio, sys\n"
        "from tests.judges.adapters.requests import adapter_for, request\n"
        "from tests.llm_server import LlmServer\n"
        "async def main(url):\n"
        "    adapter, model = adapter_for('http', url)\n"
        "    await adapter.send(request(model))\n"
        "    await adapter.close()\n"
        "with LlmServer() as server:\n"
        "    asyncio.run(main(server.url))\n"
        "sys.exit('openai' in sys.modules or 'httpx' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
