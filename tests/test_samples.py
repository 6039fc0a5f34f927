"""What every run of the tests tries is the same, whatever ran before in the same process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.samples import FUZZING


def searched() -> list[str]:
    """What a search of texts tries."""
    tried: list[str] = []

    @settings(max_examples=400)
    @given(st.text())
    def search(text: str) -> None:
        tried.append(text)

    search()
    return tried


@pytest.mark.skipif(FUZZING, reason="make fuzz searches anew")
def test_a_search_does_not_depend_on_what_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = searched()
    words = ", ".join(f"'a constant no. {number}'" for number in range(500))
    (tmp_path / "of_constants.py").write_text(f"WORDS = [{words}]\n")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert __import__("of_constants").WORDS
        assert searched() == before
    finally:
        sys.modules.pop("of_constants", None)
