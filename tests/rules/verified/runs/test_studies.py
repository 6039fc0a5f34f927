"""``trajudge rules evaluate`` on BrowserGym's experiments: what they lack is unknown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands import rules_evaluate as main
from tests.rules.verified.tasks import answer, page, task
from tests.trajectories.loaders import made
from trajudge.rules.verified.runs import number_of
from trajudge.rules.verified.tasks import task_record
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.loaders.browsergym import run_folders
from trajudge.trajectories.model import Trajectory
from trajudge.util.commands import FAILURES, OK, USAGE_ERROR

ENDED: dict[str, Any] = {"terminated": True, "truncated": False, "cum_reward": 1.0}


def _evaluate(tasks: Path, runs: Path, out: Path, *more: str) -> tuple[int, dict[str, Any]]:
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
    code, results = _evaluate(tasks, study, tmp_path / "out")
    assert (code, set(results)) == (OK, {"3-a-0", "3-b-0"})
    assert {result["outcome"] for result in results.values()} == {"pass"}
    assert results["3-a-0"]["run"] == "a-0"


def test_a_run_without_a_trace_is_open_where_one_is_read(study: Path, tmp_path: Path) -> None:
    tasks = _verified(tmp_path, {"expected": {"url": "__SHOPPING__/p"}})
    response = json.dumps(answer(["a"]))
    for folder in study.iterdir():
        (folder / "agent_response.json").write_text(response)
    _, results = _evaluate(tasks, study, tmp_path / "out")
    assert {name: result["outcome"] for name, result in results.items()} == {
        "3-a-0": "unknown",
        "3-b-0": "pass",
    }
    code, released = _evaluate(tasks, study, tmp_path / "release", "--mode", "release-1.2.3")
    assert (code, released["3-a-0"]["outcome"]) == (FAILURES, "unknown")
    assert "holds no network trace" in released["3-a-0"]["reasons"][0]
    assert not (tmp_path / "out/package").exists()


def test_prose_is_no_response_and_a_run_that_crashed_is_open(study: Path, tmp_path: Path) -> None:
    crashed = study / "a_on_webarena.3_1"
    for path in crashed.glob("step_*"):
        path.unlink()
    summary = {"err_msg": "Page.goto: Timeout", "terminated": None, "truncated": None}
    (crashed / "summary_info.json").write_text(json.dumps(summary))
    _, results = _evaluate(_verified(tmp_path), study, tmp_path / "out")
    assert results["3-b-0"]["parse_failure"] == "no_object"
    assert results["3-a-0"]["outcome"] == "unknown"
    assert "did not end, and its agent had said nothing" in results["3-a-0"]["reasons"][0]
    (study / "b_on_webarena.3_1" / "step_1.pkl.gz").write_bytes(b"spoilt")
    _, results = _evaluate(_verified(tmp_path), study, tmp_path / "again")
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
    assert _evaluate(_verified(tmp_path), study, tmp_path / "out", *words)[0] == USAGE_ERROR
    assert sentence in capsys.readouterr().err


def test_a_study_of_other_tasks_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made.browsergym(tmp_path / "study" / "a_on_x_1", task="miniwob.click", **ENDED)
    assert _evaluate(_verified(tmp_path), tmp_path / "study", tmp_path / "o")[0] == USAGE_ERROR
    assert "none of its 1 runs is of a task of the file" in capsys.readouterr().err


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
    _, results = _evaluate(real_data / "webarena" / tasks, data, tmp_path / "out")
    outcomes = [result["outcome"] for result in results.values()]
    assert (list(results), outcomes) == (
        ["21-DemoAgentArgs-0", "21-DemoAgentArgs-1"],
        ["unknown", "fail"],
    )
    runs = [run for run in open_source(f"browsergym:{data}") if isinstance(run, Trajectory)]
    assert [run.official_reward for run in runs] == [0.0, 0.0]
    assert list(run_folders(data)) == [run.key for run in runs]
