from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.judges.adapters import errors
from trajudge.judges.adapters.failures import (
    ErrorBody,
    ErrorRule,
    error_of,
    failure,
    hidden_failure,
    read_error,
    refused_parameter,
    shown,
    stated_wait,
    with_numbers,
)


def kind_of(status: int, message: str, code: str = "") -> type[errors.CallFailed]:
    made = failure(status, ErrorBody(message, code), {}, where="x:1", key_variable="KEY")
    return type(made)


TOO_LONG = [
    "prompt is too long: 208310 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 199000 + 4096 > 200000",
    "This model's maximum context length is 4096 tokens",
    "the request exceeds the available context size, try increasing it",
]


@pytest.mark.parametrize("message", TOO_LONG)
def test_a_prompt_that_does_not_fit(message: str) -> None:
    assert kind_of(400, message) is errors.ContextOverflow


def test_an_account_without_credit_is_not_asked_again() -> None:
    assert kind_of(429, "You exceeded your current quota", "insufficient_quota") is (
        errors.NoCredit
    )


def test_only_image_words_make_a_500_final() -> None:
    assert kind_of(500, "image input is not supported") is errors.BadRequest
    assert kind_of(500, "something broke") is errors.ServerFailed
    assert kind_of(503, "no images today, overloaded") is errors.Overloaded


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({"message": "no"}, ErrorBody("no")),
        ({"error": {"message": "no", "code": 7, "type": "t"}}, ErrorBody("no", "7", "t")),
        ({"error": {"code": 7}}, ErrorBody("", "7")),
        ({"base_resp": {"status_code": 7}}, ErrorBody("", "7")),
        ({"code": 7}, None),
        ({"error": {}}, None),
        ({"error": {"message": "no", "param": "seed"}}, ErrorBody("no", "", "", "seed")),
        ([{"message": "no"}], ErrorBody("no")),
    ],
)
def test_what_is_an_error_in_json(content: object, error: ErrorBody | None) -> None:
    assert error_of(content) == error


def test_a_body_without_an_error_is_shown_itself() -> None:
    assert read_error(b'{"a": 1}') == ErrorBody("{'a': 1}", "", "", "", is_page=False)
    assert read_error(b'{"message": "no"}') == ErrorBody("no")
    assert read_error(b"no\n") == ErrorBody("no\n")
    assert read_error(b"<html>no</html>") == ErrorBody("no", is_page=True)


def test_to_which_answers_a_rule_applies() -> None:
    rule = ErrorRule(
        errors.AuthFailed,
        {401},
        *(re.compile("key"), re.compile("auth"), re.compile("never")),
        page=False,
    )
    for status, error, codes, applies in (
        (401, ErrorBody("key"), "", True),
        (401, ErrorBody("other"), "auth", True),
        (401, ErrorBody("other"), "other", False),
        (402, ErrorBody("key"), "auth", False),
        (401, ErrorBody("key never"), "auth", False),
        (401, ErrorBody("key", is_page=True), "auth", False),
    ):
        assert rule.applies(status, error, codes) is applies
    by_code = rule._replace(words=None, unless=None)
    assert [by_code.applies(401, ErrorBody("key"), codes) for codes in ("auth", "")] == [
        True,
        False,
    ]
    by_words = rule._replace(codes=None)
    assert [by_words.applies(401, ErrorBody(words), "") for words in ("key", "")] == [True, False]
    assert ErrorRule(errors.AuthFailed).applies(401, ErrorBody("x", is_page=True), "")


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Please retry after 7 seconds.", 7.0),
        ("try again in 1.5s", 1.5),
        ("try again in 20ms", 0.02),
        ("try again in 2m", 120.0),
        ("try again in 6m0s", 360.0),
        ("Try again in 1h2m3.5s.", 3723.5),
        ("try again in 3h", 10_800.0),
        ("try again in 6", None),
        ("try again later", None),
    ],
)
def test_a_wait_in_words(words: str, seconds: float | None) -> None:
    assert stated_wait(ErrorBody(words)) == seconds
    limited = failure(429, ErrorBody(words), {}, where="x:1", key_variable="KEY")
    told = failure(429, ErrorBody(words), {"retry-after": "9"}, where="x:1", key_variable="KEY")
    busy = failure(503, ErrorBody(words), {}, where="x:1", key_variable="KEY")
    waits = [one.retry_after for one in (limited, told, busy) if isinstance(one, errors.Retryable)]
    assert waits == [seconds, 9.0, None]


