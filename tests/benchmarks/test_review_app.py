"""The benchmark of the review application goes through its pages, in small."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.review_app import main


@pytest.mark.slow
def test_every_page_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAJUDGE_CACHE", "")
    words = ["--judgments", "300", "--requests", "3", "--folder", str(tmp_path)]
    figures = main(words)
    assert {"table", "first page", "table, both", "next page", "appended", "peak"} <= {*figures}
