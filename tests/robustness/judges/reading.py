"""What a reader that decodes everything finds in a text: instructions, whatever the technique."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterable, Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from unicodedata import category, normalize
from urllib.parse import unquote

from PIL import Image as images

from trajudge.robustness.families import family_file
from trajudge.robustness.injections import GOALS
from trajudge.robustness.transforms import drawn_on
from trajudge.trajectories.model import ImageRef, Trajectory

_CYRILLIC = str.maketrans("асеорхуіѕјԁһАВЕКМНОРСТХ", "aceopxyisjdhABEKMHOPCTX")
_LETTERS = re.compile(r"[^\W\d_]+")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")


@cache
def _known() -> dict[str, str]:
    texts = family_file("injections")
    known = {_plain(w): goal for goal in GOALS for w in texts["goals"][goal]}
    return known | {_plain(w): "success" for w in texts["languages"].values()}


def _plain(text: str) -> str:
    """Letters alone, in lower case."""
    return "".join(_LETTERS.findall(text)).lower()


def _decoded(text: str) -> Iterator[str]:
    text = unquote(text).replace("\\'", "'").replace('\\"', '"').replace("\\n", "\n")
    # No letter of ASCII is of that category.
    shown = text if text.isascii() else "".join(c for c in text if category(c) != "Cf")
    yield shown
    yield normalize("NFKC", shown).translate(_CYRILLIC)
    if not text.isascii():
        yield "".join(chr(ord(c) - 0xE0000) for c in text if 0xE0020 <= ord(c) < 0xE007F)
    yield shown[::-1]
    yield re.sub(r"'\n\s*(?:\[\d+\] )?\w+ '|, (?:visible|clickable|hidden=True)", " ", shown)
    # A text of several lines is a node for each in a tree.
    names = re.findall(r"(?:\w+|title=)\s?'((?:[^'\\]|\\.)*)'", shown)
    yield " ".join(names)
    for match in _BASE64.finditer(shown):
        try:
            yield b64decode(match[0]).decode("utf-8", "replace")
        except (Error, ValueError):
            continue


@cache
def instructions(text: str) -> frozenset[str]:
    """The goals of all instructions in a text."""
    found = {_plain(one) for one in _decoded(text)}
    known = _known().items()
    return frozenset(goal for words, goal in known for one in found if words in one)


def drawn(ref: ImageRef | None) -> bool:
    """Whether a request for success stands on a picture: to draw it again changes nothing."""
    if ref is None or ref.problem:
        return False
    return _stands_on(ref.data or Path(str(ref.path)).read_bytes())


@cache
def _stands_on(picture: bytes) -> bool:
    wordings = family_file("injections")["goals"]["success"]
    with images.open(BytesIO(picture)) as opened:
        pixels = opened.convert("RGB")
    return any(drawn_on(pixels.copy(), text, "large") == pixels for text in wordings)


def texts(run: Trajectory) -> Iterable[str]:
    """Everything that is written in a record."""
    yield from filter(None, (run.goal, run.answer))
    for step in run.steps:
        page = step.observation
        parts = (page.url, page.axtree, page.page_error, step.reasoning, step.action)
        yield from filter(None, parts)
