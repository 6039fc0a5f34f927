"""Answers of browser-use without runs, and the publisher's verdicts on them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.trajectories.loaders.released.answer_lines import answer_line
from trajudge.annotations.published import open_verdicts
from trajudge.trajectories.loaders import detect_kind, open_source
from trajudge.trajectories.model import Trajectory, Unreadable


def test_answers_are_runs_without_steps_and_their_verdicts_stay_apart(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text(
        answer_line("a")
        + "{\n"
        + answer_line("b", 0, None)
        + answer_line("a", 50)
        + answer_line("c", None)
    )
    assert detect_kind(tmp_path) == "browser-use-answers"
    first, bad, second, third, last = open_source(str(file))
    assert isinstance(first, Trajectory)
    assert (str(first.key), first.answer, first.steps) == (
        "online-mind2web/browser-use/a",
        "**Done** ✅",
        (),
    )
    assert "It says so" not in first.model_dump_json()
    assert isinstance(bad, Unreadable)
    assert isinstance(second, Trajectory)
    assert second.answer is None
    assert third.key is not None
    assert third.key.attempt == 1
    assert last.key is not None
    verdicts = open_verdicts(str(file))
    assert [(v.status, v.success) for v in verdicts] == [
        ("ok", True),
        ("ok", False),
        ("unparsable", None),
        ("unparsable", None),
    ]
    assert {v.reasoning for v in verdicts[:2]} == {"It says so."}
    assert verdicts[2].detail == "the score is 50.0, where 0 or 100 is a verdict"


@pytest.mark.real_data
def test_all_answers_of_the_published_file(real_data: Path) -> None:
    folder = real_data / "browser_use_om2w"
    rows = [json.loads(row) for row in (folder / "results.jsonl").open()]
    runs = list(open_source(str(folder)))
    verdicts = open_verdicts(str(folder))
    assert len(rows) == len(runs) == len(verdicts) == 300
    assert sum(verdict.success is True for verdict in verdicts) == 291
    for row, run, verdict in zip(rows, runs, verdicts, strict=True):
        assert isinstance(run, Trajectory)
        assert run.key == verdict.key
        assert (run.key.task_id, run.goal) == (row["task_id"], row["task"])
        assert (run.answer or "") == (row["final_result_response"] or "")
        assert verdict.success is (row["judge"]["score"] == 100)
        assert verdict.reasoning == row["judge"]["reasoning"]
        assert verdict.reasoning not in run.model_dump_json()
