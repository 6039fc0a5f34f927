"""The tokens that a request is expected to take, where a limit needs to know them."""

from __future__ import annotations

from collections.abc import Callable

from trajudge.judges.model import Request, Usage

Estimate = Callable[[Request], Usage]
"""The usage to expect of a request: its prompt's tokens, and an assumed number of output tokens."""


class ExpectedUsage:
    """The estimate of one request, made when it is first asked for, and once: counting a prompt's
    tokens takes time, and only a limit needs it."""

    __slots__ = ("_estimate", "_request", "_usage")

    def __init__(self, request: Request, estimate: Estimate | None) -> None:
        self._request = request
        self._estimate = estimate
        self._usage: Usage | None = None

    def __call__(self) -> Usage:
        if self._usage is None:
            self._usage = self._estimate(self._request) if self._estimate else Usage()
        return self._usage


def tokens_of(usage: Usage) -> int:
    """Return the tokens that a rate limit counts: prompt and answer."""
    return usage.input + usage.cache_read + usage.cache_write + usage.output
