"""JSON as Python's ``json.dump`` writes it, which is more than JSON.

``json.dump`` writes NaN and Infinity, halves of surrogate pairs as escapes (``"\\ud83d"``, out of
pages whose scripts cut a text in the middle of an emoji), and other tools put a byte-order mark
before it. A file is decoded as it stands first; only one that is refused is repaired: no number
and infinity become null (under the name of a reward their word as text, so that a reader can say
that there was one), a lone half becomes U+FFFD, the mark goes. Everything else, texts that speak
of NaN included, stays as it is.
"""

from __future__ import annotations

import json
import mmap
import re
from codecs import BOM_UTF8
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import orjson

from trajudge.trajectories.util.surrogates import without_surrogates

T = TypeVar("T")
# A repaired copy stands in memory beside the file.
MAX_REPAIRED_BYTES = 128 * 2**20

# Escapes as wholes, so that the second backslash of a pair begins none; pairs before halves.
_ESCAPES = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_HALF = len(rb"\ud83d")
_REWARD = re.compile(rb'"(?:\w*reward|score|success|value)"\s*:\s*\Z')
# All up to the next word outside of a string, and the word. Strings are taken as wholes, and all
# repeats are possessive, so that a string without an end costs no more than one with.
_NUMBERS = re.compile(
    rb'((?:[^"NI-]++|-(?!I)|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)*+)(-?\bInfinity\b|\bNaN\b|)', re.DOTALL
)


def decode(
    content: bytes | mmap.mmap, decoder: msgspec.json.Decoder[T], *, numbers: bool = True
) -> T:
    """Decode JSON with ``decoder``, also where only Python writes it so.

    Without ``numbers``, NaN and Infinity stay mistakes.

    Raises ValueError (as msgspec does), RecursionError.
    """
    try:
        return decoder.decode(content)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        mended = repaired(content, numbers=numbers)
        if mended is None:
            raise
        return decoder.decode(mended)


def encode(value: object, *, default: Callable[[Any], Any] | None = None) -> bytes:
    """Encode JSON compactly, also with integers of more than 64 bits and lone surrogates, which
    other tools' files hold and orjson refuses."""
    try:
        return orjson.dumps(value, default=default)
    except orjson.JSONEncodeError:
        clean = without_surrogates(value)
        text = json.dumps(clean, ensure_ascii=False, separators=(",", ":"), default=default)
        return text.encode("utf-8", "replace")


def repaired(content: bytes | mmap.mmap, *, numbers: bool = True) -> bytes | None:
    """Rewrite what only Python writes in JSON's terms; None if the data holds no such thing."""
    if len(content) > MAX_REPAIRED_BYTES:
        return None
    before = bytes(content)
    after = before.removeprefix(BOM_UTF8)
    if rb"\u" in after:
        after = _ESCAPES.sub(_whole_character, after)
    if numbers and (b"NaN" in after or b"Infinity" in after):
        after = _NUMBERS.sub(_number, after)
    return after if after != before else None


def _whole_character(match: re.Match[bytes]) -> bytes:
    start = match[0]
    return rb"\ufffd" if len(start) == _HALF else start


def _number(match: re.Match[bytes]) -> bytes:
    if not match[2]:
        return match[0]
    return match[1] + (b'"%s"' % match[2] if _REWARD.search(match[1][-80:]) else b"null")
