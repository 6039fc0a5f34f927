"""Which trajectories a report shows, and in which order."""

from __future__ import annotations

from pathlib import Path

from tests.app.made_runs import Task, write_run
from tests.eval.cases import key
from trajudge.app.report_content import Content, report_content
from trajudge.app.settings import ReportConfig
from trajudge.eval.settings import ScoreConfig
from trajudge.eval.store.run_folder import JUDGMENTS, judgment_line, read_judgments, write_rewards

WRONGLY_ACCEPTED = Task("accepted", False, True)
TASKS = [
    Task("rejected", True, False),
    WRONGLY_ACCEPTED,
    Task("right", True, True),
    Task("unsure", None, True),
    Task("silent", False, None),
]


def content(*runs: Path, show: int = 10) -> Content:
    score = ScoreConfig(runs=runs, baselines="off")
    return report_content(ReportConfig(score=score, show=show))


def names(shown: Content) -> list[str]:
    return [one.case.key.task_id.removeprefix("webarena.") for one in shown.cases]


def test_wrongly_accepted_ones_come_first_and_right_ones_not_at_all(tmp_path: Path) -> None:
    shown = content(write_run(tmp_path, TASKS))
    assert names(shown) == ["accepted", "rejected"]
    assert shown.wrong == 2
    assert [one.case.kinds for one in shown.cases] == ["false positive", "false negative"]


def test_what_more_judges_accept_comes_before(tmp_path: Path) -> None:
    first = write_run(tmp_path / "a", [*TASKS, Task("both", False, True)], judge="first")
    second = write_run(tmp_path / "b", [Task("both", False, True)], judge="second")
    shown = content(first, second)
    assert names(shown)[0] == "both"
    assert [v.outcome for v in shown.cases[0].case.verdicts] == ["false positive"] * 2


def test_the_rest_is_counted(tmp_path: Path) -> None:
    shown = content(write_run(tmp_path, TASKS), show=1)
    assert (names(shown), shown.wrong) == (["accepted"], 2)


def test_a_trajectory_that_is_gone_is_said(tmp_path: Path) -> None:
    run = write_run(tmp_path, TASKS)
    (tmp_path / "data" / "trajectories.jsonl").unlink()
    shown = content(run)
    assert [one.evidence for one in shown.cases] == [None, None]
    assert any("2 of 2 cases are shown without goal" in line for line in shown.warnings())


def test_of_as_many_judges_the_rule_and_then_the_score_decide(tmp_path: Path) -> None:
    tasks = [Task(name, False, True) for name in ("low", "ruled", "high")]
    run = write_run(tmp_path, tasks)
    scores = {"low": 0.6, "ruled": 0.5, "high": 0.9}
    lines = [
        judgment_line(one.model_copy(update={"score": scores[one.key.task_id[9:]]}))
        for one in read_judgments(run)
    ]
    (run / JUDGMENTS).write_bytes(b"".join(lines))
    write_rewards(run, {key(task.name): float(task.name == "ruled") for task in tasks})
    assert names(content(run)) == ["ruled", "high", "low"]
