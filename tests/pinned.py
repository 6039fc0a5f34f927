"""Environments of pinned packages, kept where whoever runs the tests keeps theirs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import REQUIRED, missing
from trajudge.util.machine import NoEnvironment, PinnedPackage

# Some folders' tests have a cache of their own, in which nothing would ever be installed.
_CACHE = os.environ.get("XDG_CACHE_HOME")


def pinned_python(package: PinnedPackage) -> Path:
    """Return the package's interpreter; without it skip, or install it where ``scale`` is
    required."""
    with users_cache():
        if not package.made and "scale" not in REQUIRED:
            missing("scale", f"the {package.name} of {package.pins.name} are not installed")
        try:
            python = package.python()
        except NoEnvironment as error:
            missing("scale", str(error))
    return python


@contextmanager
def users_cache() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if _CACHE is None:
            patch.delenv("XDG_CACHE_HOME", raising=False)
        else:
            patch.setenv("XDG_CACHE_HOME", _CACHE)
        yield
