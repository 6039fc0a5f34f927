"""Waiting for what another thread or process does."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import TypeVar

from tests.forked import Forked

T = TypeVar("T")
LIMIT = 300.0  # seconds: guards against hanging, is no measure of speed


def wait_until(
    condition: Callable[[], T],
    process: Forked | subprocess.Popen[bytes] | None = None,
    *,
    every: float = 0.005,
) -> T:
    """Return the first true value of the condition, which is asked ``every`` so many seconds; the
    process that it waits for must live meanwhile."""
    deadline = time.monotonic() + LIMIT
    while not (value := condition()):
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None, process.communicate()[1]
        time.sleep(every)
    return value
