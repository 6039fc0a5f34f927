"""A folder of changed runs, for the tests of the command and of its cards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import perturb
from tests.robustness.attacked_runs import CHANGES


@pytest.fixture(scope="session")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("robust") / "attacked"
    words = [word for name in CHANGES for word in ("--perturbation", name)]
    assert perturb(["--data", "sample", *words, "--limit", "60", "--out", str(folder)]) == 0
    return folder
