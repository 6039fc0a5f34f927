"""Tokens of Azure that expire during a run, through the real SDKs, against a server on loopback."""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import Any

import orjson
import pytest

from tests.judges.adapters.requests import request
from tests.llm_replies import Outgoing
from tests.llm_server import LlmServer
from trajudge.judges.adapters.clouds import AzureAdapter, entra_tokens, is_installed
from trajudge.judges.adapters.errors import AuthFailed
from trajudge.util.errors import UserError

pytestmark = pytest.mark.anyio

MODEL = "azure/gpt-4o"


class EntraServer(LlmServer):
    """A deployment that refuses expired tokens, and the identity that gives them: each is good for
    one answer."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.given = 0
        self.answered: list[str] = []

    def handle(self, target: str, headers: dict[str, str], body: bytes) -> Any:
        if target.startswith("/identity"):
            return Outgoing(200, orjson.dumps({"access_token": self.next_token(), **self.times()}))
        token = headers["authorization"].removeprefix("Bearer ")
        if token != f"token-{self.given}" or token in self.answered:
            return Outgoing(401, orjson.dumps({"error": {"message": "the token has expired"}}))
        self.answered.append(token)
        return super().handle(target, headers, body)

    def next_token(self) -> str:
        self.given += 1
        return f"token-{self.given}"

    @staticmethod
    def times() -> dict[str, str]:
        """A token that has expired when the next request asks for one."""
        return {
            "expires_on": str(int(time.time())),
            "resource": "https://cognitiveservices.azure.com",
            "token_type": "Bearer",
        }


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN", "AZURE_OPENAI_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
    return monkeypatch


async def answers(adapter: AzureAdapter, count: int) -> list[str]:
    try:
        return [(await adapter.send(request(MODEL))).reply.text for _ in range(count)]
    finally:
        await adapter.close()


async def test_a_provider_is_asked_for_every_request() -> None:
    with EntraServer(text="yes") as server:

        async def provider() -> str:
            return server.next_token()

        adapter = AzureAdapter(MODEL, base_url=server.url, token_provider=provider)
        assert await answers(adapter, 3) == ["yes"] * 3
        assert server.answered == ["token-1", "token-2", "token-3"]


async def test_a_token_that_does_not_renew_is_refused(environment: pytest.MonkeyPatch) -> None:
    with EntraServer(text="yes") as server:
        environment.setenv("AZURE_OPENAI_AD_TOKEN", server.next_token())
        with pytest.raises(AuthFailed, match="check AZURE_OPENAI_AD_TOKEN"):
            await answers(AzureAdapter(MODEL, base_url=server.url), 2)


@pytest.mark.skipif(
    not is_installed() or find_spec("msal") is None,
    reason="azure-identity is not installed (the extra azure)",
)
async def test_azure_identity_fetches_a_new_token_when_one_expires(
    environment: pytest.MonkeyPatch,
) -> None:
    with EntraServer(text="yes") as server:
        environment.setenv("IDENTITY_ENDPOINT", f"{server.url}/identity")
        environment.setenv("IDENTITY_HEADER", "secret")
        adapter = AzureAdapter(MODEL, base_url=server.url, token_provider=entra_tokens())
        assert await answers(adapter, 2) == ["yes"] * 2
        assert server.answered == ["token-1", "token-2"]


def test_the_resource_itself_is_asked_with_entra_where_no_key_is_set(
    environment: pytest.MonkeyPatch,
) -> None:
    url = "https://res.openai.azure.com"
    if is_installed():
        assert AzureAdapter(MODEL, base_url=url).endpoint == "azure:res.openai.azure.com"
    else:
        with pytest.raises(UserError, match="AZURE_OPENAI_API_KEY is not set"):
            AzureAdapter(MODEL, base_url=url)
