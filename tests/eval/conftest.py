"""What the commands keep between runs stays out of the cache of whoever runs the tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trainers import packages

__all__ = ["packages"]


@pytest.fixture(scope="module", autouse=True)
def cache_home(cache_folder: Path) -> Iterator[None]:
    """A cache for the tests of the module, which other modules of theirs find as it was left. No
    longer: what other tests need installed is in the user's cache, and would be installed anew."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache_folder))
        yield


@pytest.fixture
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A command's working folder and cache of its own, without keys and without a copy of the
    published data."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRAJUDGE_CACHE", str(tmp_path / "cache" / "replies.sqlite"))
    monkeypatch.setenv("TRAJUDGE_DATA", str(tmp_path / "no-copy"))
    monkeypatch.chdir(tmp_path)
