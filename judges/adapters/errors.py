"""What can go wrong with a call to a model, whatever the SDK.

::

    CallFailed
    ├── Retryable              the same request may succeed later
    │   ├── RateLimited        429, with the provider's Retry-After
    │   ├── Overloaded         5xx, 529: the server said that it cannot now
    │   ├── Unreachable        no connection, or no answer in time
    │   └── BadReply           an answer that is cut or is not the protocol's JSON
    └── Final                  the same request will fail again
        ├── ContextOverflow    the prompt is longer than the model's window
        ├── Refused            the provider's filter or the model declined
        ├── BadRequest         400 and the like, image refused among them
        └── AuthFailed         401, 403, a missing key
"""

from __future__ import annotations

from judges.adapters.headers import RateHeaders
from judges.model import Usage


class CallFailed(Exception):
    """A call that gave no reply. ``str()`` is one sentence without keys or page text.

    ``usage`` is what the server billed all the same, where its answer told.
    """

    usage: Usage | None = None


class Retryable(CallFailed):
    """May succeed later; ``retry_after`` in seconds and ``limits`` where the provider told them."""

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
    """5xx or 529."""


class Unreachable(Retryable):
    """No connection, a dropped one, or a timeout; the message says where."""


class BadReply(Retryable):
    """A body that is cut, malformed, or without the fields of the protocol."""


class Final(CallFailed):
    """Asking again changes nothing."""


class ContextOverflow(Final):
    """The prompt does not fit the model's context window."""


class Refused(Final):
    """Declined by a filter or by the model."""


class BadRequest(Final):
    """The request itself is wrong for this model."""


class AuthFailed(Final):
    """No key, a wrong key, or no right to the model."""
