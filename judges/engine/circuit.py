"""Ends a run that cannot succeed, at its beginning and not after 1,300 failures."""

from __future__ import annotations

from judges.adapters.errors import (
    Blocked,
    CallFailed,
    Forbidden,
    NoAccess,
    RateLimited,
    Unreachable,
)
from trajectories.errors import UserError

SILENT_ROUNDS = 3
FORBIDDEN = 10


class Circuit:
    """Listens to how calls fail; ``error`` is set once the run is hopeless.

    That is after the first NoAccess; after ten times 403 or three rounds of attempts (calls that
    were under way together count as one) without a single answer ever; and when the server asks
    for a longer wait than a call may take, as for a daily quota.
    """

    def __init__(self, endpoint: str, patience: float) -> None:
        self.error: UserError | None = None
        self._endpoint = endpoint
        self._patience = patience
        self._reached = self._answered = False
        self._forbidden = 0
        self._rounds = 0
        self._last_round = float("-inf")

    def answered(self) -> None:
        """The server is there, and answers to this key."""
        self._reached = self._answered = True

    def failed(self, error: CallFailed, sent_at: float, now: float) -> UserError | None:
        """A call that was sent at ``sent_at`` has failed now; the run's end if that is it."""
        match error:
            case NoAccess():
                kept = "; everything that was answered is kept" if self._answered else ""
                self.error = self.error or UserError(f"{error}{kept}")
            case Forbidden() | Blocked() if not self._answered:
                self._refuse_all(error)
            case Unreachable() if not self._reached:
                self._silent(error, sent_at, now)
            case RateLimited() if (error.retry_after or 0.0) > self._patience:
                self.error = self.error or UserError(
                    f"{self._endpoint} asks to wait {error.retry_after:.0f} s ({error}): start the "
                    "same command again later; everything that was answered is kept"
                )
        self._reached = self._reached or not isinstance(error, Unreachable)
        return self.error

    def _refuse_all(self, error: Forbidden | Blocked) -> None:
        """One 403 may be about one prompt; ten and no answer are about the key."""
        self._forbidden += 1
        if self._forbidden >= FORBIDDEN:
            self.error = self.error or UserError(
                f"{self._endpoint} answered 403 to the first {FORBIDDEN} requests and answered "
                f"none ({error}): check what the key is allowed to do"
            )

    def _silent(self, error: Unreachable, sent_at: float, now: float) -> None:
        if sent_at < self._last_round:
            return
        self._last_round = now
        self._rounds += 1
        if self._rounds >= SILENT_ROUNDS:
            self.error = self.error or UserError(
                f"no answer from {self._endpoint} ({error}): check that the server runs there "
                "and that --base-url is right"
            )
