"""Where values stand in replies, and steps that texts speak of."""

from __future__ import annotations

import pytest

from trajudge.app.judgment_page import reply_marks, with_steps


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
