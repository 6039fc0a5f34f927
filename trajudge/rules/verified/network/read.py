"""Traces of runs, out of every kind of file that ``rules.har`` opens, and out of plain lists."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from trajudge.rules.har.flaws import Flaw
from trajudge.rules.har.reading import read_recording, typed_entries
from trajudge.rules.har.records import Entry, Resources
from trajudge.rules.verified.network.events import Event, Trace
from trajudge.trajectories.util.errors import UserError


def load_trace(path: Path) -> Trace:
    """Return the trace in a HAR file (.har, .json, also as .gz, or Playwright's .har.zip), a
    Playwright trace (.zip, its folder, its ``trace.network``) or a JSON list of either's entries.

    Raises UserError, one sentence, for a file that is absent, cut off, malformed or none of these.
    """
    entries, resources, flaws = read_recording(path)
    return trace_of(entries, str(path), resources, flaws)


def trace_of(
    entries: Iterable[Entry],
    source: str = "trace",
    resources: Resources | None = None,
    flaws: tuple[Flaw, ...] = (),
) -> Trace:
    """Return the trace of decoded entries, with what could not be read of it."""
    return Trace(tuple(Event(entry, resources) for entry in entries), source, flaws)


def trace_of_list(items: Iterable[dict[str, Any]], source: str = "trace") -> Trace:
    """Return the trace of a plain list of HAR entries or of Playwright's resource snapshots.

    Raises UserError for an item that is no object.
    """
    try:
        encoded = (msgspec.Raw(msgspec.json.encode(item)) for item in items)
        entries, flaws = typed_entries(encoded)
        return trace_of(entries, source, flaws=flaws)
    except (msgspec.DecodeError, RecursionError, TypeError, ValueError) as error:
        raise UserError(f"{source}: an item is no HAR entry: {error}") from error
