"""Errors of a call to a model, the same for every SDK.

::

    CallFailed
    ├── Retryable              the same request may succeed later
    │   ├── RateLimited        429, with the provider's Retry-After
    │   ├── Overloaded         5xx, 529: the server said that it cannot now
    │   ├── ServerFailed       500: the server failed, at this request or at all
    │   ├── Unreachable        no connection, or no answer in time
    │   └── BadReply           an answer that is cut or is not the protocol's JSON
    └── Final                  the same request will fail again
        ├── ContextOverflow    the prompt is longer than the model's window
        ├── Refused            the provider's filter or the model declined
        │   └── Blocked        a firewall before the provider took offence at the request
        ├── BadRequest         400 and the like, image refused among them
        ├── Forbidden          403 without a word about the prompt
        └── NoAccess           no request of this run can succeed
            ├── AuthFailed     401, a missing or wrong key
            ├── NoCredit       402, an account that cannot pay
            ├── AccountClosed  an organisation or a country that is not served
            └── UnknownModel   404, a model that the server does not serve
"""

from __future__ import annotations

from collections.abc import Iterator

from trajudge.judges.adapters.protocols.headers import RateHeaders
from trajudge.judges.model import Usage


class CallFailed(Exception):
    """A call without a reply. ``str()`` is one sentence without keys or page text.

    ``usage`` is what the server billed all the same, where its answer reports it.
    """

    usage: Usage | None = None


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
