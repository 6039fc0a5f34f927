"""What a run really sent, as its manifest keeps it beside the parameters that were asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import orjson

from trajudge.eval.data.run_folder import MANIFEST, read_manifest, write_manifest
from trajudge.judges.engine.store.sent import SentCall, SentCalls

# Whose version decides what is on the wire.
_LIBRARIES = {
    **dict.fromkeys(("openai", "azure", "gemini"), "openai"),
    **dict.fromkeys(("anthropic", "bedrock", "vertex"), "anthropic"),
    "litellm": "litellm",
    "http": "aiohttp",
}

Entry = Mapping[str, Any]
"""``model``, ``endpoint``, ``adapter``, ``sdk`` with its version, ``parameters``; the adapter and
the SDK are None where the cache alone answered."""


def earlier_sent(folder: Path) -> list[Entry]:
    """Read what earlier sessions of the run in this folder sent. Raises UserError."""
    if not (folder / MANIFEST).is_file():
        return []
    sent = read_manifest(folder).get("sent")
    return [entry for entry in sent if isinstance(entry, dict)] if isinstance(sent, list) else []


class EffectiveParameters:
    """Keeps ``sent`` of the manifest in ``folder`` up to date with ``calls``."""

    def __init__(self, folder: Path, calls: SentCalls) -> None:
        self._folder = folder
        self._calls = calls
        self._written = 0

    def update(self) -> None:
        """Write the manifest anew if there is something new to tell. Raises UserError."""
        if self._calls.changes == self._written:
            return
        self._written = self._calls.changes
        manifest = read_manifest(self._folder)
        entries = [*earlier_sent(self._folder), *map(_entry, self._calls)]
        write_manifest(self._folder, manifest | {"sent": merged(entries)})


def merged(entries: Iterable[Entry]) -> list[Entry]:
    """Keep every kind of call once, sorted; one that was sent replaces the same from the cache."""
    by_call: dict[bytes, Entry] = {}
    for entry in entries:
        what = [entry.get(name) for name in ("model", "endpoint", "parameters")]
        key = orjson.dumps(what, option=orjson.OPT_SORT_KEYS)
        if key not in by_call or by_call[key].get("adapter") is None:
            by_call[key] = entry
    return [by_call[key] for key in sorted(by_call)]


def _entry(call: SentCall) -> Entry:
    library = _LIBRARIES.get(call.adapter or "")
    return {
        "model": call.model,
        "endpoint": call.endpoint,
        "adapter": call.adapter,
        "sdk": f"{library} {metadata.version(library)}" if library else None,
        "parameters": dict(call.parameters),
    }
