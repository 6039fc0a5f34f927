"""JSON bodies: strict where they are written, forgiving where they were paid for."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

import orjson

from trajudge.judges.adapters.errors import BadReply
from trajudge.trajectories.util.surrogates import without_surrogates


def json_bytes(body: dict[str, Any]) -> bytes:
    """Encode the body of a request."""
    return orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS)


def json_object(body: bytes, where: str) -> dict[str, Any]:
    """Decode the JSON object of a body; raises BadReply.

    It is read as Python's json reads it where it is not strict JSON: half a surrogate pair, NaN,
    control characters in a string, a byte order mark or bytes that are no UTF-8 lose no answer.
    """
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        content = _forgiving(body, where)
    if not isinstance(content, dict):
        raise BadReply(f"{where} answered with JSON that is not an object")
    return content


def storable(value: Any) -> Any:
    """Convert ``value`` (JSON-like) to what UTF-8 and strict JSON can hold: a lone surrogate
    becomes U+FFFD, a number that is not finite None."""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return value


def _forgiving(body: bytes, where: str) -> Any:
    try:
        return storable(json.loads(body.decode("utf-8-sig", "replace"), strict=False))
    except (ValueError, RecursionError):
        raise BadReply(f"{where} answered with {len(body)} bytes that are not JSON") from None
