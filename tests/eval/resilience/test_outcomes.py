"""Outcomes of a user's own agents: a line of the file is a line, whatever its values hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trajudge.eval.resilience.reading import OutcomeFile

# What Python's str.splitlines takes for the end of a line, and JSON and CSV do not.
SEPARATORS = ("\x85", "\u2028", "\u2029", "\x1e", "\x0b")


@pytest.mark.parametrize("separator", SEPARATORS)
def test_a_task_keeps_what_looks_like_the_end_of_a_line(tmp_path: Path, separator: str) -> None:
    task = f"buy{separator}mug"
    rows = [{"task": task, "arm": arm, "success": "yes"} for arm in ("clean", "busy")]
    lines, table = tmp_path / "outcomes.jsonl", tmp_path / "outcomes.csv"
    text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    lines.write_text(text, encoding="utf-8", newline="")
    header = "task,arm,success"
    cells = "\r\n".join([header, *(",".join(row.values()) for row in rows)])
    table.write_bytes(cells.encode())
    for path in (lines, table):
        assert OutcomeFile.read(path).place_of("busy", task, 1) is not None


def test_a_quoted_value_may_hold_a_line_break(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.csv"
    path.write_bytes(b'task,arm,success\n"two\nlines",clean,yes\n')
    assert OutcomeFile.read(path).place_of("clean", "two\nlines", 1) is not None
