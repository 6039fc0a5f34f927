"""The trainers of requirements-scale.txt, in an environment of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import REQUIRED, missing
from trajudge.trajectories.util.local.pinned import NoEnvironment, PinnedPackage

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
    if not TRAINERS.made and "scale" not in REQUIRED:  # a gigabyte that nobody asked for
        missing("scale", "the trainers of requirements-scale.txt are not installed")
    try:
        python = TRAINERS.python()
    except NoEnvironment as error:
        missing("scale", str(error))
    (folder,) = python.parents[1].glob("lib/python*/site-packages")
    return folder
