"""Many runs: in any number of workers the same results, and no run holds up the others."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.command_words import instead
from tests.commands import rules_evaluate as main
from tests.rules.verified.tasks import answer, page, task
from tests.tables import mistakes
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome, Verdict
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.runs import Batch, TaskResult, explored, judge_all, premature
from trajudge.rules.verified.tasks import Task, task_record
from trajudge.util.commands import FAILURES, OK


def _run(folder: Path, task_id: object, said: Any, har: str | None = None) -> None:
    own = folder / str(task_id)
    own.mkdir(parents=True)
    text = said if isinstance(said, str) else json.dumps(said)
    (own / "agent_response.json").write_text(text)
    made = json.dumps({"log": {"entries": [page("/"), page("/a")]}}) if har is None else har
    (own / "network.har").write_text(made)


def _tasks(folder: Path, count: int, **fields: Any) -> Path:
    path = folder / "tasks.json"
    made = [
        task_record(task(["a"], task_id=n, intent_template_id=n % 3, **fields))
        for n in range(count)
    ]
    for record in made:
        record["eval"][0].pop("probe", None)
    path.write_text(json.dumps(made))
    return path


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """Six tasks, runs of five of them: three pass, one answers wrongly, one not at all."""
    folder = tmp_path / "runs"
    for number in range(5):
        said: Any = answer(["a"]) if number < 3 else answer(["b"]) if number == 3 else "Shall I?"
        _run(folder, number, said)
    return _tasks(tmp_path, 6), folder


def _judge(runs: tuple[Path, Path], *more: str) -> int:
    mode = more[more.index("--mode") + 1] if "--mode" in more else "sound"
    out = ["--out", str(runs[1].parent / f"results-{mode}")]
    return main(instead(["--tasks", str(runs[0]), "--runs", str(runs[1]), *out], more))


def _summary(runs: tuple[Path, Path]) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads(
        (runs[1].parent / "results-sound/summary.json").read_text()
    )
    return summary


def test_a_batch_writes_a_result_a_task_and_a_summary(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _judge(runs) == 0
    shown = capsys.readouterr().out
    assert "5 runs" in shown
    assert "1 tasks have no run" in shown
    summary = _summary(runs)
    assert summary["overall"]["passed"] == 3
    assert summary["overall"]["success"] == 0.6
    assert summary["parse_failures"] == {"no_object": 1}
    assert summary["parse_failure_rate"] == 0.2
    assert summary["failure_modes"] == {
        "answer.retrieved_data": 1,
        "parse_failure.no_object": 1,
    }
    assert summary["missing"] == 1
    result = json.loads((runs[1].parent / "results-sound/tasks/3.json").read_text())
    failed = [it for it in result["assertions"] if it["outcome"] == "fail"]
    assert [(it["expected"], it["found"]) for it in failed] == [(["a"], ["b"])]
    assert (failed[0]["expected_normalised"], failed[0]["found_normalised"]) == (["a"], ["b"])


def test_the_results_do_not_depend_on_the_number_of_workers(runs: tuple[Path, Path]) -> None:
    found = []
    for workers in ("1", "3"):
        assert _judge(runs, "--workers", workers) == 0
        found.append({k: v for k, v in _summary(runs).items() if k != "seconds"})
    assert found[0] == found[1]


@pytest.mark.parametrize("mode", list(Mode))
def test_both_modes_run(runs: tuple[Path, Path], mode: Mode) -> None:
    assert _judge(runs, "--mode", mode) == 0


@pytest.mark.parametrize(
    ("har", "said"),
    [
        ('{"log": {"entries": [{"request": {"me', "cut off after 37 bytes"),
        ("not json", "no HAR file"),
    ],
)
def test_a_bad_trace_is_unknown_with_one_sentence_and_the_batch_goes_on(
    runs: tuple[Path, Path], har: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (runs[1] / "1/network.har").write_text(har)
    assert _judge(runs) == FAILURES
    shown = " ".join(capsys.readouterr().out.split())
    assert said in shown
    assert "runs that could not be judged: 1" in shown
    assert (_summary(runs)["overall"]["passed"], _summary(runs)["overall"]["unknown"]) == (2, 1)
    assert _summary(runs)["not_judged"] == ["1"]


@pytest.mark.parametrize("name", ["network.har", "agent_response.json"])
def test_a_pipe_or_a_link_out_is_unknown_and_neither_waited_for_nor_followed(
    name: str, runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    pipe, link = runs[1] / "1" / name, runs[1] / "2" / name
    pipe.unlink()
    os.mkfifo(pipe)
    link.rename(runs[1].parent / "outside")
    link.symlink_to(runs[1].parent / "outside")
    assert _judge(runs) == FAILURES
    shown = " ".join(capsys.readouterr().out.split())
    assert "is not a file" in shown
    assert "leads out of" in shown
    assert (_summary(runs)["overall"]["passed"], _summary(runs)["overall"]["unknown"]) == (1, 2)


def test_a_batch_of_one_run_that_cannot_be_read_does_not_look_done(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    (runs[1] / "1/network.har").write_text("not json")
    assert _judge(runs, "--task", "1") == FAILURES
    shown = capsys.readouterr().out
    assert "1 unknown" in shown and "task 1" in shown, shown
    assert _judge(runs, "--task", "0") == OK


def test_an_address_that_was_inferred_is_noted(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _judge(runs) == OK
    assert "note, in 5 runs: shopping is taken to be http://shop.example:7770" in (
        " ".join(capsys.readouterr().out.split())
    )
    assert list(_summary(runs)["notes"].values()) == [5]
    assert _judge(runs, "--site", "shopping=http://shop.example:7770") == OK
    assert _summary(runs)["notes"] == {}


def test_what_was_not_recorded_is_a_verdict_and_no_failure(runs: tuple[Path, Path]) -> None:
    (runs[1] / "1/network.har").unlink()
    assert _judge(runs, "--task", "1") == OK


def test_the_reasons_of_the_runs_that_did_not_pass_are_shown(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _judge(runs) == OK
    shown = capsys.readouterr().out
    assert "task 3: fail: answer.retrieved_data[0]: a different string" in shown
    assert "task 4: fail: parse_failure.no_object: the answer holds no JSON object" in shown
    assert "task 0" not in shown


def test_an_answer_of_50_mb_is_one_parse_failure(runs: tuple[Path, Path]) -> None:
    with (runs[1] / "1/agent_response.json").open("wb") as file:
        file.truncate(50_000_000)
    assert _judge(runs) == 0
    assert _summary(runs)["parse_failures"] == {"no_object": 1, "too_large": 1}
    result = json.loads((runs[1].parent / "results-sound/tasks/1.json").read_text())
    said = "the answer has 50,000,000 bytes, more than the 4,194,304 read"
    assert result["reasons"] == [f"parse_failure.too_large: {said}"]
    assert _judge(runs, "--mode", "release-1.2.3") == 0
    result = json.loads((runs[1].parent / "results-release-1.2.3/tasks/1.json").read_text())
    assert "an answer of 50,000,000 bytes" in result["reasons"][0]


@mistakes(
    """
    --task 77 => holds no task '77'
    --task 5 => holds no run of task 5
    --site gitlab => write SITE=URL
    --site gitlub=http://a.test => no task has such a site: use one of gitlab, homepage, map, reddit
    --workers 0 => at least 1
    --sites /nonexistent => No such file
    --tasks /nonexistent => No such file
    --runs /nonexistent => no such folder
    """
)
def test_a_users_mistake_is_one_sentence_and_2(
    runs: tuple[Path, Path], words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _judge(runs, *words) == 2
    shown = capsys.readouterr().err
    assert sentence in shown
    assert shown.startswith("error: ")
    assert shown.count("\n") == 1


def test_a_run_of_no_known_task_is_a_mistake(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    _run(runs[1], 99, "x")
    assert _judge(runs) == 2
    assert "know no task_id '99'" in capsys.readouterr().err


@dataclass(frozen=True)
class _Hostile(VerifiedEvaluator):
    """Never comes back from task 1, dies over task 2, and waits over task 3."""

    def evaluate(self, task: Task, *args: Any, **kwargs: Any) -> Verdict:
        while task.task_id == 1:
            time.monotonic()
        if task.task_id == 2:
            os._exit(3)
        if task.task_id == 3:
            time.sleep(1.2)
        return super().evaluate(task, *args, **kwargs)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_hostile_run_costs_its_time_limit_and_never_the_batch(
    tmp_path: Path, workers: int
) -> None:
    tasks = {str(n): task(["a"], task_id=n) for n in range(5)}
    for number in tasks:
        _run(tmp_path, number, answer(["a"]))
    batch = Batch(
        tasks=tasks,
        folder=tmp_path,
        ids=list(tasks),
        evaluator=_Hostile(),
        steps={},
        seconds=1.0,
    )
    results = judge_all(batch, workers, lambda done, of: None)
    assert [result.outcome.value for result in results] == [
        "pass",
        "unknown",
        "unknown",
        "pass",
        "pass",
    ]
    assert "more than the 1 s" in results[1].reasons[0]
    assert "died" in results[2].reasons[0]


def _result(**fields: Any) -> TaskResult:
    made = {"task_id": 1, "template": "t", "sites": ("map",), "outcome": Outcome.PASS}
    return TaskResult(**{**made, **fields})


def test_the_exploration_ratio_is_steps_over_the_sites_median_of_successes() -> None:
    done = [_result(steps=steps) for steps in (2.0, 4.0, 12.0)]
    failed = _result(steps=100.0, outcome=Outcome.FAIL)
    claims = [_result(steps=steps, achievable=False) for steps in (1.0, 2.0)]
    found = explored([*done, failed, *claims, _result(steps=1.0, achievable=False, sites=("x",))])
    assert [result.exploration for result in found] == [None] * 4 + [0.25, 0.5, None]
    assert [premature(result) for result in found[4:]] == [True, False, False]
