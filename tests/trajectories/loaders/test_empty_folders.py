"""Formats that are folders of tasks: a folder without one is the user's mistake."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from trajudge.trajectories.loaders import online_mind2web, webvoyager
from trajudge.util.errors import UserError


@pytest.mark.parametrize("loader", [online_mind2web, webvoyager])
def test_an_empty_folder_is_the_users_mistake(loader: ModuleType, tmp_path: Path) -> None:
    assert not loader.detect(tmp_path)
    with pytest.raises(UserError, match=f"holds no {loader.KIND} trajectory"):
        list(loader.load(tmp_path))
