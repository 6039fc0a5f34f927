"""The progress line takes one row of the terminal, and elsewhere no more columns than a screen."""

from __future__ import annotations

import io
import re

import pytest

from tests.eval.cases import said
from trajudge.eval.runs.progress import RunProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [100, 80, 60])
def test_the_line_never_exceeds_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with RunProgress(3, stream=stream, name="a-judge:of-a-model/" * 8) as progress:
        progress.add(said(1, True))
        progress.tell("the provider limits the calls")
    shown = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", stream.getvalue())
    rows = re.split(r"[\r\n]+", shown)
    assert any(row.endswith("…") for row in rows)
    assert max(map(len, rows)) <= columns


def test_a_plain_line_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    stream = io.StringIO()
    with RunProgress(3, stream=stream, name="simplified-axtree-steps:of-a-model") as progress:
        progress.add(said(1, True))
    first, *more = stream.getvalue().splitlines()
    assert first.startswith("simplified-axtree-steps:of-a-model: judged 1/3")
    assert more and all(row.startswith("  ") for row in more)
    assert max(map(len, (first, *more))) <= 60
