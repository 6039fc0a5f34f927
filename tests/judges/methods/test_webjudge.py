"""WebJudge: a note that cannot be read is left out and counted, as in its source."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.judges.http_judging import judged_over_http, stage_of
from tests.judges.runs import seen_run
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from trajudge.eval.runs.jobs import to_refresh
from trajudge.judges.methods.webjudge import WebJudge, WebJudgeOptions
from trajudge.judges.model import Judgment

READ = "Reasoning: a filter is set.\nScore: 4"


def judged(folder: Path, notes: list[str], steps: int) -> tuple[Judgment, int]:
    """The judgment on a run of so many steps, whose screenshots get these notes in order and then
    one that is read; and how many pictures the verdict was shown."""
    left, pictures = list(notes), []

    def text(incoming: Incoming) -> str:
        stage = stage_of(incoming)
        if stage == "screenshot":
            return left.pop() if left else READ
        if stage == "verdict":
            pictures.append(incoming.body.count(b'"image_url":{'))
            return "Thoughts: fine.\nStatus: success"
        return "1. A mug."

    with LlmServer(text=text) as server:
        judge = WebJudge(WebJudgeOptions())
        return judged_over_http(server, judge, seen_run(steps), folder), sum(pictures)


@pytest.mark.parametrize("note", ["## Reasoning\na filter\n## Score\n4", "Score 4", "**Score**: 4"])
def test_a_score_without_a_colon_is_read(note: str, tmp_path: Path) -> None:
    judgment, pictures = judged(tmp_path, [note], 3)
    assert (judgment.status, judgment.success, pictures) == ("ok", True, 3)
    assert judgment.scores == {}


@pytest.mark.parametrize(("unread", "steps"), [(1, 40), (2, 3)])
def test_what_cannot_be_read_is_left_out_and_counted(
    unread: int, steps: int, tmp_path: Path
) -> None:
    judgment, pictures = judged(tmp_path, ["No score is given."] * unread, steps)
    assert (judgment.status, judgment.success) == ("ok", True)
    assert judgment.scores == {"notes_unread": unread}
    assert pictures == steps - unread


def test_where_no_note_can_be_read_there_is_no_verdict(tmp_path: Path) -> None:
    notes = [f"No score is given, {number}." for number in range(3)]
    judgment, pictures = judged(tmp_path, notes, 3)
    assert (judgment.status, judgment.success, pictures) == ("unparsable", None, 0)
    asked_again = [call for call in judgment.calls if call.request in to_refresh(judgment)]
    assert [call.stage for call in asked_again] == ["screenshot"] * 3
    assert judgment.detail.startswith("screenshot of step 1: the reply holds no line  Score:")
