"""The process from the judge to the table: the Universal Verifier's own verdict, its failure
points, ``judgments.jsonl`` and the table *Faults*."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.judges.methods.universal_verifier.scripts import reply_to, stage_of_prompt
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from tests.screens import on_one_line
from trajudge import load
from trajudge.annotations.model import Label
from trajudge.annotations.store import write
from trajudge.eval.cli import main
from trajudge.eval.store.run_folder import read_judgments
from trajudge.judges.methods.universal_verifier.model import acting_steps

pytestmark = pytest.mark.usefixtures("own_folder")

# Runs of the sample by their number of actions; those with more than ten get few points and a
# failure point at their third action.
LONG = 10
POINT = {
    "step_numbers": "3",
    "error_code": "1.4",
    "error_category": "Selection",
    "error_type": "Wrong values or constraint violation",
    "what_happened": "w",
    "agent_reasoning": "",
    "evidence": "e",
    "impact": "i",
}


def reply(incoming: Incoming) -> str:
    """What the assumed replies say, but for the points and failures of long runs."""
    prompt = incoming.prompt
    answer = reply_to(prompt)
    assert answer is not None
    stage = stage_of_prompt(prompt)
    actions = max([0, *map(int, re.findall(r"^Action (\d+):", prompt, re.MULTILINE))])
    if stage == "rescore" and actions > LONG:
        items = json.loads(answer)["items"]
        return json.dumps({"items": [{**item, "post_image_earned_points": 1} for item in items]})
    if stage == "failures" and actions > LONG:
        return json.dumps({"reasoning": "r", "has_failure": True, "failure_points": [POINT]})
    return answer


def test_faults_of_the_judge_reach_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    with LlmServer(text=reply, record=0) as server:
        words = ["judge", "--data", "sample", "--limit", "3", "--judge", "universal-verifier"]
        words += ["--judge-option", "failures=true", "--model", "gpt-4o"]
        assert main([*words, "--base-url", f"{server.url}/v1", "--out", "run"]) == 0
    judgments = {judgment.key: judgment for judgment in read_judgments(Path("run"))}
    runs = [run for run in load("sample") if run.key in judgments]
    assert len(runs) == 3
    faulty = [len(acting_steps(run)) > LONG for run in runs]
    assert 0 < sum(faulty) < len(runs)
    labels = []
    for run, bad in zip(runs, faulty, strict=True):
        judgment = judgments[run.key]
        third = acting_steps(run)[2].index
        assert judgment.process is not bad
        assert judgment.failure_step == (third if bad else None)
        assert judgment.failure_type == (f"1.4 {POINT['error_type']}" if bad else None)
        assert judgment.scores["process_score"] == pytest.approx(1 / 3 if bad else 1)
        # The expert sees the first fault where the judge does, the second one step later.
        later = sum(label.process is False for label in labels)
        labels.append(
            Label(
                key=run.key,
                raw_task_id=run.raw_task_id,
                annotator="A",
                success=True,
                process=not bad,
                failure_step=third + later if bad else None,
            )
        )
    write(Path("labels.jsonl"), labels)
    capsys.readouterr()
    asked = ["score", "run", "--annotations", "labels.jsonl", "--question", "process"]
    assert main([*asked, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["faults"]
    assert (found["n"], found["faulty"], found["named"]) == (3, sum(faulty), sum(faulty))
    assert (found["recall"], found["precision"], found["false_alarms"]) == (1, 1, 0)
    assert found["step_exact"] == pytest.approx(1 / sum(faulty))
    assert found["step_within_one"] == 1
    assert main(asked) == 0
    screen = on_one_line(capsys.readouterr().out)
    assert "Faults" in screen
    assert re.search(r"universal-verifier\S* .*100\.0", screen)
    assert main([*asked, "--full"]) == 0
    assert "Faults [95 %]" in capsys.readouterr().out
