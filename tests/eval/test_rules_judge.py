"""``--judge rules:verified`` and ``rules:webarena``: verdicts where the rules can decide."""

from __future__ import annotations

import asyncio
import csv
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.rules.verified.tasks import answer, page, task
from tests.tables import mistakes
from trajudge.eval.judge import main
from trajudge.eval.store.run_folder import read_judgments
from trajudge.judges.judging import NoModel
from trajudge.judges.methods.rules import WebArena, WebArenaOptions
from trajudge.judges.model import Judgment, Skipped, Status
from trajudge.rules.verified.tasks import task_record
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey
from trajudge.trajectories.store import write
from trajudge.util.commands import FAILURES, OK, USAGE_ERROR


def _run(task_id: str, said: str | None, *, agent: str = "a", url: str | None = None) -> Trajectory:
    key = TrajectoryKey(benchmark=task_id.partition(".")[0], agent=agent, task_id=task_id)
    steps = (Step(index=0, observation=Observation(url=url)),)
    return Trajectory(key=key, raw_task_id=task_id, goal="Do it.", steps=steps, answer=said)


def _verified(folder: Path, *ids: int) -> list[str]:
    """Tasks whose answer is ["a"], and the judge's options for them."""
    tasks = [task_record(task(["a"], task_id=n)) for n in ids]
    (folder / "tasks.json").write_text(json.dumps(tasks))
    traces = folder / "traces"
    traces.mkdir()
    return _options("rules:verified", tasks=folder / "tasks.json", traces=traces)


def _options(judge: str, **options: object) -> list[str]:
    words = [("--judge-option", f"{name}={value}") for name, value in options.items()]
    return ["--judge", judge, *(word for pair in words for word in pair)]


def _trace(folder: Path, name: str, said: str | None = None) -> None:
    own = folder / "traces" / name
    own.mkdir(parents=True)
    (own / "network.har").write_text(json.dumps({"log": {"entries": [page("/")]}}))
    if said is not None:
        (own / "agent_response.json").write_text(said)


def _judge(folder: Path, words: list[str], *runs: Trajectory) -> tuple[int, dict[str, Judgment]]:
    write(folder / "data", runs)
    out = folder / "run"
    code = main([*words, "--data", f"trajudge:{folder / 'data'}", "--out", str(out)])
    found = read_judgments(out) if code in (OK, FAILURES) else []
    return code, {f"{j.key.agent}/{j.key.task_id}": j for j in found}


RIGHT, WRONG = (json.dumps(answer([word])) for word in "ab")


def test_a_trace_and_an_answer_give_a_verdict_with_its_reasons(tmp_path: Path) -> None:
    words = _verified(tmp_path, 1, 2)
    _trace(tmp_path, "1")
    _trace(tmp_path, "2")
    code, found = _judge(tmp_path, words, _run("webarena.1", RIGHT), _run("webarena.2", WRONG))
    assert code == OK
    right, wrong = found["a/webarena.1"], found["a/webarena.2"]
    assert (right.status, right.success) == (Status.OK, True)
    assert right.reasoning.startswith("all 3 checks hold; shopping is taken to be http://shop.ex")
    assert (wrong.status, wrong.success) == (Status.OK, False)
    assert wrong.reasoning.startswith("answer.retrieved_data")
    assert right.judge == "rules:verified"


@pytest.mark.parametrize(
    ("task_id", "why"),
    [
        ("webarena.2", "holds no network trace of task 2"),
        ("webarena.3", "holds no task webarena.3"),
        ("visualwebarena.1", "holds no task visualwebarena.1"),
    ],
)
def test_without_its_trace_or_task_a_run_is_skipped(tmp_path: Path, task_id: str, why: str) -> None:
    words = _verified(tmp_path, 1, 2)
    _trace(tmp_path, "1")
    code, found = _judge(tmp_path, words, _run(task_id, RIGHT))
    (judgment,) = found.values()
    assert code == FAILURES
    assert (judgment.status, judgment.success) == (Status.SKIPPED, None)
    assert why in judgment.detail


def test_a_trace_that_cannot_be_read_is_skipped_with_its_file(tmp_path: Path) -> None:
    words = _verified(tmp_path, 1)
    _trace(tmp_path, "1")
    (tmp_path / "traces/1/network.har").write_text('{"log": {"entries": [')
    _, found = _judge(tmp_path, words, _run("webarena.1", RIGHT))
    assert found["a/webarena.1"].status is Status.SKIPPED
    assert "network.har" in found["a/webarena.1"].detail


