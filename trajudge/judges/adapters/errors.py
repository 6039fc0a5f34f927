"""Errors of a call to a model, the same for every SDK, and the rate limits in response headers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from trajudge.judges.model import Usage
from trajudge.util.masking import masked

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


class CallFailed(Exception):
    """A call without a reply. ``str()`` is one sentence without keys or page text.

    ``usage`` is what the server billed all the same, where its answer reports it.
    """

    usage: Usage | None = None

    def __init__(self, message: str = "") -> None:
        super().__init__(masked(message))


class Retryable(CallFailed):
    """May succeed later; ``retry_after`` in seconds and ``limits`` where the provider reported
    them."""

    def __init__(
        self,
        message: str,
        retry_after: float | None = None,
        limits: RateHeaders | None = None,
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.limits = limits


class RateLimited(Retryable):
    """429: too many requests or tokens."""


class Overloaded(Retryable):
    """5xx or 529, but for 500."""


class ServerFailed(Retryable):
    """500: the request may be one that the server never answers, or the server may be ill."""


class Unreachable(Retryable):
    """No connection, a dropped one, or a timeout; the message says where."""


class BadReply(Retryable):
    """A body that is cut, malformed, or without the fields of the protocol."""


class Final(CallFailed):
    """The same request will fail again."""


class ContextOverflow(Final):
    """The prompt does not fit the model's context window."""


class Refused(Final):
    """Declined by a filter or by the model."""


class Blocked(Refused):
    """A firewall's page. The same page may be about the sender, so it is never kept: the next run
    asks again."""


class BadRequest(Final):
    """The request itself is wrong for this model."""


class Forbidden(Final):
    """403: the key may lack a right, which shows when every request gets this answer."""


class NoAccess(Final):
    """The key, the account or the model is wrong, and so is every request of the run."""


class AuthFailed(NoAccess):
    """No key, or a wrong one."""


class NoCredit(NoAccess):
    """The account cannot pay."""


class AccountClosed(NoAccess):
    """The provider serves nobody of this account, or of this place."""


class UnknownModel(NoAccess):
    """The server does not serve the model, or not to this key."""


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, its cause, the cause of that, and so on."""
    visited = set[int]()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in visited:
        visited.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__
