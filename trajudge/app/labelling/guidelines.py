"""The guidelines of a queue: a Markdown file, shown as a small safe subset.

Headings, lists, paragraphs, bold and code; everything else is text. Its version is the hash of its
content, which every label records.
"""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path
from typing import Literal, NamedTuple

from trajudge.util.files import read_regular

FILE = "guidelines.md"
_LONGEST = 200_000
_SPANS = re.compile(r"\*\*(?P<strong>[^*]+)\*\*|`(?P<code>[^`]+)`")


class TextSpan(NamedTuple):
    """Text of one look."""

    kind: Literal["text", "strong", "code"]
    text: str


class Block(NamedTuple):
    """A heading, a paragraph or a list, whose ``lines`` are made of spans."""

    kind: Literal["heading", "paragraph", "list"]
    lines: list[list[TextSpan]]


class Guidelines(NamedTuple):
    """What is shown, and its version; "" without a file."""

    blocks: list[Block]
    version: str


def read_guidelines(folder: Path) -> Guidelines:
    """Read the guidelines of a queue as they are now; none where there is no file."""
    text = _text(folder)
    return Guidelines(blocks_of(text or ""), _version(text))


def guideline_version(folder: Path) -> str:
    """Return the version of the guidelines as they are now, "" without a file."""
    return _version(_text(folder))


def _text(folder: Path) -> str | None:
    try:
        return read_regular(folder / FILE)[:_LONGEST].decode("utf-8", "replace")
    except OSError:
        return None


def _version(text: str | None) -> str:
    return "" if text is None else sha256(text.encode()).hexdigest()[:12]


def blocks_of(text: str) -> list[Block]:
    """Divide Markdown into blocks."""
    blocks: list[Block] = []
    is_open = False
    for line in text.splitlines():
        stripped = line.strip()
        heading = re.match(r"#{1,6}\s+(.*)", stripped)
        bullet = re.match(r"(?:[-*+]|\d+\.)\s+(.*)", stripped)
        if heading:
            blocks.append(Block("heading", [_spans(heading[1])]))
            is_open = False
        elif bullet:
            if not (blocks and is_open and blocks[-1].kind == "list"):
                blocks.append(Block("list", []))
            blocks[-1].lines.append(_spans(bullet[1]))
            is_open = True
        elif not stripped:
            is_open = False
        elif is_open:
            blocks[-1].lines[-1] += [TextSpan("text", " "), *_spans(stripped)]
        else:
            blocks.append(Block("paragraph", [_spans(stripped)]))
            is_open = True
    return blocks


def _spans(line: str) -> list[TextSpan]:
    spans, end = [], 0
    for match in _SPANS.finditer(line):
        spans.append(TextSpan("text", line[end : match.start()]))
        strong = match["strong"]
        spans.append(TextSpan("strong", strong) if strong else TextSpan("code", match["code"]))
        end = match.end()
    spans.append(TextSpan("text", line[end:]))
    return [span for span in spans if span.text]
