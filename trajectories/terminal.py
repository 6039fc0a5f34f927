"""What may be shown on a terminal: names, page text and a server's words are not ours."""

from __future__ import annotations

import re

# C0 and C1 controls (escape sequences begin with one), and what turns the direction of writing.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_LINE_BREAKS = re.compile(r"\s*[\r\n]+\s*")


def one_line(text: str) -> str:
    """``text`` on one line, every control character shown by its number instead of obeyed."""
    joined = _LINE_BREAKS.sub(" ", text.rstrip("\r\n"))
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", joined)
