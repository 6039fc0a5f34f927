from __future__ import annotations

import asyncio
from importlib.util import find_spec

import pytest

from tests.judges.adapters.requests import request
from trajudge.judges.adapters.errors import AuthFailed
from trajudge.judges.adapters.litellm import LiteLLMAdapter
from trajudge.judges.models import ContextWindow

pytestmark = pytest.mark.skipif(
    find_spec("litellm") is None, reason="litellm is not installed (the extra of that name)"
)


@pytest.mark.slow
def test_a_key_that_is_not_set_is_named_and_nothing_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    async def ask() -> None:
        adapter = LiteLLMAdapter("openai/gpt-4o")
        try:
            await adapter.send(request("openai/gpt-4o"))
        finally:
            await adapter.close()

    with pytest.raises(AuthFailed, match="OPENAI_API_KEY"):
        asyncio.run(ask())


def test_its_own_table_tells_the_window_of_a_model_that_ours_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    adapter = LiteLLMAdapter("groq/newer-than-ours")
    newer = {"max_input_tokens": 131_072}
    monkeypatch.setitem(adapter._sdk.model_cost, "groq/newer-than-ours", newer)
    told = adapter.context_window("groq/newer-than-ours")
    assert told == ContextWindow(tokens=131_072, source="litellm")
    assert adapter.context_window("gemini/no-such-model") is None
    assert adapter.context_window("openai/gpt-4o") is None
