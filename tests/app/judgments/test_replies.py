"""Where values stand in replies, steps that texts speak of, and what the ledger knows of calls."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.eval.cases import call
from trajudge.app.judgments.ledger import CallTime, call_times
from trajudge.app.judgments.replies import reply_marks, with_steps


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("<success>Yes</success>", [("tag", "success", "Yes")]),
        ("Thoughts.\n**Status:** success", [("line", "status", "** success")]),
        ('x {"success": true}', [("JSON field", "success", "true")]),
        ("no verdict", []),
        ("<success>" + "a" * 500, [("tag", "success", "a" * 120)]),
    ],
)  # fmt: skip
def test_the_places_of_values(text: str, marks: list[tuple[str, str, str]]) -> None:
    found = reply_marks(text)
    assert [(mark.kind, mark.name, mark.value) for mark in found] == marks
    assert all(0 <= mark.start < mark.end <= len(text) for mark in found)


@pytest.mark.slow
def test_hostile_replies_take_no_time() -> None:
    for text in ("<success" * 40_000, "{" * 200_000, "status:" * 50_000, "step 1 " * 50_000):
        reply_marks(text)
        assert "".join(part.text for part in with_steps(text, 3)) == text


def test_references_to_steps() -> None:
    parts = with_steps("In step 2 and Steps 3-5, not step 99.", 10)
    assert [(part.text, part.step) for part in parts if part.step] == [
        ("step 2", 2), ("Steps 3", 3), ("5", 5)
    ]  # fmt: skip
    assert "".join(part.text for part in parts) == "In step 2 and Steps 3-5, not step 99."


def test_the_ledger_tells_the_call_that_was_made(tmp_path: Path) -> None:
    first, second = call().model_copy(update={"request": "a" * 64}), call()
    lines = [
        {"request": "a" * 64, "seconds": 0.0, "cached": True},
        {"request": "b" * 64, "seconds": 9.0, "cached": False},
        {"request": "a" * 64, "seconds": 2.5, "cached": False},
    ]
    (tmp_path / "calls.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    assert call_times(tmp_path, [first, second]) == [CallTime(2.5, False), None]
    (tmp_path / "calls.jsonl").write_bytes(orjson.dumps(lines[0]) + b'\n{"request":"a')
    assert call_times(tmp_path, [first]) == [CallTime(0.0, True)]
    (tmp_path / "calls.jsonl").write_bytes(b"")
    assert call_times(tmp_path, [first]) == call_times(tmp_path / "absent", [first]) == [None]
