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
