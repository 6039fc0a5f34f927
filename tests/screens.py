"""What every command prints first has to fit on one screen."""

from __future__ import annotations

from wcwidth import wcswidth

LINES = 40
WARNINGS = 5


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
