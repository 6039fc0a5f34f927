"""How many tokens a prompt will take, estimated without a tokenizer and without a network.

The estimate is meant to err on the high side: text is encoded to UTF-8 and every byte mapped to
one of a few classes; a class, and the places where a word begins, weigh what they cost a byte-level
BPE. One token is at least one byte, so the byte count is an upper bound whatever the tokenizer.
"""

from __future__ import annotations

from math import ceil, sqrt
from typing import Literal

ImagePricing = Literal["openai", "openai-mini", "anthropic", "unknown"]


def _byte_classes() -> bytes:
    """One letter a class: a, A letters; 0 digit; . punctuation; n line break or tab; c control;
    u continuation byte; 2, j, 3, 4 first byte of two, of three (kana, CJK), of three, of four."""
    table = bytearray(b"c" * 32 + b"." * 96 + b"u" * 64 + b"2" * 32 + b"3" * 16 + b"4" * 16)
    for characters, name in (
        (b"abcdefghijklmnopqrstuvwxyz", b"a"),
        (b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"A"),
        (b"0123456789", b"0"),
        (b"\t\n\r", b"n"),
        (b" ", b" "),
        (b"\x7f", b"c"),
        (bytes(range(0xE3, 0xEA)), b"j"),
    ):
        for byte in characters:
            table[byte] = name[0]
    return bytes(table)


_CLASSES = _byte_classes()
# Twentieths of a token, found with cl100k on accessibility trees, agents' reasoning and JSON: no
# text of these is under-counted by much, none over-counted twice. Random letters without end
# (keys, base64) cost more than words, hence the weight of fourteen letters on end.
_WORD = 10
# By how much the estimate exceeds cl100k's count on prompts of real trajectories, all together.
_HEADROOM = 1.38
_BEFORE_WORD = bytes.maketrans(b" n0c", b"....")
_WEIGHTS = (
    *((b"a", 4), (b"A", 15), (b"aA", 16), (b"a" * 14, 80), (b"0", 15), (b".", 15)),
    *((b"n", 18), (b" ", 2), (b"c", 20), (b"2", 32), (b"j", 40), (b"3", 60), (b"4", 80)),
)


def count_tokens(text: str) -> int:
    """An estimate of the tokens of ``text``, on the high side; at most its bytes in UTF-8.

    Adding characters to a text never lowers its count.
    """
    encoded = text.encode("utf-8", "surrogatepass")
    classes = encoded.translate(_CLASSES)
    twentieths = sum(weight * classes.count(pattern) for pattern, weight in _WEIGHTS)
    twentieths += _WORD * classes.translate(_BEFORE_WORD).count(b".a")
    return min(len(encoded), -(-twentieths // 20))


def likely_tokens(text: str) -> int:
    """What the text will most likely take: for prices, where a safe estimate would be a wrong one.

    Within a tenth of cl100k's count on whole runs of accessibility trees, actions and reasoning.
    """
    return round(count_tokens(text) / _HEADROOM)


def most_tokens(text: str) -> int:
    """What ``text`` takes at the most, at once and without counting: its bytes in UTF-8, or a
    bound of them."""
    return len(text) if text.isascii() else 4 * len(text)


def fits(text: str, budget: int) -> bool:
    """Whether ``text`` takes at most ``budget`` tokens; no count where its bytes already fit."""
    return most_tokens(text) <= budget or count_tokens(text) <= budget


def _openai_tiles(width: int, height: int) -> int:
    """Tiles of 512 pixels after fitting into 2048 x 2048 and the short side into 768."""
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    return ceil(width * scale / 512) * ceil(height * scale / 512)


def _anthropic_pixels(width: int, height: int) -> int:
    """Pixels after the long side was fitted into 1568 and the whole into 1.2 megapixels."""
    scale = min(1.0, 1568 / max(width, height), sqrt(1_200_000 / (width * height)))
    return int(width * scale) * int(height * scale)


def image_tokens(width: int, height: int, pricing: ImagePricing = "unknown") -> int:
    """Tokens that an image of ``width`` x ``height`` pixels takes, by the provider's formula.

    ``openai`` is the gpt-4o family (85 + 170 a tile), ``openai-mini`` gpt-4o-mini (2833 + 5667 a
    tile), ``anthropic`` pixels / 750. ``unknown`` takes the larger of the first and of
    pixels / 750 without any downscaling.
    """
    if pricing == "anthropic":
        return ceil(_anthropic_pixels(width, height) / 750)
    tiles = _openai_tiles(width, height)
    if pricing == "openai":
        return 85 + 170 * tiles
    if pricing == "openai-mini":
        return 2833 + 5667 * tiles
    return max(85 + 170 * tiles, ceil(width * height / 750))
