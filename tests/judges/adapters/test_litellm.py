from __future__ import annotations

import asyncio
from importlib.util import find_spec

import pytest

from judges.adapters.errors import AuthFailed
from judges.adapters.litellm import LiteLLMAdapter
from tests.judges.adapters.requests import request

pytestmark = pytest.mark.skipif(
    find_spec("litellm") is None, reason="litellm is not installed (the extra of that name)"
)


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
