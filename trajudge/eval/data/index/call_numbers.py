"""Numbers by which calls are told apart and found."""

from __future__ import annotations

from hashlib import sha256

from trajudge.eval.data.index.keys import KeyLike

_HEX_DIGITS = 15  # a signed column of 64 bits holds them


def request_number(request: str) -> int:
    """Return a number of 60 bits that tells a request from others, the same in every process."""
    try:
        return int(request[:_HEX_DIGITS], 16)
    except ValueError:  # written by hand, for the engine's are hexadecimal
        return int(sha256(request.encode("utf-8", "replace")).hexdigest()[:_HEX_DIGITS], 16)


def place_of_call(key: KeyLike, sample: int, request: str) -> int:
    """Return the number of a judgment's calls to one request, good in this process: of 64 bits, so
    that two of a million calls share one in one run of ten million."""
    return hash((key.benchmark, key.agent, key.task_id, key.attempt, sample, request))


NO_REQUEST = request_number("")
"""Of a call whose request is not known, as of published judgments."""
