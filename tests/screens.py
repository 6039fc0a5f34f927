"""What every command prints first has to fit on one screen."""

from __future__ import annotations

import pytest

LINES = 40
WARNINGS = 5


@pytest.fixture(params=[100, 80])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The columns of the terminal."""
    columns: int = request.param
    monkeypatch.setenv("COLUMNS", str(columns))
    return columns


def one_screen(text: str, width: int) -> list[str]:
    """The lines, at most 40 of ``width`` columns, with at most five warnings, each once."""
    lines = text.splitlines()
    assert len(lines) <= LINES, text
    assert max(map(len, lines)) <= width, max(lines, key=len)
    warnings = [line for line in lines if line.startswith("warning: ")]
    assert len(set(warnings)) == len(warnings) <= WARNINGS
    return lines


def on_one_line(shown: str) -> str:
    """What was shown, whatever width it was folded to."""
    return " ".join(shown.split())
