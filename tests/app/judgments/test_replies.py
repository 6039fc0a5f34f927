"""The steps that a judge's text speaks of."""

from __future__ import annotations

from trajudge.app.judgment_page import with_steps


def test_hostile_texts_take_no_time() -> None:
    for text in ("steps 1 to " * 40_000, "step " * 100_000, "step 1 " * 50_000):
        assert "".join(part.text for part in with_steps(text, 3)) == text


def test_references_to_steps() -> None:
    parts = with_steps("In step 2 and Steps 3-5, not step 99.", 10)
    assert [(part.text, part.step) for part in parts if part.step] == [
        ("step 2", 2), ("Steps 3", 3), ("5", 5)
    ]  # fmt: skip
    assert "".join(part.text for part in parts) == "In step 2 and Steps 3-5, not step 99."
