"""Estimate the number of tokens of a prompt without a tokenizer and without a network.

The estimate is a sum over pairs of neighbouring bytes: every byte of the text's UTF-8 belongs to
one of 70 classes (each lower-case letter, a digit, a first byte of Cyrillic, ...), and a pair of
classes has a weight for each encoding, cl100k or o200k of OpenAI. Pairs of letters distinguish
languages: the encodings have more words of English than of Dutch. ``benchmarks/token_estimates.py``
fits the weights and prints their errors. One token is at least one byte, so the byte count is an
upper bound for any tokenizer.

The encodings themselves are never read here: their package is optional, and truncation needs a
count that never decreases when text is added, which theirs does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from math import ceil, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from trajudge.util.files import read_regular

if TYPE_CHECKING:
    from numpy.typing import NDArray

ImagePricing = Literal["openai", "openai-mini", "anthropic", "unknown"]
Encoding = Literal["cl100k", "o200k"]
ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)
WEIGHTS = Path(__file__).with_name("token_weights.json")
"""Thousandths of a token by encoding, then by pair of classes (``byte_classes``), row by row."""

# Control characters: ``?`` stands for them in a prompt, and no prompt may cost more than it counts.
_UNSENDABLE = bytes({*range(32), 127} - set(b"\n\r\t"))
# The factor by which the estimate exceeds the encoding's count.
_HEADROOM = 1.05
_O200K = re.compile(r"gpt-4o|chatgpt-|gpt-4\.[15]|gpt-5|gpt-oss|o\d")
_CL100K = re.compile(r"gpt-4|gpt-3\.5")
_ENCODING: ContextVar[Encoding] = ContextVar("encoding", default="cl100k")


@cache
def encoding_of(model: str) -> Encoding | None:
    """Return the encoding of an OpenAI model, by its name with or without ``provider/``; None
    for all others, whose encodings are unknown."""
    name = model.rpartition("/")[2].lower()
    if _O200K.match(name):
        return "o200k"
    return "cl100k" if _CL100K.match(name) else None


@contextmanager
def counting_for(encoding: Encoding | None) -> Iterator[None]:
    """Count in this encoding inside the context; None: in cl100k, which takes more tokens for
    most scripts than later encodings."""
    token = _ENCODING.set(encoding or "cl100k")
    try:
        yield
    finally:
        _ENCODING.reset(token)


@cache
def byte_classes() -> tuple[bytes, int]:
    """Return the class of every byte, as a table for ``bytes.translate``, and the number of
    classes.

    Each lower-case letter is a class, other ASCII is grouped by kind of character, continuation
    bytes in eight ranges, first bytes by script.
    """
    groups: list[bytes] = [
        *(bytes([letter]) for letter in range(97, 123)),
        *(b"\n\r", b"\t", b" ", bytes(range(65, 91)), b"0123456789"),
        *(b".,", b"\"'", b"()[]{}<>&%:\\", b"/;=?|" + _UNSENDABLE, b"-_"),
        b"!#$*+@^`~",
        *(bytes(range(start, start + 8)) for start in range(0x80, 0xC0, 8)),
        *(bytes(range(*ends)) for ends in ((0xC0, 0xCA), (0xCA, 0xCE), (0xCE, 0xD0))),
        *(bytes(range(*ends)) for ends in ((0xD0, 0xD4), (0xD4, 0xD6), (0xD6, 0xD8))),
        *(bytes(range(*ends)) for ends in ((0xD8, 0xDC), (0xDC, 0xE0))),
        *(bytes([first]) for first in range(0xE0, 0xF0)),
        bytes(range(0xF0, 0x100)),
    ]
    table = bytearray(256)
    for class_index, group in enumerate(groups):
        for byte in group:
            table[byte] = class_index
    return bytes(table), len(groups)


@cache
def _weights(encoding: Encoding) -> NDArray[np.int32]:
    return np.array(json.loads(read_regular(WEIGHTS))[encoding], dtype=np.int32)


def count_tokens(text: str) -> int:
    """Estimate the tokens of ``text``, slightly too high; at most its bytes in UTF-8.

    Within -3 % and +15 % of the encoding's count on corpora of trees, prose, JSON, addresses, 28
    languages in Latin script and the larger other scripts. Adding characters to a text never lowers
    its count.
    """
    encoded = text.encode("utf-8", "surrogatepass")
    if len(encoded) < 2:
        return len(encoded)
    table, kinds = byte_classes()
    classes = np.frombuffer(encoded.translate(table), np.uint8)
    pairs = classes[:-1].astype(np.int16) * kinds
    pairs += classes[1:]
    thousandths = int(_weights(_ENCODING.get()).take(pairs).sum())
    return min(len(encoded), max(1, -(-thousandths // 1000)))


def likely_tokens(text: str) -> int:
    """Estimate the tokens without headroom, for prices."""
    return round(count_tokens(text) / _HEADROOM)


def most_tokens(text: str) -> int:
    """Return an upper bound of the tokens of ``text`` without counting: its bytes in UTF-8, or a
    bound of them."""
    return len(text) if text.isascii() else 4 * len(text)


def byte_count(text: str) -> int:
    """Count the bytes of ``text`` in UTF-8, which are the most tokens that it can take."""
    return len(text.encode("utf-8", "surrogatepass"))


def fits(text: str, budget: int) -> bool:
    """Return True if ``text`` has at most ``budget`` tokens, without counting if its bytes
    already fit."""
    return most_tokens(text) <= budget or count_tokens(text) <= budget


def _openai_tiles(width: int, height: int) -> int:
    """Count tiles of 512 pixels after fitting into 2048 x 2048 and the short side into 768."""
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    return ceil(width * scale / 512) * ceil(height * scale / 512)


def _anthropic_pixels(width: int, height: int) -> int:
    """Count pixels after fitting the long side into 1568 and the whole into 1.2 megapixels."""
    scale = min(1.0, 1568 / max(width, height), sqrt(1_200_000 / (width * height)))
    return int(width * scale) * int(height * scale)


def image_tokens(width: int, height: int, pricing: ImagePricing = "unknown") -> int:
    """Compute the tokens of an image of ``width`` x ``height`` pixels by the provider's formula.

    ``openai`` is the gpt-4o family (85 + 170 per tile), ``openai-mini`` gpt-4o-mini (2833 + 5667
    per tile), ``anthropic`` pixels / 750. ``unknown`` is the larger of the first and of pixels /
    750 without any downscaling.
    """
    if pricing == "anthropic":
        return ceil(_anthropic_pixels(width, height) / 750)
    tiles = _openai_tiles(width, height)
    if pricing == "openai":
        return 85 + 170 * tiles
    if pricing == "openai-mini":
        return 2833 + 5667 * tiles
    return max(85 + 170 * tiles, ceil(width * height / 750))
