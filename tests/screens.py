"""What every command prints first has to fit on one screen; a screen that a page of the
documentation shows is the one that is printed (``make screens`` writes it there)."""

from __future__ import annotations

import os
import re
from pathlib import Path

from wcwidth import wcswidth

LINES = 40
WARNINGS = 5
WRITING = "TRAJUDGE_WRITE_SCREENS" in os.environ


def same_screen(page: Path, block: str, printed: str, timed: re.Pattern[str]) -> None:
    """Compare the block of a page with what was printed, but for how long that took; put this in
    its place instead where screens are written."""
    if timed.sub("…", block) == timed.sub("…", printed):
        return
    assert WRITING, f"{page.name} shows\n{block}\nbut this is printed:\n{printed}"
    text = page.read_text(encoding="utf-8")
    assert text.count(block) == 1
    page.write_text(text.replace(block, printed), encoding="utf-8")


def one_screen(text: str, width: int) -> list[str]:
    """The lines, at most 40 of ``width`` columns, with at most five warnings, each once."""
    lines = text.splitlines()
    assert len(lines) <= LINES, text
    assert max(map(wcswidth, lines)) <= width, max(lines, key=wcswidth)
    warnings = [line for line in lines if line.startswith("warning: ")]
    assert len(set(warnings)) == len(warnings) <= WARNINGS
    return lines


def on_one_line(shown: str) -> str:
    """What was shown, whatever width it was folded to."""
    return " ".join(shown.split())
