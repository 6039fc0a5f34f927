"""Faults of the process: found, and placed at a step; against a published table and by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.eval.cases import failed, key, label, said
from tests.judges.methods.universal_verifier.scripts import reply_to, stage_of_prompt
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from tests.screens import on_one_line, one_screen
from trajudge import load
from trajudge.annotations import Label
from trajudge.annotations.store import write
from trajudge.eval.cli import main
from trajudge.eval.process import about_process, fault_scores, question_of
from trajudge.eval.scoring.compute import score
from trajudge.eval.store.run_folder import read_judgments
from trajudge.judges.methods.universal_verifier.model import acting_steps
from trajudge.judges.model import Status
from trajudge.trajectories.model import TrajectoryKey


def truth(task: int, step: int | None, *, success: bool | None = True) -> Label:
    return label(task, success, process=step is None, failure_step=step, failure_type="kind")


def test_faults_are_counted_and_placed_as_by_hand() -> None:
    labels: dict[TrajectoryKey, Label] = {
        key(1): truth(1, 2),
        key(2): truth(2, 2),
        key(3): truth(3, 2, success=False),
        key(4): truth(4, 2, success=False),
        key(5): truth(5, 0),
        key(6): truth(6, None),
        key(7): truth(7, None),
    }
    judgments = [
        said(1, None, process=False, failure_step=2, failure_type="kind"),
        said(2, None, process=False, failure_step=3, failure_type="other"),
        said(3, None, process=False),  # found without a step
        said(4, None, process=True),
        failed(5, Status.REFUSED),
        said(6, None, process=False, failure_step=2),
        said(7, None, process=True),
    ]
    [found] = fault_scores(judgments, labels)
    assert (found.n, found.faulty, found.silent, found.loud, found.named) == (7, 5, 3, 2, 2)
    assert found.precision == pytest.approx(3 / 4)
    assert found.recall == pytest.approx(3 / 5)
    assert found.f1 == pytest.approx(2 * 3 / (2 * 3 + 1 + 2))
    assert found.false_alarms == pytest.approx(1 / 2)
    assert found.silent_recall == pytest.approx(2 / 3)
    assert found.loud_recall == found.step_exact == pytest.approx(1 / 2)
    assert found.step_within_one == pytest.approx(1)
    assert found.step_found == pytest.approx(1 / 5)
    assert found.type_f1 == pytest.approx(2 * 1 / (5 + 1))
    for name, (low, high) in found.intervals.items():
        assert low <= getattr(found, name) <= high


def test_a_report_about_the_process_says_nothing_of_success() -> None:
    said_both = [said(n, n > 3, judge=judge, process=n > 2) for n in range(8) for judge in "ab"]
    labels = {key(n): truth(n, n if n < 3 else None) for n in range(8)}
    report = score(said_both, labels, rewards={})
    assert {each.label for each in report.scores} == {"success", "process"}
    found = about_process(report)
    assert {each.label for each in found.scores} == {"process"}
    assert {each.label for each in found.comparison.rankings} == {"process"}
    assert found.success_rates == ()


def test_a_judge_that_was_not_asked_has_no_row() -> None:
    assert fault_scores([said(1, True)], {key(1): truth(1, 2)}) == []


@pytest.mark.slow
@pytest.mark.real_data
def test_the_published_table_comes_out_to_three_decimals(
    real_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = real_data / "trajectory_judge"
    assert main(["data", "verdicts", f"toolcalls:{folder}", "--out", str(tmp_path)]) == 0
    runs = [str(run) for run in sorted(tmp_path.iterdir())]
    capsys.readouterr()
    assert main(["score", *runs, "--question", "process"]) == 0
    screen = capsys.readouterr().out
    one_screen(screen, 100)
    no_better = "No better than baselines that never see the page (precision at equal recall)"
    assert f"{no_better}: outcome:" in on_one_line(screen)
    assert main(["score", *runs, "--baselines", "off", "--json"]) == 0
    faults = {f["judge"]: f for f in json.loads(capsys.readouterr().out)["faults"]}
    published = _published((folder / "tables" / "summary.md").read_text())
    assert len(published) == 5
    for judge, cells in published.items():
        found = faults[f"{judge}@published"]
        assert (found["n"], found["faulty"], found["silent"], found["loud"]) == (400, 300, 175, 125)
        for name, cell in cells.items():
            shown = "n/a" if found[name] is None else f"{found[name]:.3f}"
            assert shown == cell, (judge, name)
        assert found["step_within_one"] == _within_one(folder, judge)
        for name, (low, high) in found["intervals"].items():
            assert low <= found[name] <= high


def _published(text: str) -> dict[str, dict[str, str]]:
    columns = ("f1", "silent_recall", "loud_recall", "false_alarms", "step_exact", "type_f1")
    rows = re.findall(r"^\| `(.+?)` \|(.+)\|$", text.split("Strata", maxsplit=1)[0], re.MULTILINE)
    return {
        judge: dict(zip(columns, (cell.strip() for cell in cells.split("|")), strict=False))
        for judge, cells in rows
    }


def _within_one(folder: Path, judge: str) -> Any:
    """The share of the named steps of real faults that are one off at most, from the files."""
    runs = map(json.loads, (folder / "trajectories.jsonl").open())
    labels = {run["trajectory_id"]: run["label"] for run in runs}
    near = [
        abs(verdict["failure_step"] - labels[verdict["trajectory_id"]]["failure_step"]) <= 1
        for verdict in map(json.loads, (folder / "verdicts.jsonl").open())
        if verdict["judge_id"] == judge
        and verdict["faulty"]
        and labels[verdict["trajectory_id"]]["faulty"]
        and verdict["failure_step"] is not None
    ]
    return pytest.approx(sum(near) / len(near)) if near else None


# The verifier's replies go by a run's number of actions: one with more than 15 gets few points,
# and a failure point at its third action.
LONG = 15
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


def verifier_reply(incoming: Incoming) -> str:
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


@pytest.mark.usefixtures("own_folder")
def test_faults_of_the_judge_reach_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    with LlmServer(text=verifier_reply, record=0) as server:
        words = ["judge", "--data", "sample", "--limit", "5", "--judge", "universal-verifier"]
        words += ["--judge-option", "failures=true", "--model", "gpt-4o"]
        assert main([*words, "--base-url", f"{server.url}/v1", "--out", "run"]) == 0
    judgments = {judgment.key: judgment for judgment in read_judgments(Path("run"))}
    runs = [run for run in load("sample") if run.key in judgments]
    assert len(runs) == 5
    faulty = [len(acting_steps(run)) > LONG for run in runs]
    assert 0 < sum(faulty) < len(runs)
    labels: list[Label] = []
    for run, bad in zip(runs, faulty, strict=True):
        judgment = judgments[run.key]
        third = acting_steps(run)[2].index
        assert judgment.process is not bad
        assert judgment.failure_step == (third if bad else None)
        assert judgment.failure_type == (f"1.4 {POINT['error_type']}" if bad else None)
        assert judgment.scores["process_score"] == pytest.approx(1 / 3 if bad else 1)
        # The expert sees the first fault where the judge does, the others one step later.
        later = int(any(label.process is False for label in labels))
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
    assert (found["n"], found["faulty"], found["named"]) == (5, sum(faulty), sum(faulty))
    assert (found["recall"], found["precision"], found["false_alarms"]) == (1, 1, 0)
    assert found["step_exact"] == pytest.approx(1 / sum(faulty))
    assert found["step_within_one"] == 1
    assert main(asked) == 0
    screen = on_one_line(capsys.readouterr().out)
    assert "Faults" in screen
    assert re.search(r"universal-verifier\S* .*100\.0", screen)
    assert main([*asked, "--full"]) == 0
    assert "Faults [95 %]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("success", "process", "question"),
    [
        (None, True, "process"),
        (False, True, "success"),
        (True, None, "success"),
        (None, None, "success"),
    ],
)
def test_the_process_is_asked_where_nothing_is_said_of_success(
    success: bool | None, process: bool | None, question: str
) -> None:
    assert question_of([said(0, success, process=process)]) == question
