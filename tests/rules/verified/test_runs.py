"""``trajudge rules evaluate`` on folders, archives and studies of runs, and the package's files."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.command_words import instead
from tests.commands import rules_evaluate as main
from tests.conftest import missing
from tests.rules.against_package.peer import PACKAGE
from tests.rules.verified.tasks import answer, page, request, task
from tests.tables import mistakes
from tests.trajectories.loaders import made
from trajudge.rules.verdict import Outcome, Verdict
from trajudge.rules.verified import runs as submission
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.runs import (
    Batch,
    TaskResult,
    explored,
    judge_all,
    number_of,
    premature,
    read_study,
)
from trajudge.rules.verified.tasks import Task, checksum_of, subset_ids, task_record
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.loaders.browsergym import run_folders
from trajudge.trajectories.model import Trajectory
from trajudge.util.commands import FAILURES, OK, USAGE_ERROR
from trajudge.util.errors import UserError
from trajudge.util.machine import NoEnvironment


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
    (runs[1] / "notes").mkdir()  # no run
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
    assert 0 < result["seconds"] < 60


def test_the_results_do_not_depend_on_the_number_of_workers(runs: tuple[Path, Path]) -> None:
    found = []
    for workers in ("1", "3"):
        assert _judge(runs, "--workers", workers) == 0
        found.append({k: v for k, v in _summary(runs).items() if k != "seconds"})
    assert found[0] == found[1]


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


ENDED: dict[str, Any] = {"terminated": True, "truncated": False, "cum_reward": 1.0}


def _evaluate_study(tasks: Path, runs: Path, out: Path, *more: str) -> tuple[int, dict[str, Any]]:
    words = ["--tasks", str(tasks), "--runs", str(runs), "--out", str(out), *more]
    code = main(words)
    files = sorted((out / "tasks").glob("*.json")) if (out / "tasks").exists() else []
    return code, {file.stem: json.loads(file.read_bytes()) for file in files}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Runs of two agents that say "Bought.", one with a trace beside it, one of another task."""
    root = tmp_path / "study"
    for agent, name in (("a", "webarena.3"), ("b", "webarena.3"), ("a", "miniwob.click")):
        made.browsergym(root / f"{agent}_on_{name}_1", agent=agent, task=name, steps=2, **ENDED)
    har = {"log": {"entries": [page("/"), page("/p")]}}
    (root / "b_on_webarena.3_1" / "network.har").write_text(json.dumps(har))
    return root


def _verified(folder: Path, *network: dict[str, Any]) -> Path:
    (folder / "verified.json").write_text(
        json.dumps([task_record(task(["a"], None, *network, task_id=3))])
    )
    return folder / "verified.json"


def test_the_answer_and_the_last_address_decide_the_original_rules(
    study: Path, tmp_path: Path
) -> None:
    spec = {
        "eval_types": ["string_match", "url_match"],
        "reference_answers": {"exact_match": "Bought."},
        "reference_url": "https://b.example/1",
    }
    tasks = tmp_path / "tasks.json"
    tasks.write_text(json.dumps([{"task_id": 3, "intent": "Buy tea.", "eval": spec}]))
    code, results = _evaluate_study(tasks, study, tmp_path / "out")
    assert (code, set(results)) == (OK, {"3-a-0", "3-b-0"})
    assert {result["outcome"] for result in results.values()} == {"pass"}
    assert results["3-a-0"]["run"] == "a-0"


def test_a_run_without_a_trace_is_open_where_one_is_read(study: Path, tmp_path: Path) -> None:
    tasks = _verified(tmp_path, {"expected": {"url": "__SHOPPING__/p"}})
    response = json.dumps(answer(["a"]))
    for folder in study.iterdir():
        (folder / "agent_response.json").write_text(response)
    _, results = _evaluate_study(tasks, study, tmp_path / "out")
    assert {name: result["outcome"] for name, result in results.items()} == {
        "3-a-0": "unknown",
        "3-b-0": "pass",
    }
    code, released = _evaluate_study(tasks, study, tmp_path / "release", "--mode", "release-1.2.3")
    assert (code, released["3-a-0"]["outcome"]) == (FAILURES, "unknown")
    assert "holds no network trace" in released["3-a-0"]["reasons"][0]
    assert not (tmp_path / "out/package").exists()


