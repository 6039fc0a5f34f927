"""The trainers of requirements-scale.txt, in an environment of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pinned import pinned_python
from trajudge.util.machine import PinnedPackage

ROOT = Path(__file__).parents[1]
TRAINERS = PinnedPackage(
    name="trainers",
    pins=ROOT / "requirements-scale.txt",
    module="torch",
    variable="TRAJUDGE_SCALE_PYTHON",
)


@pytest.fixture(scope="session")
def packages() -> Path:
    """The folder of the trainers' packages, which are installed if they are not there."""
    (folder,) = pinned_python(TRAINERS).parents[1].glob("lib/python*/site-packages")
    return folder
