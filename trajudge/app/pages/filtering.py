"""The filter that a page was asked with, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from trajudge.eval.store.filters import Filter, FilterError, parse_filter


class AskedFilter(NamedTuple):
    """The ``text`` as it was written; where it cannot be read, ``problem`` is a sentence for beside
    the field."""

    text: str
    chosen: Filter
    problem: str


def asked_filter(values: Mapping[str, str]) -> AskedFilter:
    """Read the filter ``f`` of an address."""
    text = values.get("f", "").strip()
    try:
        return AskedFilter(text, parse_filter(text), "")
    except FilterError as error:
        return AskedFilter(text, Filter(), str(error))