def test_numbers_that_a_cut_sentence_lacks_are_added() -> None:
    words = "This model's maximum context length is 4,096 tokens"
    assert with_numbers(words, words) == words
    assert with_numbers("too long", "too long") == "too long"
    assert with_numbers("too …", words) == "too … (maximum context length is 4096 tokens)"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ErrorBody("no such thing", "400"), errors.BadRequest),
        (ErrorBody("no such thing"), errors.Overloaded),
        (ErrorBody("no such thing", "429"), errors.RateLimited),
        (ErrorBody("Incorrect API key provided"), errors.AuthFailed),
    ],
)
def test_the_status_of_an_error_in_a_200(error: ErrorBody, kind: type[errors.CallFailed]) -> None:
    made = hidden_failure(error, where="x:1", key_variable="KEY", model="m")
    assert type(made) is kind


def test_a_providers_words_are_shown_up_to_two_hundred_characters() -> None:
    assert [shown("x" * 200), shown("x" * 201)] == ["x" * 200, "x" * 199 + "…"]


def test_keys_and_length_of_what_a_provider_says() -> None:
    said = "Wrong key sk-proj-abcdef123456 given. " + "x" * 500
    text = str(failure(400, ErrorBody(said), {}, where="x:1", key_variable="KEY"))
    assert "sk-proj" not in text
    assert len(text) < 250


@pytest.mark.parametrize(
    ("message", "parameter", "found"),
    [
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'", "", "max_tokens"),
        ("Unsupported value: 'temperature' does not support 0", "temperature", "temperature"),
        ("seed: Extra inputs are not permitted", "", "seed"),
        ("temperature must be at most 1", "temperature", None),
        ("Unsupported parameter: 'messages'", "messages", None),
    ],
)
def test_the_parameter_that_a_server_refuses(
    message: str, parameter: str, found: str | None
) -> None:
    sent = ["max_completion_tokens", "max_tokens", "temperature", "seed"]
    assert refused_parameter(ErrorBody(message, parameter=parameter), sent) == found


@pytest.mark.parametrize(
    "message",
    [
        "temperature: Input should be less than or equal to 1",
        "max_tokens: Input should be greater than or equal to 1",
        "Input should be 'user' or 'assistant'",
        "Invalid 'max_tokens': integer above maximum value. Expected a value <= 16384, got 20000.",
        "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens",
        "Invalid type for 'messages[0].content': expected one of a string or array of objects.",
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        "messages: too many images and documents: 105 + 0 > 100",
        "Total number of images in the prompt exceeds the limit of 5",
        "Header names are case-insensitive; max_tokens is case-sensitive",
        "This model does not support assistant message prefill",
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
        "Invalid 'messages': empty array",
        "",
    ],
)
def test_a_wrong_request_is_neither_too_long_nor_declined(message: str) -> None:
    assert kind_of(400, message) is errors.BadRequest


def test_what_a_server_repeats_of_the_request_is_not_its_own_word() -> None:
    body = (
        b'{"detail": [{"loc": ["body", "stop"], "msg": "Field required", "type": "missing", '
        b'"input": {"content": "our content policy; prompt is too long; no credits left"}}]}'
    )
    made = failure(422, read_error(body), {}, where="x:1", key_variable="KEY")
    assert type(made) is errors.BadRequest
    assert str(made) == "x:1 answered 422: Field required"


def test_a_proxys_page_is_shown_as_text_and_its_policy_is_not_the_prompts() -> None:
    page = b"<html><head><style>a{}</style></head><h1>Blocked</h1> by the acceptable use policy"
    made = failure(403, read_error(page), {}, where="x:1", key_variable="KEY", model="m")
    assert type(made) is errors.Forbidden
    assert str(made) == (
        "x:1 answered 403: Blocked by the acceptable use policy: check that the key in KEY may "
        "use m"
    )


@given(st.integers(min_value=400, max_value=599), st.binary(max_size=300))
def test_any_body_gives_one_of_our_errors(status: int, body: bytes) -> None:
    made = failure(status, read_error(body), {}, where="x:1", key_variable="KEY")
    assert isinstance(made, errors.CallFailed)
    assert "\n" not in str(made)
