"""One recorder (a server and a browser) for all tests that play runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from trajudge.environments.recording.recorder import Recorder, open_recorder


@pytest.fixture(scope="session")
def recorder(chromium: Path) -> Iterator[Recorder]:
    pytest.importorskip("playwright")
    with open_recorder(seed=0) as running:
        yield running


@pytest.fixture
def text_only(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorder takes no pictures: for tests of what agents do and how it is labelled."""
    monkeypatch.setattr(recorder, "pictures", False)
