"""Suggestions for names that a user mistyped."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``, did you mean 'X'?`` with the closest of ``known``, "" where none is close.

    Case, and what stands before the last slash, do not count.
    """
    from difflib import get_close_matches  # noqa: PLC0415 - for mistakes alone

    by_end = {_end(other): other for other in known}
    close = get_close_matches(_end(name), by_end, n=1, cutoff=0.7)
    return f", did you mean {by_end[close[0]]!r}?" if close else ""


def _end(name: str) -> str:
    return name.rpartition("/")[2].lower()