def test_each_agent_has_its_own_traces_and_no_agent_another_ones(tmp_path: Path) -> None:
    words = _verified(tmp_path, 1)
    _trace(tmp_path, "1", RIGHT)
    _trace(tmp_path, "b/1")
    runs = [
        _run("webarena.1", f"\n{RIGHT}\n"),
        _run("webarena.1", WRONG, agent="b"),
        _run("webarena.1", WRONG, agent="c"),
        _run("webarena.1", WRONG, agent="../traces/b"),
    ]
    _, found = _judge(tmp_path, words, *runs)
    assert found["a/webarena.1"].success is True
    assert found["b/webarena.1"].success is False
    for agent in ("c", "../traces/b"):
        assert found[f"{agent}/webarena.1"].status is Status.SKIPPED
        assert "the trace is another's" in found[f"{agent}/webarena.1"].detail


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        (None, "judge rules:verified: needs the option tasks=VALUE"),
        ("tasks=none.json", "none.json: No such file"),
        ("traces=none", "none: no such folder"),
        ("mode=strict", "mode = 'strict'"),
        ("colour=red", "no option 'colour'"),
    ],
)
def test_a_mistake_in_the_options_is_one_sentence(
    tmp_path: Path, option: str | None, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _verified(tmp_path, 1)
    options: dict[str, object] = {"tasks": tmp_path / "tasks.json", "traces": tmp_path / "traces"}
    if option is not None:
        name, _, value = option.partition("=")
        options[name] = value
    words = _options("rules:verified", **options) if option else ["--judge", "rules:verified"]
    assert _judge(tmp_path, words, _run("webarena.1", RIGHT))[0] == USAGE_ERROR
    assert sentence in capsys.readouterr().err


def test_the_rules_go_first_in_a_cascade_and_vote_in_a_panel(tmp_path: Path) -> None:
    """The heuristic judge is asked where the rules cannot decide, or say yes."""
    options = _verified(tmp_path, 1, 2, 3)[2:]
    for name in ("1", "2"):
        _trace(tmp_path, name)
    runs = [_run("webarena.1", RIGHT), _run("webarena.2", WRONG), _run("webarena.3", RIGHT)]
    members = ["--members", "rules:verified,heuristic"]
    _, found = _judge(tmp_path, ["--judge", "cascade", *members, *options], *runs)
    asked = {name: judgment.scores["second_asked"] for name, judgment in found.items()}
    assert asked == {"a/webarena.1": 1.0, "a/webarena.2": 0.0, "a/webarena.3": 1.0}
    assert found["a/webarena.2"].success is False
    (tmp_path / "panel").mkdir()
    words = ["--judge", "panel", *members, "--quorum", "1", "--tie", "success", *options]
    _, found = _judge(tmp_path / "panel", words, *runs)
    assert "rules:verified: answer.retrieved_data" in found["a/webarena.2"].reasoning
    assert "rules:verified" not in found["a/webarena.3"].reasoning
    manifest = json.loads((tmp_path / "panel/run/manifest.json").read_text())
    (rules, _) = manifest["options"]["of"]["members"]
    assert rules["given"]["tasks"] == str(tmp_path / "tasks.json")


def test_another_task_file_under_the_same_name_is_another_run(tmp_path: Path) -> None:
    words = [
        *_verified(tmp_path, 1)[2:],
        "--judge",
        "panel",
        "--members",
        "rules:verified,heuristic",
    ]
    _trace(tmp_path, "1")
    assert _judge(tmp_path, words, _run("webarena.1", RIGHT))[0] == OK
    (tmp_path / "tasks.json").write_text(json.dumps([task_record(task(["b"], task_id=1))]))
    (tmp_path / "data2").mkdir()
    assert _judge(tmp_path, words, _run("webarena.1", RIGHT))[0] == USAGE_ERROR


@mistakes(
    """
    --members rules:verified,heuristic => needs the option tasks=VALUE
    --members rules:verified:gpt-4o,heuristic => asks no model
    --members rules:x,heuristic => --judge rules: no such judge
    --members heuristic,rule-based --judge-option tasks=x => no option 'tasks'
    """
)
def test_a_mistake_in_a_member_is_one_sentence(
    tmp_path: Path, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--judge", "panel", *words]
    assert _judge(tmp_path, words, _run("webarena.1", RIGHT))[0] == USAGE_ERROR
    assert sentence in capsys.readouterr().err


def _original(folder: Path, **spec: Any) -> list[str]:
    record = {"task_id": 7, "intent": "Do it.", "eval": {"eval_types": [], **spec}}
    (folder / "test.raw.json").write_text(json.dumps([record]))
    return _options("rules:webarena", tasks=folder / "test.raw.json")


def test_the_original_rules_read_answer_and_last_address(tmp_path: Path) -> None:
    words = _original(
        tmp_path,
        eval_types=["string_match", "url_match"],
        reference_answers={"exact_match": "3"},
        reference_url="http://shop.test/tea",
    )
    here, there = "http://shop.test/tea", "http://shop.test/coffee"
    runs = [
        _run("webarena.7", "3", agent="right", url=here),
        _run("webarena.7", "4", agent="wrong", url=here),
        _run("webarena.7", "3", agent="lost", url=there),
        _run("webarena.7", "3", agent="unrecorded"),
    ]
    _, found = _judge(tmp_path, words, *runs)
    assert {name: judgment.success for name, judgment in found.items()} == {
        "right/webarena.7": True,
        "wrong/webarena.7": False,
        "lost/webarena.7": False,
        "unrecorded/webarena.7": None,
    }
    assert "last url was not recorded" in found["unrecorded/webarena.7"].detail


def test_what_only_a_model_could_compare_is_skipped_not_refused(tmp_path: Path) -> None:
    fuzzy = {"fuzzy_match": ["three"]}
    words = _original(tmp_path, eval_types=["string_match"], reference_answers=fuzzy)
    _, found = _judge(tmp_path, words, _run("webarena.7", "3"))
    assert found["a/webarena.7"].status is Status.SKIPPED
    assert "a judge model decides this" in found["a/webarena.7"].detail


@pytest.mark.real_data
@pytest.mark.parametrize("mode", ["sound", "release-1.2.3"])
def test_the_published_demo_passes_as_published(tmp_path: Path, real_data: Path, mode: str) -> None:
    data = real_data / "webarena"
    said = (data / "demo/108/agent_response.json").read_text()
    words = _options(
        "rules:verified", tasks=data / "webarena-verified.json", traces=data / "demo", mode=mode
    )
    record = msgspec.json.decode(said)
    record["retrieved_data"] = record["retrieved_data"][:-1]
    (tmp_path / "less").mkdir()
    code, found = _judge(tmp_path, words, _run("webarena.108", said))
    assert (code, found["a/webarena.108"].success) == (OK, True)
    (tmp_path / "traces/108").mkdir(parents=True)
    shutil.copy(data / "demo/108/network.har", tmp_path / "traces/108")
    words[-3] = f"traces={tmp_path / 'traces'}"
    _, found = _judge(tmp_path / "less", words, _run("webarena.108", json.dumps(record)))
    assert found["a/webarena.108"].success is False


def _official(folder: Path, trajectory: Trajectory) -> float:
    """Read the reward out of the published file, without the loader."""
    path = folder / "judgments/webarena" / trajectory.key.agent / str(trajectory.metadata["source"])
    reward = json.loads(path.read_bytes())["trajectory_info"]["summary_info"]["cum_reward"]
    return float(reward)


@pytest.mark.real_data
def test_what_the_rules_decide_of_the_published_runs_is_the_official_reward(
    real_data: Path,
) -> None:
    """AgentRewardBench's WebArena runs kept actions but no pages: 66 of the test split and 26 of
    the development split can be decided. The official reward is the original harness's."""
    folder = real_data / "agentrewardbench"
    with (folder / "splits.csv").open(newline="") as rows:
        splits = {row["task_id"]: row["split"] for row in csv.DictReader(rows)}
    judge = WebArena(WebArenaOptions(tasks=real_data / "webarena/test.raw.json"))
    wanted = f"agentrewardbench-text:{folder}"
    decided: Counter[tuple[str, bool, float]] = Counter()
    for trajectory in open_source(wanted, lambda key: key.benchmark == "webarena"):
        assert isinstance(trajectory, Trajectory)
        try:
            verdict = asyncio.run(judge(trajectory, NoModel()))
        except Skipped:
            continue
        split = splits[trajectory.key.task_id.removesuffix(".resized").removesuffix(".improved")]
        decided[split, bool(verdict.success), _official(folder, trajectory)] += 1
    assert decided == {
        ("test", True, 1.0): 12,
        ("test", False, 0.0): 54,
        ("dev", True, 1.0): 4,
        ("dev", False, 0.0): 22,
    }
