"""The package's own environment."""

from __future__ import annotations

from pathlib import Path

from trajudge.util.machine import PinnedPackage

PYTHON = "TRAJUDGE_PACKAGE_PYTHON"
"""Environment variable: the interpreter of an environment in which the package stands already."""

PACKAGE = PinnedPackage(
    "webarena-verified",
    Path(__file__).with_name("package.txt"),
    module="webarena_verified",
    variable=PYTHON,
)
