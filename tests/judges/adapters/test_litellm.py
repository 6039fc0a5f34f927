from __future__ import annotations

import asyncio
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest

from tests.judges.adapters.requests import request
from trajudge.judges.adapters.errors import AuthFailed
from trajudge.judges.adapters.failures import ErrorBody
from trajudge.judges.adapters.litellm import (
    LiteLLMAdapter,
    ServerAnswer,
    own_completion,
    server_answer,
)
from trajudge.judges.models import ContextWindow

pytestmark = pytest.mark.skipif(
    find_spec("litellm") is None, reason="litellm is not installed (the extra of that name)"
)


def failed(**fields: Any) -> Exception:
    """Make an error that has these fields."""
    error: Any = RuntimeError("litellm: no")
    vars(error).update(fields)
    return error  # type: ignore[no-any-return]


def test_the_servers_own_answer_goes_before_what_litellm_makes_of_it() -> None:
    headers = {"Retry-After": "2"}
    refusal = SimpleNamespace(content=b'{"message": "no"}', status_code=400, headers=headers)
    empty = SimpleNamespace(content=b"", status_code=400, headers=headers)
    answers = [
        server_answer(failed(response=refusal)),
        server_answer(failed(response=empty, status_code=429, message="slow")),
        server_answer(failed(litellm_response_headers={"a": "b"}, response=empty)),
        server_answer(failed(status_code="odd")),
    ]
    assert answers == [
        ServerAnswer(400, ErrorBody("no"), {"retry-after": "2"}, is_whole=True),
        ServerAnswer(429, ErrorBody("slow"), headers, is_whole=False),
        ServerAnswer(500, ErrorBody("litellm: no"), {"a": "b"}, is_whole=False),
        ServerAnswer(500, ErrorBody("litellm: no"), {}, is_whole=False),
    ]


def test_a_completion_is_one_with_a_choice() -> None:
    assert own_completion('{"choices": [{"a": 1}]}') == {"choices": [{"a": 1}]}
    for other in ('{"choices": []}', '{"choices": {"0": {}}}', '{"choices": [1]}', "{}", "no", 7):
        assert own_completion(other) is None


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
