"""The words of a command in tests: a helper's own, and those that a test gives in their place."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain


def instead(own: Sequence[str], words: Sequence[str]) -> list[str]:
    """Pairs of ``own``, an option and its value, unless ``words`` name the option; then these."""
    pairs = zip(own[::2], own[1::2], strict=True)
    return [*chain.from_iterable(pair for pair in pairs if pair[0] not in words), *words]
