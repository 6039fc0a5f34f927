"""Whether judges were shown the same of a trajectory.

What a judge was shown follows from the data that its run read, from what the judge declares that it
needs to see, and from how far its prompts were cut: the hash is over these three. Judges with one
hash saw the same of the trajectory, in whatever words it was put.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from string import ascii_uppercase

import orjson

from trajudge.app.judgments.settings import Manifest, NotRebuilt, remake
from trajudge.judges.model import Judgment


def shown_to(manifest: Manifest) -> str | None:
    """Name what the judge of a run is shown of any trajectory; None where that is not known."""
    try:
        needs = remake(manifest).needs
    except NotRebuilt:
        return None
    data = [manifest.get(name) for name in ("data", "revision", "goals", "loader_digest")]
    return orjson.dumps([data, needs.model_dump(mode="json", exclude={"requires"})]).decode()


def evidence_hash(shown: str | None, judgment: Judgment) -> str | None:
    """Hash what was shown for one judgment; None where it is not known, or nothing was judged."""
    if shown is None or (not judgment.calls and judgment.status == "skipped"):
        return None
    rungs = sorted({call.rung for call in judgment.calls} or {"full"})
    return sha256(orjson.dumps([shown, rungs])).hexdigest()


def letters(hashes: Iterable[str | None]) -> list[str]:
    """Put a letter in place of every hash, equal for equal ones; "?" for an unknown one."""
    known: dict[str, str] = {}
    shown = []
    for each in hashes:
        if each is not None and each not in known:
            known[each] = ascii_uppercase[len(known) % 26]
        shown.append("?" if each is None else known[each])
    return shown
