from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trajudge.judges.adapters import errors
from trajudge.judges.adapters.wire import read_chat, read_usage
from trajudge.judges.model import Usage


def read(content: dict[str, Any]) -> str:
    return read_chat(content, where="x", key_variable="KEY").text


def test_content_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "other"}, {"type": "text", "text": "b"}]
    choice = {"message": {"content": parts}, "finish_reason": "stop"}
    assert read({"choices": [choice]}) == "ab"


def test_a_gateways_error_in_a_200_is_the_error_it_hides() -> None:
    with pytest.raises(errors.RateLimited):
        read({"error": {"code": 429, "message": "slow down"}})
    with pytest.raises(errors.Overloaded):
        read({"error": {"message": "upstream failed"}})
    with pytest.raises(errors.Refused):
        read({"choices": None, "base_resp": {"status_code": 1026, "status_msg": "new_sensitive"}})


def test_an_answer_that_its_provider_broke_off_is_the_error_it_names() -> None:
    broken = {"code": 502, "message": "Upstream idle timeout", "metadata": {"provider_name": "x"}}
    choice = {"message": {"content": "<success>Suc"}, "finish_reason": "error", "error": broken}
    with pytest.raises(errors.Overloaded) as caught:
        read({"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 3}})
    assert caught.value.usage == Usage(input=9, output=3)


@pytest.mark.parametrize("choices", [[], [None], [{"index": 0}]])
def test_an_answer_without_a_choice_tells_what_it_cost(choices: list[object]) -> None:
    with pytest.raises(errors.BadReply, match="without a choice") as caught:
        read({"choices": choices, "usage": {"prompt_tokens": 9, "completion_tokens": 3}})
    assert caught.value.usage == Usage(input=9, output=3)


def test_usage_takes_cached_tokens_out_of_input() -> None:
    told = {
        "prompt_tokens": 10,
        "completion_tokens": 6,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    assert read_usage(told) == Usage(input=6, cache_read=4, output=6, reasoning=5)
    assert read_usage(None) is read_usage({"prompt_tokens": "many"}) is None


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["choices", "message", "content", "error", "code", "usage", "refusal"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(["choices", "error", "usage", "model"]), json))
def test_any_json_is_a_reply_or_one_of_our_errors(content: dict[str, Any]) -> None:
    with suppress(errors.CallFailed):
        assert isinstance(read(content), str)
