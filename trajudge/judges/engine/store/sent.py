"""Parameters that were really sent: an adapter renames and leaves out what a model refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import orjson
from pydantic import JsonValue

from trajudge.judges.adapters.base import Adapter


class SentCall(NamedTuple):
    """One kind of call. ``adapter`` is its name, None if the cache alone answered such calls."""

    model: str
    endpoint: str
    parameters: Mapping[str, JsonValue]
    adapter: str | None


class SentCalls:
    """Distinct kinds of calls of a run, in the order of their models and parameters."""

    def __init__(self) -> None:
        self.changes = 0
        self._calls: dict[tuple[str, str, bytes], SentCall] = {}
        self._last: tuple[str, bool, Mapping[str, JsonValue]] | None = None

    def note(
        self, adapter: Adapter, model: str, parameters: Mapping[str, JsonValue], *, cached: bool
    ) -> None:
        """Take in a reply's parameters; replies that report none are ignored."""
        # Nearly always the same as the last time: no need to look it up.
        if not parameters or (model, cached, parameters) == self._last:
            return
        self._last = model, cached, parameters
        key = (model, adapter.endpoint, orjson.dumps(parameters, option=orjson.OPT_SORT_KEYS))
        known = self._calls.get(key)
        if known is None or (known.adapter is None and not cached):
            name = None if cached else adapter.name
            self._calls[key] = SentCall(model, adapter.endpoint, parameters, name)
            self.changes += 1

    def __iter__(self) -> Iterator[SentCall]:
        return iter(self._calls[key] for key in sorted(self._calls))
