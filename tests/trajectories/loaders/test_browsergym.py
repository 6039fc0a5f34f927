"""AgentLab experiment folders, made up and real."""

from __future__ import annotations

import base64
import functools
import gzip
import json
import os
import pickle
import posixpath
import re
import zoneinfo
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trajectories.loaders.made import PNG, browsergym, only, split
from trajudge.trajectories.loaders.browsergym import detect, load
from trajudge.trajectories.model import ImageRef, Observation, TrajectoryKey
from trajudge.util.errors import UserError

NAME = "2025-01-02_03-04-05_Made_agent_on_webarena.3_5"


def test_an_experiment_folder_gives_the_whole_trajectory(tmp_path: Path) -> None:
    folder = browsergym(tmp_path / NAME)
    assert detect(folder)
    assert detect(tmp_path)
    [run], [] = split(load(folder))
    assert run.key == TrajectoryKey(benchmark="webarena", agent="Made_agent", task_id="webarena.3")
    assert (run.goal, run.answer, run.official_reward) == ("Buy tea", "Bought.", 1.0)
    assert (run.terminated, run.truncated) == (True, False)
    assert run.telemetry == {"n_steps": 11, "cum_output_tokens": 7, "error": 0}
    assert run.metadata == {"model": "made-1", "seed": 5, "error": None, "warnings": []}
    assert [step.action for step in run.steps] == [*(f"click('{n}')" for n in range(11)), None]
    step = run.steps[1]
    assert step.reasoning == "thought 1"
    assert step.observation.url == "https://b.example/1"
    assert step.observation.axtree == "RootWebArea 1 ?"
    assert step.observation.page_error == "TimeoutError: slow"
    assert step.observation.screenshot == ImageRef(path=folder / "screenshot_step_1.png")
    assert run.steps[2].observation.page_error is None


def test_why_a_task_is_infeasible_is_the_answer(tmp_path: Path) -> None:
    said = (("assistant", "I look."), ("infeasible", "No such shop."))
    [run], [] = split(load(browsergym(tmp_path / NAME, said=said)))
    assert run.answer == "No such shop."


def test_the_word_none_is_no_action(tmp_path: Path) -> None:
    [run], [] = split(load(browsergym(tmp_path / NAME, steps=2, told={"action": "None"})))
    assert [step.action for step in run.steps] == [None, None]


def test_repeated_runs_are_attempts_in_the_order_of_their_dates(tmp_path: Path) -> None:
    browsergym(tmp_path / "2025-01-03_00-00-00_A_on_webarena.3_5", cum_reward=0.25)
    browsergym(tmp_path / "2025-01-02_00-00-00_A_on_webarena.3_6", cum_reward=0.5)
    browsergym(tmp_path / "2025-01-01_00-00-00_A_on_webarena.12_6", task="webarena.12")
    runs, [] = split(load(tmp_path))
    assert [(run.key.task_id, run.key.attempt, run.official_reward) for run in runs] == [
        ("webarena.12", 0, 1.0),
        ("webarena.3", 0, 0.5),
        ("webarena.3", 1, 0.25),
    ]


def test_without_its_arguments_the_folders_name_tells_agent_and_task(tmp_path: Path) -> None:
    (browsergym(tmp_path / NAME) / "exp_args.pkl").unlink()
    [run], [] = split(load(tmp_path))
    assert str(run.key) == "webarena/Made_agent/webarena.3"
    assert run.metadata["warnings"] == ["exp_args.pkl is missing."]


