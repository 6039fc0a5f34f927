"""What a site's probes said before and after a run, recorded in the run's folder:

    trajudge rules probe --probes probes.json --run-folder runs/tea-1 --when before
    trajudge rules probe --probes probes.json --run-folder runs/tea-1 --when after

writes ``state.json``, which ``trajudge rules evaluate`` reads. Instead of recording the state after
the run, ``trajudge rules evaluate --probes`` asks for it when it judges.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from trajudge.rules.output import write_json
from trajudge.rules.reading import decode, read_bytes
from trajudge.rules.verified.backend import RestProbe, SqlProbe, State, captured

STATE_FILE = "state.json"
_NOT_ASKED = "the probe was not asked after the run"


class _Recorded(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One probe's replies, those that were asked for."""

    before: Any | UnsetType = UNSET
    after: Any | UnsetType = UNSET
    failure: str = ""


def load_probes(path: Path) -> dict[str, RestProbe | SqlProbe]:
    """Probes by name: a JSON object. Raises UserError."""
    probes: dict[str, RestProbe | SqlProbe] = decode(
        read_bytes(path), dict[str, RestProbe | SqlProbe], path
    )
    return probes


def run_states(file: Path | None, now: Mapping[str, State]) -> dict[str, State]:
    """Return the states of one run: what ``file`` recorded, else what the probes say ``now``.
    Raises UserError for a file that cannot be read."""
    recorded = _read(file) if file else {}
    names = sorted(recorded.keys() | now.keys())
    return {name: _state(recorded.get(name, _Recorded()), now.get(name)) for name in names}


def _state(recorded: _Recorded, now: State | None) -> State:
    before = None if recorded.before is UNSET else recorded.before
    if recorded.failure:
        return State(before=before, failure=recorded.failure)
    if recorded.after is not UNSET:
        return State(after=recorded.after, before=before)
    if now is None:
        return State(before=before, failure=_NOT_ASKED)
    return msgspec.structs.replace(now, before=before)


def _read(file: Path) -> dict[str, _Recorded]:
    read: dict[str, _Recorded] = decode(read_bytes(file), dict[str, _Recorded], file)
    return read


def record(
    folder: Path, probes: Mapping[str, RestProbe | SqlProbe], when: Literal["before", "after"]
) -> dict[str, State]:
    """Asks the probes and writes what they say into the run's folder; what was recorded of the
    other moment is kept. A probe without a reply is recorded as such. Raises UserError."""
    file = folder / STATE_FILE
    recorded = _read(file) if file.exists() else {}
    replies = captured(probes)
    for name, reply in replies.items():
        earlier = recorded.get(name, _Recorded())
        said: Any = UNSET if reply.failure else reply.after
        if when == "before":
            recorded[name] = msgspec.structs.replace(earlier, before=said)
        else:
            recorded[name] = msgspec.structs.replace(earlier, after=said, failure=reply.failure)
    write_json(file, recorded)
    return replies
