"""A pinned environment is found in the user's cache, whichever cache a folder's tests have."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import conftest, pinned
from trajudge.util.machine import PinnedPackage


def test_the_users_environment_is_found_under_another_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pins = tmp_path / "pins.txt"
    pins.write_text("json==1\n")
    package = PinnedPackage("mine", pins, module="json", variable="TEST_OWN_PYTHON")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "users"))
    package.folder.mkdir(parents=True)
    (package.folder / "complete").touch()
    known = package.folder / "bin" / "python"
    monkeypatch.setattr(pinned, "_CACHE", str(tmp_path / "users"))
    # Both modules hold the name: one decides whether to install, the other whether to fail.
    monkeypatch.setattr(pinned, "REQUIRED", set())
    monkeypatch.setattr(conftest, "REQUIRED", set())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "tests"))
    assert not package.made
    assert pinned.pinned_python(package) == known
    monkeypatch.setattr(pinned, "_CACHE", str(tmp_path / "nobody"))
    with pytest.raises(pytest.skip.Exception, match=r"mine of pins\.txt are not installed"):
        pinned.pinned_python(package)
