"""The rate limit of the test server, and how each service tells of it."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime, timedelta


class Bucket:
    """Requests a minute, with a second's worth of burst."""

    def __init__(self, rpm: float) -> None:
        self.rpm = rpm
        self.rate = rpm / 60
        self.size = max(1.0, self.rate)
        self.level = self.size
        self.filled = time.monotonic()

    def take(self) -> float:
        """0 if admitted, else the seconds until the next request will be."""
        now = time.monotonic()
        self.level = min(self.size, self.level + (now - self.filled) * self.rate)
        self.filled = now
        if self.level >= 1:
            self.level -= 1
            return 0.0
        return (1 - self.level) / self.rate

    def headers(self, protocol: str, wait: float, whole_seconds: bool) -> dict[str, str]:
        """What the service tells of its limit, in the protocol's own names."""
        if protocol == "anthropic":
            reset = datetime.now(UTC) + timedelta(seconds=wait)
            told = {
                "anthropic-ratelimit-requests-limit": f"{self.rpm:g}",
                "anthropic-ratelimit-requests-remaining": str(int(self.level)),
                "anthropic-ratelimit-requests-reset": reset.isoformat(),
            }
        else:
            told = {
                "x-ratelimit-limit-requests": f"{self.rpm:g}",
                "x-ratelimit-remaining-requests": str(int(self.level)),
                "x-ratelimit-reset-requests": f"{math.ceil(wait * 1000)}ms",
            }
        if wait:
            told["retry-after"] = str(math.ceil(wait)) if whole_seconds else f"{wait:.3f}"
        return told
