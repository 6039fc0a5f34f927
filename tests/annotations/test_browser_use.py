"""The verdicts that browser-use's judge left in histories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.trajectories.loaders import made_logs
from trajudge.annotations.published import open_verdicts
from trajudge.annotations.sources.browser_use import read_verdicts
from trajudge.util.errors import UserError


def judged(folder: Path, judgement: Any) -> None:
    file = made_logs.browser_use(folder) / "AgentHistory.json"
    content = json.loads(file.read_text())
    content["history"][-1]["result"][-1]["judgement"] = judgement
    file.write_text(json.dumps(content))


def test_histories_with_and_without_a_verdict(tmp_path: Path) -> None:
    judged(tmp_path / "a", {"verdict": True, "reasoning": "Seen.", "impossible_task": False})
    judged(tmp_path / "b", {"verdict": None, "reasoning": "?"})
    judged(tmp_path / "c", None)
    made_logs.browser_use(tmp_path / "d", "0.5.8")
    made_logs.browser_use(tmp_path / "e")
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "AgentHistory.json").write_text("{")
    verdicts = [*read_verdicts(tmp_path)]
    assert [(v.key.task_id, v.judge_id, v.status, v.success, v.reasoning) for v in verdicts] == [
        ("a", "browser-use@published", "ok", True, "Seen."),
        ("b", "browser-use@published", "unparsable", None, "?"),
        ("e", "browser-use@published", "ok", False, "JUDGED\nJUDGED"),
        ("f", "browser-use@published", "skipped", None, ""),
    ]
    assert verdicts[0].record == {"impossible_task": False, "reached_captcha": None}


def test_histories_of_earlier_releases_have_none(tmp_path: Path) -> None:
    made_logs.browser_use(tmp_path / "a", "0.1.0")
    with pytest.raises(UserError, match="holds no published verdict"):
        open_verdicts(f"browser-use:{tmp_path}")


@pytest.mark.real_data
def test_the_sample(real_data: Path) -> None:
    folder = real_data / "formats" / "browser_use_0_13"
    (verdict,) = open_verdicts(str(folder))
    content = json.loads((folder / "run1" / "AgentHistory.json").read_text())
    told = content["history"][-1]["result"][-1]["judgement"]
    assert (verdict.success, verdict.status) == (told["verdict"], "ok") == (False, "ok")
    assert verdict.reasoning == f"{told['reasoning']}\n{told['failure_reason']}"
