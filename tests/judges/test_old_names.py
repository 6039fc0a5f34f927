"""A user's judge that was written for the first version's import names."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trajudge.judges import model
from trajudge.judges.plugins import module_of

OLD = """
import judges.model
from judges.model import Verdict
from trajectories.model import Trajectory

needs_model = False


async def judge(trajectory: Trajectory, ask: object) -> Verdict:
    return judges.model.Verdict(success=True)
"""


def test_an_old_name_gives_our_own_module_and_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "my_judge.py"
    file.write_text(OLD)
    module = module_of(str(file))
    assert module is not None
    assert module.Verdict is model.Verdict
    said = capsys.readouterr().err
    assert said.startswith(f"note: {file}: imports ")
    assert "write trajudge." in said
    assert "judges.model" not in sys.modules
    assert model.__spec__ is not None
    assert model.__spec__.name == "trajudge.judges.model"


def test_a_package_of_the_users_own_goes_before_the_old_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "annotations"
    own.mkdir()
    (own / "__init__.py").write_text("WHOSE = 'the user'\n")
    (tmp_path / "theirs.py").write_text(
        "from annotations import WHOSE\nasync def judge(trajectory, ask): ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "annotations", raising=False)
    module = module_of(str(tmp_path / "theirs.py"))
    assert module is not None
    assert module.WHOSE == "the user"
    assert capsys.readouterr().err == ""
    sys.modules.pop("annotations", None)
