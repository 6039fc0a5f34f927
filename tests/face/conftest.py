"""A folder of its own for every test, and one model server for all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import trajudge as tj
from tests.llm_server import LlmServer

# Of a server of one's own no price is known.
PRICES = """
[models.gpt-4o-mini]
input = 0.15
output = 0.6

[models.dear]
input = 100000
output = 100000
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, in which runs and the cache of replies are kept."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRAJUDGE_CACHE", str(tmp_path / "cache" / "replies.sqlite"))
    (tmp_path / "prices.toml").write_text(PRICES)
    return tmp_path


@pytest.fixture(scope="session")
def runs() -> list[tj.Trajectory]:
    """The first twelve of the sample."""
    return tj.load("sample")[:12]


@pytest.fixture
def server() -> Iterator[LlmServer]:
    with LlmServer() as started:
        yield started
