"""Rate limits in response headers: when to come back, and how much is allowed per minute."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

_LONGEST_WAIT = 24 * 3600.0


class RateHeaders(NamedTuple):
    """Requests and tokens allowed per minute and what is left of them; None where not reported."""

    requests: float | None = None
    requests_left: float | None = None
    tokens: float | None = None
    tokens_left: float | None = None


_NAMES = {
    "requests": ("x-ratelimit-limit-requests", "anthropic-ratelimit-requests-limit"),
    "requests_left": ("x-ratelimit-remaining-requests", "anthropic-ratelimit-requests-remaining"),
    "tokens": (
        "x-ratelimit-limit-tokens",
        "anthropic-ratelimit-tokens-limit",
        "anthropic-ratelimit-input-tokens-limit",
    ),
    "tokens_left": (
        "x-ratelimit-remaining-tokens",
        "anthropic-ratelimit-tokens-remaining",
        "anthropic-ratelimit-input-tokens-remaining",
    ),
}


_ALL_NAMES = frozenset(name for names in _NAMES.values() for name in names)


def rate_headers(headers: Mapping[str, str]) -> RateHeaders | None:
    """Parse the limits in the headers of either protocol (names in lower case); None if none.

    Values that are not numbers count as not reported, and so does a limit of 0 with what is left of
    it: some servers write 0 for a limit that they do not have.
    """
    if _ALL_NAMES.isdisjoint(headers):  # as from most servers of one's own
        return None
    limits = {field: _first_number(headers, names) for field, names in _NAMES.items()}
    for limit in ("requests", "tokens"):
        if limits[limit] == 0:
            limits[limit] = limits[limit + "_left"] = None
    return RateHeaders(**limits) if any(value is not None for value in limits.values()) else None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until the server wants to be asked again, at most a day.

    ``retry-after-ms`` goes before ``retry-after``, which is a number of seconds or an HTTP date
    (RFC 9110, section 10.2.3).
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return min(milliseconds / 1000, _LONGEST_WAIT)
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is None and value:
        seconds = _seconds_until(value)
    return None if seconds is None else min(seconds, _LONGEST_WAIT)


def _seconds_until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except (ValueError, TypeError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _first_number(headers: Mapping[str, str], names: Iterable[str]) -> float | None:
    numbers = (_number(headers.get(name)) for name in names)
    return next((number for number in numbers if number is not None), None)


def _number(value: str | None) -> float | None:
    """Parse a finite number that is not negative, or None."""
    try:
        number = float(value) if value is not None else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