def test_prose_is_no_response_and_a_run_that_crashed_is_open(study: Path, tmp_path: Path) -> None:
    crashed = study / "a_on_webarena.3_1"
    for path in crashed.glob("step_*"):
        path.unlink()
    summary = {"err_msg": "Page.goto: Timeout", "terminated": None, "truncated": None}
    (crashed / "summary_info.json").write_text(json.dumps(summary))
    _, results = _evaluate_study(_verified(tmp_path), study, tmp_path / "out")
    assert results["3-b-0"]["parse_failure"] == "no_object"
    assert results["3-a-0"]["outcome"] == "unknown"
    assert "did not end, and its agent had said nothing" in results["3-a-0"]["reasons"][0]
    (study / "b_on_webarena.3_1" / "step_1.pkl.gz").write_bytes(b"spoilt")
    _, results = _evaluate_study(_verified(tmp_path), study, tmp_path / "again")
    assert results["3-b-0"]["outcome"] == "unknown"
    assert "step_1.pkl.gz" in results["3-b-0"]["reasons"][0]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--workers", "2"], "--workers: has no meaning for a study's runs"),
        (["--task", "9"], "holds no task '9'"),
    ],
)
def test_a_mistake_in_the_call_is_one_sentence(
    study: Path, tmp_path: Path, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _evaluate_study(_verified(tmp_path), study, tmp_path / "out", *words)[0] == USAGE_ERROR
    assert sentence in capsys.readouterr().err


def test_a_study_of_other_tasks_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made.browsergym(tmp_path / "study" / "a_on_x_1", task="miniwob.click", **ENDED)
    assert (
        _evaluate_study(_verified(tmp_path), tmp_path / "study", tmp_path / "o")[0] == USAGE_ERROR
    )
    assert "none of its 1 runs is of a task of the file" in capsys.readouterr().err


def test_reading_a_study_says_how_far_it_is(study: Path) -> None:
    heard: list[tuple[int, int]] = []
    read = read_study(study, {"3"}, lambda done, of: heard.append((done, of)))
    assert heard == [(1, 2), (2, 2)]
    assert (len(read.runs), read.others) == (2, 1)


def test_another_benchmark_s_numbers_are_none_of_webarena_s() -> None:
    names = (
        "webarena.3",
        "recorded.webarena_verified.3",
        "browsergym/webarena.3",
        "webarena_verified.3",
        "visualwebarena.3",
        "3",
    )
    assert [number_of(name, {"3"}) for name in names] == ["3", "3", "3", "3", None, "3"]


@pytest.mark.real_data
@pytest.mark.parametrize("tasks", ["test.raw.json", "webarena-verified.json"])
def test_the_real_experiments_are_judged_as_far_as_they_go(
    real_data: Path, tmp_path: Path, tasks: str
) -> None:
    """One crashed before its first page, the other ran out of steps and said nothing: reward 0."""
    data = real_data / "browsergym"
    _, results = _evaluate_study(real_data / "webarena" / tasks, data, tmp_path / "out")
    outcomes = [result["outcome"] for result in results.values()]
    assert (list(results), outcomes) == (
        ["21-DemoAgentArgs-0", "21-DemoAgentArgs-1"],
        ["unknown", "fail"],
    )
    runs = [run for run in open_source(f"browsergym:{data}") if isinstance(run, Trajectory)]
    assert [run.official_reward for run in runs] == [0.0, 0.0]
    assert list(run_folders(data)) == [run.key for run in runs]


IDS = (108, 107, 44, 21)
# The package's command line, twice in one process: its import takes longer than either.
COMMANDS = """
import sys
from webarena_verified.__main__ import main
_, runs, packs = sys.argv
packing = ["create-submission-pkg", "--run-output-dir", runs, "--output", packs, "--name", "mine"]
for words in (["eval-tasks", "--output-dir", runs], packing):
    sys.argv = ["webarena-verified", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code, words
"""
# The package's own models read every file and make the summary of them anew.
READ_BACK = """
import json, sys
from pathlib import Path
from webarena_verified.types.eval import TaskEvalResult, TasksEvalResults
folder = Path(sys.argv[1])
files = sorted(folder.glob("*/eval_result.json"))
results = [TaskEvalResult.model_validate_json(file.read_text()) for file in files]
made = TasksEvalResults.create(task_results=results, data_checksum="x").summary
statuses = {result.task_id: result.status for result in results}
print(json.dumps({"summary": made.model_dump(mode="json"), "statuses": statuses}))
"""


@pytest.fixture
def demo_runs(real_data: Path, tmp_path: Path) -> Path:
    """The published run, and the same files as runs of three other tasks."""
    for number in IDS:
        own = tmp_path / "runs" / str(number)
        own.mkdir(parents=True)
        for name in ("agent_response.json", "network.har"):
            shutil.copyfile(real_data / "webarena/demo/108" / name, own / name)
    return tmp_path / "runs"


def _evaluate(demo_runs: Path, real_data: Path, *more: str) -> dict[int, dict[str, Any]]:
    tasks, out = real_data / "webarena/webarena-verified.json", demo_runs.parent / "out"
    words = ["--tasks", str(tasks), "--runs", str(demo_runs), "--out", str(out), *more]
    assert main(words) == OK
    files = (out / "package").glob("*/eval_result.json")
    results = [json.loads(file.read_bytes()) for file in files]
    return {result["task_id"]: result for result in results}


@pytest.mark.real_data
def test_a_result_has_the_published_result_s_form(demo_runs: Path, real_data: Path) -> None:
    """The demo's ``eval_result.json`` was written by a release of the package."""
    published = json.loads((real_data / "webarena/demo/108/eval_result.json").read_bytes())
    ours = _evaluate(demo_runs, real_data)[108]
    assert ours.keys() == published.keys()
    (own,), (theirs,) = ours["evaluators_results"], published["evaluators_results"]
    assert own.keys() == theirs.keys()
    same = ("task_id", "intent_template_id", "sites", "task_revision", "status", "score")
    for name in (*same, "webarena_verified_data_checksum"):
        assert ours[name] == published[name]
    for name in ("evaluator_name", "status", "score", "assertions", "error_msg"):
        assert own[name] == theirs[name]


@pytest.fixture
def package() -> str:
    """An interpreter that has the package: a given one, or an environment made for it."""
    try:
        return str(PACKAGE.python())
    except NoEnvironment as error:
        missing("package", str(error))
        raise AssertionError("unreachable") from error


def _output_of(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


@pytest.mark.real_data
@pytest.mark.slow
def test_the_package_packs_reads_and_evaluates_the_same(
    demo_runs: Path, real_data: Path, package: str
) -> None:
    packs = demo_runs.parent / "packs"
    packs.mkdir()
    _output_of(package, "-c", COMMANDS, str(demo_runs), str(packs))
    theirs = {n: json.loads((demo_runs / f"{n}/eval_result.json").read_bytes()) for n in IDS}
    for submitted in (demo_runs, packs / "mine.tar.gz"):
        found = _evaluate(submitted, real_data, "--mode", "release-1.2.3")
        assert {n: result["status"] for n, result in found.items()} == {
            n: result["status"] for n, result in theirs.items()
        }
    folder = packs / "out" / "package"
    read = json.loads(_output_of(package, "-c", READ_BACK, str(folder)))
    assert read["summary"] == json.loads((folder / "eval_results.json").read_bytes())["summary"]
    assert read["statuses"] == {str(n): result["status"] for n, result in theirs.items()}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Three tasks: one whose run passes, one that asks for what was not recorded, and one whose
    site only the run's own configuration places."""
    form = {"url": "__SHOPPING__/p", "response_content": {"$.a": 1}}
    tasks = [
        task(["a"], task_id=1),
        task(["a"], None, {"expected": form}, task_id=2),
        task(["a"], None, {"expected": {"url": "__SHOPPING__/p"}}, task_id=3),
    ]
    (tmp_path / "tasks.json").write_text(json.dumps([task_record(one) for one in tasks]))
    for one in tasks:
        base = "http://elsewhere.test" if one.task_id == 3 else "http://shop.example:7770"
        own = tmp_path / "runs" / str(one.task_id)
        own.mkdir(parents=True)
        entries = [page("/", base=base), request("/p", base=base), page("/p", base=base)]
        (own / "agent_response.json").write_text(json.dumps(answer(["a"])))
        (own / "network.har").write_text(json.dumps({"log": {"entries": entries}}))
    places = {"__SHOPPING__": {"urls": ["http://elsewhere.test"]}}
    (tmp_path / "runs/3/run_config.json").write_text(json.dumps({"environments": places}))
    return tmp_path


def _judge_small(folder: Path, runs: Path, *more: str) -> int:
    words = ["--tasks", str(folder / "tasks.json"), "--runs", str(runs)]
    return main([*words, "--out", str(folder / "out"), *more])


def _outcomes(folder: Path) -> dict[str, str]:
    files = (folder / "out/package").glob("*/eval_result.json")
    return {file.parent.name: json.loads(file.read_bytes())["status"] for file in files}


def test_unknown_is_an_error_and_a_run_says_where_its_sites_were(small: Path) -> None:
    assert _judge_small(small, small / "runs") == OK
    assert _outcomes(small) == {"1": "success", "2": "error", "3": "success"}
    unknown = json.loads((small / "out/package/2/eval_result.json").read_bytes())
    assert "recorded no body of the response" in unknown["error_msg"]
    assert unknown["score"] == 0.0
    (listed,) = (small / "out/package").glob("*.json")
    overall = json.loads(listed.read_bytes())["summary"]["overall"]
    assert overall == {
        "total": 3,
        "success_count": 2,
        "failure_count": 0,
        "error_count": 1,
        "failed_or_error_count": 1,
    }
    (small / "runs/3/run_config.json").write_text("{")
    assert _judge_small(small, small / "runs") == FAILURES


def _tar(path: Path, files: dict[str, bytes], *links: tuple[str, str]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for name, target in links:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return path


def _files(folder: Path) -> dict[str, bytes]:
    files = (path for path in (folder / "runs").rglob("*") if path.is_file())
    return {str(path.relative_to(folder / "runs")): path.read_bytes() for path in files}


@pytest.mark.parametrize("inside", ["", "./", "submission-1/"])
def test_an_archive_is_read_as_its_folder_and_nothing_else_of_it(
    small: Path, inside: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    files = {f"{inside}{name}": data for name, data in _files(small).items()}
    hostile = {"../escaped/1.txt": b"x", "/tmp/escaped": b"x", f"{inside}summary.json": b"{}"}
    link = (f"{inside}4/agent_response.json", str(small / "tasks.json"))
    packed = _tar(small / "runs.tar.gz", {**files, **hostile}, link)
    assert _judge_small(small, packed) == OK
    assert _outcomes(small) == {"1": "success", "2": "error", "3": "success"}
    assert not list(tmp_path_factory.getbasetemp().rglob("escaped*"))


@pytest.mark.parametrize("kind", ["cut", "text", "twice", "bomb"])
def test_a_bad_archive_is_one_sentence(
    small: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = _files(small)
    if kind == "twice":
        files |= {f"again/{name}": data for name, data in files.items()}
    packed = _tar(small / "runs.tar.gz", files)
    if kind == "cut":
        packed.write_bytes(packed.read_bytes()[:300])
    if kind == "text":
        packed.write_text("runs")
    if kind == "bomb":
        monkeypatch.setattr(submission, "MAX_UNPACKED", 100)
    assert _judge_small(small, packed) == USAGE_ERROR
    said = {"twice": "twice: keep one run", "bomb": "unpacks to more than"}
    shown = capsys.readouterr().err
    assert said.get(kind, "no whole .tar.gz") in shown
    assert shown.count("\n") == 1


@pytest.mark.real_data
def test_a_subset_is_found_by_its_name_and_held_to_its_checksum(
    real_data: Path, tmp_path: Path
) -> None:
    file = real_data / "webarena/webarena-verified-hard.json"
    published = json.loads(file.read_bytes())
    assert checksum_of(published["task_ids"]) == published["checksum"]
    tasks = tmp_path / "tasks.json"
    (tmp_path / "subsets").mkdir()
    shutil.copy(file, tmp_path / "subsets/hard.json")
    assert len(subset_ids("hard", tasks)) == 258
    published["task_ids"].append(0)
    (tmp_path / "changed.json").write_text(json.dumps(published))
    with pytest.raises(UserError, match=r"its checksum is not that of its 259 task_ids"):
        subset_ids("changed", tasks)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"task_ids": [1, 2, 1]}, "names task 1 twice"),
        ({"task_ids": []}, "names no task"),
        ({"tasks": [1]}, "task_ids"),
        (None, "neither .* nor .*subsets"),
    ],
)
def test_a_subset_that_is_none_is_one_sentence(
    tmp_path: Path, content: object, sentence: str
) -> None:
    if content is not None:
        (tmp_path / "some.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match=sentence):
        subset_ids("some", tmp_path / "tasks.json")


def test_only_the_tasks_of_a_subset_are_judged(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subset = {"description": None, "task_ids": [3, 1], "checksum": checksum_of([1, 3])}
    (small / "some.json").write_text(json.dumps(subset))
    assert _judge_small(small, small / "runs", "--subset", "some") == OK
    assert set(_outcomes(small)) == {"1", "3"}
    assert _judge_small(small, small / "runs", "--subset", str(small / "none.json")) == USAGE_ERROR
    assert "none.json" in capsys.readouterr().err
