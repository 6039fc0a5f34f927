"""Samples of one judgment go out with seeds of their own."""

from __future__ import annotations

import pytest

from tests.judges.adapters.every_adapter import without_litellm
from tests.judges.adapters.requests import adapter_for, request
from tests.llm_server import LlmServer
from trajudge.judges.adapters.provider import ProviderAdapter
from trajudge.judges.adapters.wire import of_sample
from trajudge.util.commands import LARGEST

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("name", ["openai", "http", pytest.param("litellm", marks=without_litellm)])
async def test_each_sample_is_asked_with_a_seed_of_its_own(name: str) -> None:
    parameters = {"max_tokens": 50, "seed": 7}
    with LlmServer() as server:
        adapter, model = adapter_for(name, server.url)
        first = request(model, parameters=parameters)
        try:
            for sample in range(3):
                asked = first.model_copy(update={"sample": sample})
                reply = (await adapter.send(asked)).reply
                assert reply.parameters["seed"] == 7  # one configuration for the manifest
                if isinstance(adapter, ProviderAdapter):
                    assert adapter.batch_body(asked).body["seed"] == 7 + sample
        finally:
            await adapter.close()
    assert [seen.payload["seed"] for seen in server.seen] == [7, 8, 9]


def test_without_a_seed_none_is_made_up_and_the_largest_is_followed_by_0() -> None:
    assert of_sample({"seed": LARGEST}, 1) == {"seed": 0}
    assert of_sample({"temperature": 1}, 2) == {"temperature": 1}
