from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.judges.adapters.errors import RateHeaders, rate_headers, retry_after


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "999999999"}, 86_400.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_when_to_come_back(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_a_date_ahead_is_seconds_from_now() -> None:
    ahead = datetime.now(UTC) + timedelta(seconds=30)
    seconds = retry_after({"retry-after": format_datetime(ahead, usegmt=True)})
    assert seconds is not None
    assert 20 < seconds <= 30


def test_limits_of_both_protocols() -> None:
    assert rate_headers({"content-type": "x"}) is None
    openai = {"x-ratelimit-limit-requests": "500", "x-ratelimit-remaining-tokens": "29000"}
    assert rate_headers(openai) == RateHeaders(requests=500, tokens_left=29_000)
    none = {"x-ratelimit-limit-tokens": "0", "x-ratelimit-remaining-tokens": "0"}
    assert rate_headers(none) is None
    anthropic = {
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-input-tokens-limit": "80000",
    }
    assert rate_headers(anthropic) == RateHeaders(requests_left=0, tokens=80_000)


@given(st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms"]), st.text()))
def test_any_text_is_survived(headers: dict[str, str]) -> None:
    seconds = retry_after(headers)
    assert seconds is None or 0 <= seconds <= 86_400