def test_a_goal_with_images(tmp_path: Path) -> None:
    inline = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    goal = [
        {"type": "text", "text": "Find this:"},
        {"type": "image_url", "image_url": {"url": inline}},
        {"type": "image_url", "image_url": inline},
        {"type": "image_url", "image_url": {"url": "https://a.example/x.png"}},
        {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,%%%"}},
    ]
    browsergym(tmp_path / NAME, goal=goal)
    [run], [] = split(load(tmp_path))
    assert run.goal == "Find this:"
    assert run.goal_images == (
        *(ImageRef(data=PNG), ImageRef(data=PNG)),
        *(ImageRef(problem="it is not part of the files"),) * 2,
        ImageRef(problem="it is not valid base64"),
    )
    assert run.metadata["warnings"] == [
        "An image of the goal is not part of the files.",
        "An image of the goal is not part of the files.",
        "An image of the goal is not valid base64.",
    ]


def test_a_run_that_crashed_before_it_had_a_goal_is_unreadable(tmp_path: Path) -> None:
    folder = browsergym(tmp_path / NAME, goal=[], steps=1, err_msg="No X server")
    [], [bad] = split(load(tmp_path))
    assert bad.source == str(folder)
    assert bad.reason == "it has no goal; the run ended with: No X server"


def test_a_hostile_pickle_is_refused_and_the_others_are_read(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[object, ...]:
            return os.system, (f"touch {tmp_path / 'ran'}",)

    runs = tmp_path / "runs"
    folder = browsergym(runs / "2025-01-02_00-00-00_A_on_webarena.3_5")
    browsergym(runs / "2025-01-03_00-00-00_A_on_webarena.3_5")
    (folder / "step_4.pkl.gz").write_bytes(gzip.compress(pickle.dumps({"obs": Hostile()})))
    [run], [bad] = split(load(runs))
    assert run.key.attempt == 1
    assert bad.reason.startswith("step_4.pkl.gz: it names posix.system")
    assert not (tmp_path / "ran").exists()


def test_missing_parts_are_told(tmp_path: Path) -> None:
    folder = browsergym(tmp_path / NAME, steps=4)
    (folder / "screenshot_step_2.png").rename(folder / "screenshot_step_2.jpg")
    (folder / "screenshot_step_1.png").write_bytes(b"")
    (folder / "screenshot_step_3.png").unlink()
    (folder / "screenshot_step_0.png").unlink()
    (folder / "screenshot_step_0.png").symlink_to("/etc/hostname")
    (folder / "summary_info.json").unlink()
    [run], [] = split(load(tmp_path))
    shots = [step.observation.screenshot for step in run.steps]
    assert shots == [
        ImageRef(problem=f"{folder}/screenshot_step_0.png leads out of the folder"),
        ImageRef(problem=f"{folder}/screenshot_step_1.png is empty"),
        ImageRef(path=folder / "screenshot_step_2.jpg"),
        ImageRef(problem=f"{folder}/screenshot_step_3.png is missing"),
    ]
    assert run.official_reward is None
    assert run.metadata["warnings"] == [
        "summary_info.json is missing: the run's reward is not known.",
        "The screenshot screenshot_step_0.png leads out of the folder.",
        "The screenshot screenshot_step_1.png is empty.",
        "The screenshot screenshot_step_3.png is missing.",
    ]


def test_a_run_that_lost_a_step_is_not_read_without_it(tmp_path: Path) -> None:
    folder = browsergym(tmp_path / NAME, steps=4)
    (folder / "step_2.pkl.gz").unlink()
    [], [bad] = split(load(tmp_path))
    assert bad.reason == "step_2.pkl.gz is missing, and later steps are there"


def test_a_run_that_kept_no_screenshot_misses_none(tmp_path: Path) -> None:
    folder = browsergym(tmp_path / NAME, steps=2)
    for path in folder.glob("screenshot_step_*"):
        path.unlink()
    [run], [] = split(load(tmp_path))
    assert [step.observation.screenshot for step in run.steps] == [None, None]


def test_unwanted_runs_are_not_opened(tmp_path: Path) -> None:
    browsergym(tmp_path / NAME)
    bad = browsergym(tmp_path / "2025-01-02_00-00-00_A_on_webarena.4_5", task="webarena.4")
    (bad / "goal_object.pkl.gz").write_bytes(b"broken, but nobody asked for it")
    [run], [] = split(load(tmp_path, only("webarena.3")))
    assert run.key.task_id == "webarena.3"


def test_an_empty_folder_is_the_users_mistake(tmp_path: Path) -> None:
    assert not detect(tmp_path)
    with pytest.raises(UserError, match="holds no browsergym trajectory"):
        load(tmp_path)
    with pytest.raises(UserError, match="is no folder"):
        load(tmp_path / "nowhere")


@pytest.mark.real_data
def test_the_real_runs(real_data: Path) -> None:
    [crashed, run], [] = split(load(real_data / "browsergym"))
    assert str(crashed.key) == "webarena/DemoAgentArgs/webarena.21"
    assert str(crashed.metadata["error"]).startswith("Exception uncaught by agent or environment")
    assert (crashed.official_reward, crashed.terminated, crashed.truncated) == (0.0, None, None)
    assert crashed.final == Observation()
    assert str(run.key) == "webarena/DemoAgentArgs/webarena.21#1"
    assert run.goal == "List out reviewers, if exist, who mention about ear cups being small"
    assert crashed.goal == run.goal
    assert run.metadata["model"] == "litellm/neulab/claude-3-5-sonnet-20241022"
    assert len(run.steps) == 11
    assert all("ec2-3-139-114-97" in (step.observation.url or "") for step in run.steps)
    assert all(
        (step.observation.axtree or "").startswith("RootWebArea '6S Wireless Headphones")
        for step in run.steps
    )
    assert [step.observation.page_error for step in run.steps] == [
        None,
        *["IndexError: list index out of range"] * 10,
    ]
    shots = [step.observation.screenshot for step in run.steps]
    assert [shot and shot.path and shot.path.name for shot in shots] == [
        f"screenshot_step_{index}.png" for index in range(11)
    ]
    assert (run.answer, run.official_reward) == (None, 0.0)
    assert (run.terminated, run.truncated) == (False, True)
    assert run.telemetry["cum_n_token_pruned_html"] == 536498
    assert run.metadata["warnings"] == []
    assert json.dumps(run.metadata)


class _Runs:
    """A pickle that makes a folder where it is loaded."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, ("executed",)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (pickle.dumps(re.compile("a")), "it names re._compile, which no data needs"),
        (pickle.dumps(functools.partial(int, base=2)), "it names functools.partial"),
        (pickle.dumps(np.random.default_rng(0)), "it calls the function numpy.random"),
        (pickle.dumps(zoneinfo.ZoneInfo("UTC")), "it names builtins.getattr"),
        (pickle.dumps(len), "it names builtins.len"),
        (pickle.dumps(posixpath.join), "it names posixpath.join"),
        (pickle.dumps(_Runs()), "it names posix.mkdir"),
        (pickle.dumps({"agent_args": 1})[:-3], "it is damaged"),
        (b"", "it is damaged"),
        (None, "exp_args.pkl is not a file"),
    ],
)
def test_arguments_that_are_not_read_are_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, problem: str
) -> None:
    folder = browsergym(tmp_path / NAME, steps=2)
    (folder / "exp_args.pkl").unlink()
    if content is None:
        (folder / "exp_args.pkl").mkdir()
    else:
        (folder / "exp_args.pkl").write_bytes(content)
    monkeypatch.chdir(tmp_path)
    [run], [] = split(load(tmp_path))
    warnings = run.metadata["warnings"]
    assert isinstance(warnings, list)
    [warning] = warnings
    assert str(warning).startswith(f"exp_args.pkl is not read: {problem}")
    assert (run.key.agent, run.key.task_id, run.answer) == ("Made_agent", "webarena.3", "Bought.")
    assert not (tmp_path / "executed").exists()


def test_a_goal_that_is_not_read_is_that_of_the_first_step(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "Buy tea"}]
    folder = browsergym(tmp_path / NAME, steps=1, told={"obs": {"goal_object": parts}})
    (folder / "goal_object.pkl.gz").write_bytes(b"no gzip")
    [run], [] = split(load(folder))
    assert run.goal == "Buy tea"
    assert any("The goal is that of the first step" in str(one) for one in run.metadata["warnings"])  # type: ignore[union-attr]
