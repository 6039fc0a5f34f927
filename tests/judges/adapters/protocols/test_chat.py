from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.judges.adapters.requests import PICTURE
from trajudge.judges.adapters import errors
from trajudge.judges.adapters.wire import count, merged, read_chat, read_usage, refused_tunnel, turn
from trajudge.judges.model import Message, Reply, Text, Usage


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


def test_the_error_of_a_200_names_the_model_if_the_answer_does() -> None:
    for model, named in ({}, "the model"), ({"model": "m-1"}, "m-1"):
        with pytest.raises(errors.UnknownModel, match=f"^x does not serve {named} "):
            read({"error": {"code": 404, "message": "no such model"}, **model})


def test_a_whole_answer() -> None:
    message = {"content": "ok", "detail": "of the answer", "reasoning_content": ""}
    choice = {"message": {**message, "reasoning": "a thought"}, "finish_reason": "stop"}
    answer = {"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}
    for model in ({}, {"model": "m-1"}):
        assert read_chat({**answer, **model}, where="x", key_variable="KEY") == Reply(
            text="ok",
            finish="stop",
            usage=Usage(input=9, output=3),
            model=model.get("model", ""),
            thoughts="a thought",
        )
    for refusal in {"refusal": "no"}, {"provider_specific_fields": {"refusal": "no"}}:
        refused = {"choices": [{"message": refusal}]}
        assert read_chat(refused, where="x", key_variable="KEY") == Reply(
            text="no", finish="refused"
        )


def test_texts_are_joined_only_for_a_server_that_takes_no_parts() -> None:
    one, two, none = (
        Message(role="user", parts=tuple(Text(text=text) for text in texts))
        for texts in ("a", "ab", "")
    )

    def content(message: Message, **options: bool) -> object:
        return turn(message, lambda picture: "", **options)["content"]

    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert [content(message) for message in (one, two, none)] == ["a", parts, ""]
    assert content(two, joins=True) == "a\n\nb"
    pictured = two.model_copy(update={"parts": (*two.parts, PICTURE)})
    image = {"type": "image_url", "image_url": {"url": ""}}
    assert content(pictured, joins=True) == [*parts, image]


def test_objects_of_one_name_are_joined() -> None:
    assert merged({"a": {"x": 1, "y": 1}}, {"a": {"y": 2}}) == {"a": {"x": 1, "y": 2}}
    assert merged({"a": {"x": 1}}, {"a": 2}) == {"a": 2}
    assert merged({"a": 2}, {"a": {"x": 1}}) == {"a": {"x": 1}}


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (403, errors.NoAccess, "it refuses the host (403): allow it there, or name it in NO_PROXY"),
        (407, errors.NoAccess, "it asks for a user and a password (407)"),
        (502, errors.Unreachable, "it answered 502"),
    ],
)
def test_a_proxy_that_the_environment_does_not_name(
    status: int, kind: type[errors.CallFailed], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    refused = refused_tunnel(OSError(f"Tunnel connection failed: {status} No"), "host:443")
    assert type(refused) is kind
    assert str(refused) == f"cannot reach host:443 through a proxy: {words}"
    assert refused_tunnel(OSError("no answer"), "host:443") is None


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


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        ({"prompt_tokens": 0, "completion_tokens": 3}, None),
        ({"prompt_tokens": 9, "completion_tokens": -1}, None),
        ({"prompt_tokens": 9}, None),
        ({"prompt_tokens": 9, "completion_tokens": 0}, Usage(input=9)),
        (
            {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 16},
            Usage(input=9, output=7, reasoning=4),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 5},
            Usage(input=9, output=3),
        ),
        (
            {
                **{"prompt_tokens": 9, "completion_tokens": 3},
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
            },
            Usage(input=3, cache_read=4, cache_write=2, output=3),
        ),
        (
            {
                **{"prompt_tokens": 9, "completion_tokens": 3},
                "prompt_tokens_details": {
                    **{"cached_tokens": 4, "cache_write_tokens": 8, "image_tokens": 5}
                },
            },
            Usage(input=0, cache_read=4, cache_write=5, output=3, image=5),
        ),
    ],
)
def test_counts_of_an_answer(told: dict[str, object], usage: Usage | None) -> None:
    assert read_usage(told) == usage


@pytest.mark.parametrize(
    ("value", "tokens"),
    [(0, 0), (7, 7), (7.0, 7), (7.5, None), ("7", None), (True, None), (-1, None), (None, 0)],
)
def test_what_is_a_count(value: object, tokens: int | None) -> None:
    assert count({"n": value}, "n") == tokens
    assert count([value], "n") == 0


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
