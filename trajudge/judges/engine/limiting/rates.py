"""Rate limit and concurrency limit of a server: the first is reported, the second is found out.

Both are plain state machines over a clock that the caller passes in (``now``, in seconds);
``judges.engine.limiting.limiter`` makes tasks wait for them.
"""

from __future__ import annotations

SHARE = 0.995  # of a limit that was told: the server's clock is not ours
SLACK = 0.1  # seconds of the rate that may be caught up at once, for timers that come late
CUT = 0.85  # what a refusal leaves of a pace: somebody else draws on the same limit
REGROWTH = 0.05  # of the limit, a second
EASY_PROBE = 8  # answers before one more is tried, at first
SAME = 0.1  # sizes this close are one limit, met again
RARE_PROBE = 8  # times the window's size: answers before one more is tried, at the least often


class RateLimiter:
    """Spaces requests (or tokens) evenly at a share of ``per_minute``; None: no limit known.

    The generic cell rate algorithm: ``_due`` is when the next unit would be due if every unit so
    far had come on time.
    """

    def __init__(self, per_minute: float | None = None) -> None:
        self.per_minute = per_minute
        self._fixed = per_minute
        self._due = 0.0
        self._share = SHARE
        self._cut_at = 0.0

    def delay(self, now: float) -> float:
        """Return the seconds until the next unit may go; 0 or less: now."""
        return 0.0 if self.per_minute is None else self._due - SLACK - now

    def take(self, now: float, units: float = 1.0) -> None:
        """Count ``units`` that go now."""
        if self.per_minute is not None:
            self._due = max(self._due, now) + units * 60.0 / (self.per_minute * self.share(now))

    def settle(self, units: float) -> None:
        """Correct an estimate by the units (negative: given back) that it was wrong by."""
        if self.per_minute is not None:
            self._due += units * 60.0 / (self.per_minute * SHARE)

    def share(self, now: float) -> float:
        """Return the share of the limit that is used now."""
        return min(SHARE, self._share + REGROWTH * (now - self._cut_at))

    def update_limit(self, per_minute: float | None) -> None:
        """Take over the limit that the server reports; a lower one set by the user stays."""
        if per_minute is not None and per_minute > 0:
            self.per_minute = min(per_minute, self._fixed or per_minute)

    def refused(self, now: float) -> None:
        """Use less after a refusal in spite of the pace, and return to the full share slowly."""
        self._share = self.share(now) * CUT
        self._cut_at = now


class AdaptiveConcurrency:
    """Number of requests that may be in flight at once, at most ``cap``.

    A refusal shrinks it to what the server is holding at that moment, which is a measurement and
    not a guess. It then grows by one, and by more while that succeeds, each time only after its
    present size is known to be admitted; a size that is refused again and again is tried less and
    less often.
    """

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self.size = cap
        self._proven = 0  # the largest number in flight that is known to be admitted
        self._limit = 0  # the size that the last refusal left
        self._step = 1
        self._answers = 0  # since the last change
        self._patience = EASY_PROBE

    def answered(self, level: int) -> None:
        """Count an answer to the request that was the ``level``-th in flight when it was sent."""
        self._answers += 1
        self._proven = max(self._proven, level)
        if self._proven >= self.size < self.cap and self._answers >= self._patience:
            self.size = min(self.cap, self.size + self._step)
            self._step *= 2
            self._answers = 0

    def refused(self, level: int, held: int, *, alone: bool) -> None:
        """Count a refusal of the ``level``-th in flight; the server holds ``held`` others.

        ``alone``: hardly any other was refused of late. Below the present size, or at a level that
        is known to be admitted, that is bad luck and no limit.
        """
        if alone and (level < self.size or level <= self._proven):
            return
        self.size = self._proven = max(1, min(self.size, held))
        if self._answers:  # not one more refusal of the same wave
            is_the_same = abs(self.size - self._limit) <= SAME * self.size
            patience = 2 * self._patience if is_the_same else EASY_PROBE
            self._patience = min(patience, RARE_PROBE * self.size)
        self._limit = self.size
        self._step = 1
        self._answers = 0
