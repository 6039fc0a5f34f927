"""A run that is read once a module."""

from __future__ import annotations

import pytest

from tests.eval.data.view_runs import write
from trajudge.eval.store.filters import JudgmentView, read_view


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> JudgmentView:
    return read_view(write(tmp_path_factory.mktemp("view") / "run"))
