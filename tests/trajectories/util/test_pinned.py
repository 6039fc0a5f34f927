"""Environments that are keyed by their pin file."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from trajudge.util import machine as pinned
from trajudge.util.machine import NoEnvironment, PinnedPackage


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PinnedPackage:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    pins = tmp_path / "pins.txt"
    pins.write_text("one==1\n")
    return PinnedPackage("mine", pins, module="json", variable="TEST_OWN_PYTHON")


def test_a_change_of_the_pin_file_makes_another_environment(package: PinnedPackage) -> None:
    before = package.folder
    assert not package.made
    before.mkdir(parents=True)
    (before / "complete").touch()
    assert package.made
    assert package.python() == before / "bin" / "python"  # nothing is made twice
    package.pins.write_text("one==2\n")
    assert package.folder != before
    assert not package.made


def test_a_named_interpreter_is_tried(
    package: PinnedPackage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_OWN_PYTHON", sys.executable)
    assert package.python() == Path(sys.executable)
    with pytest.raises(NoEnvironment, match="cannot import no_such_module"):
        package._replace(module="no_such_module").python()
    with pytest.raises(NoEnvironment, match="/nowhere cannot import json"):
        package.python("/nowhere")


@pytest.mark.slow
@pytest.mark.parametrize("pip", ["pip", "no_such_module"])
def test_what_cannot_be_installed_is_said(
    package: PinnedPackage, pip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By our own pip, and by a new one where there is none beside us."""
    monkeypatch.setattr(pinned, "find_spec", lambda name: find_spec(pip))
    package.pins.write_text("./no-such-package.whl\n")
    with pytest.raises(NoEnvironment, match=r"pins.txt could not be installed .*TEST_OWN_PYTHON"):
        package.python()
    assert not package.made
