"""Patterns of a specification, under a time limit; the agent's text is only ever matched."""

from __future__ import annotations

import re
from functools import lru_cache

from trajudge.rules.limits import PATTERN_SECONDS, compiled, fullmatch, is_pattern, timed

HOLE = re.compile(r"\{\{\w+\}\}")
"""A place of a template that the published specification left unfilled: any one path segment."""

__all__ = ["HOLE", "found_at_start", "fullmatch", "is_pattern", "searches", "with_holes"]


@lru_cache(maxsize=65_536)
def searches(pattern: str, text: str) -> bool:
    """Tell whether the pattern occurs anywhere, whatever the case. Raises BadPattern, TooSlow."""
    return timed(compiled(pattern, int(re.IGNORECASE)).search, pattern, text, PATTERN_SECONDS)


def found_at_start(pattern: str, text: str, *, flags: int = 0) -> bool:
    """Tell whether the pattern matches from the start (``re.match``). Raises BadPattern,
    TooSlow."""
    return timed(compiled(pattern, flags).match, pattern, text, PATTERN_SECONDS)


def with_holes(text: str) -> str | None:
    """Return a pattern for a text with unfilled places; None for a text without any."""
    if not HOLE.search(text):
        return None
    parts = HOLE.split(text)
    return f"^{r'[^/?#]+'.join(re.escape(part) for part in parts)}$"
