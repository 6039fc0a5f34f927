"""Text for a table that a spreadsheet opens."""

from __future__ import annotations

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def no_formula(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would compute."""
    return f"'{text}" if text.startswith(_FORMULA) else text
