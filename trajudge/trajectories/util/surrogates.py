"""Half characters: a model or a page may send a lone UTF-16 surrogate, which no UTF-8 file can
hold. One such reply must not stop a run."""

from __future__ import annotations

from typing import Any


def without_surrogates(value: Any) -> Any:
    """``value`` (JSON-like) with lone surrogates as U+FFFD; a pair becomes its character."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {without_surrogates(k): without_surrogates(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [without_surrogates(entry) for entry in value]
    return value
