"""The Gymnasium environment: Gymnasium's own checker takes it, and its reward is the state's."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.utils.env_checker import check_env

import trajudge as tj
from tests.environments.cases import agent, job, sound
from trajudge.environments.agents.script import Behaviour
from trajudge.environments.gym import NAME, WebEnv
from trajudge.environments.model.case import Case, write_cases
from trajudge.environments.recording.recorder import Recorder, recorded_offline
from trajudge.trajectories.model import Trajectory
from trajudge.util.errors import UserError

PRICE = sound("price")  # a question: its answer is no code, which another run would not have
BUY = sound("buy")


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    write_cases(tmp_path / "cases.jsonl", [PRICE, BUY])
    return tmp_path / "cases.jsonl"


@pytest.fixture
def offline(cases: Path) -> Iterator[WebEnv]:
    env = WebEnv(cases, browser=False)
    yield env
    env.close()


def played(env: WebEnv, case: Case, actions: Sequence[str]) -> tuple[float, bool, dict[str, Any]]:
    """The reward, whether the agent ended the episode itself, and what is told of it at its end."""
    env.reset(options={"case": case.id})
    for action in actions:
        _, reward, terminated, truncated, told = env.step(action)
        if terminated or truncated:
            return reward, terminated, told
        assert (reward, told) == (0.0, {})
    raise AssertionError("the episode did not end")


def oracles_actions(case: Case) -> list[str]:
    steps = recorded_offline(job(case, agent(Behaviour.ORACLE)), 0).trajectory.steps
    return [step.action for step in steps if step.action]


@pytest.mark.filterwarnings("error")
def test_gymnasiums_checker_takes_it_without_a_browser(cases: Path) -> None:
    with gymnasium.make(NAME, cases=cases, browser=False) as env:
        check_env(env.unwrapped)


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_gymnasiums_checker_takes_it_in_chromium(chromium: Path, cases: Path) -> None:
    with gymnasium.make(NAME, cases=cases, render_mode="rgb_array") as env:
        check_env(env.unwrapped)
        seen, told = env.reset(options={"case": BUY.id})
        assert (told["case"], seen["goal"]) == (BUY.id, BUY.goal)
        assert "button" in seen["axtree_txt"]
        assert seen["screenshot"].shape == (768, 1024, 3)
        assert seen["screenshot"].std() > 10, "a page, and not one colour"
        assert np.array_equal(seen["screenshot"], np.asarray(env.render()))


def test_what_the_oracle_does_is_rewarded_at_the_end_alone(offline: WebEnv) -> None:
    reward, terminated, told = played(offline, PRICE, oracles_actions(PRICE))
    assert (reward, terminated) == (1.0, True)
    assert (told["success"], told["side_effect"]) == (True, False)
    assert told["official_reward"] == told["trajectory"].official_reward


@pytest.mark.browser
def test_so_it_is_in_chromium(recorder: Recorder, chromium: Path) -> None:
    actions = recorder.oracles_actions(job(PRICE, agent(Behaviour.ORACLE)))
    env = WebEnv([PRICE], pictures=False)
    try:
        assert played(env, PRICE, actions)[:2] == (1.0, True)
    finally:
        env.close()


def test_another_answer_or_none_is_not(offline: WebEnv) -> None:
    *way, _ = oracles_actions(PRICE)
    reward, terminated, told = played(offline, PRICE, [*way, "send_msg_to_user('It is $0.01.')"])
    assert (reward, terminated, told["success"]) == (0.0, True, False)
    _, told = offline.reset(options={"case": PRICE.id})
    reward, terminated, told = played(offline, PRICE, ["noop()"] * told["most_actions"])
    assert (reward, terminated, told["success"]) == (0.0, False, False)
    assert told["trajectory"].truncated


def test_an_order_that_was_made_by_heart_is_not_known(offline: WebEnv) -> None:
    """The order is made, and its code is another one in each episode."""
    reward, _, told = played(offline, BUY, oracles_actions(BUY))
    assert (reward, told["success"]) == (0.0, False)


def test_what_is_no_action_is_an_error_on_the_page(offline: WebEnv) -> None:
    offline.reset(seed=0)
    seen, reward, terminated, truncated, _ = offline.step("I would click on the mug.")
    assert seen["last_action_error"].startswith("BadAction: ")
    assert seen["last_action"] == "I would click on the mug."
    assert (reward, terminated, truncated) == (0.0, False, False)
    seen, *_ = offline.step("x" * 5_000_000 + "\ud800")
    assert seen in offline.observation_space
    assert "at most 20000 are read" in seen["last_action_error"]
    seen, *_ = offline.step("fill('1', '\ud800')")
    assert json.dumps(seen).encode()
    assert seen["last_action"] == "fill('1', '?')"


def test_a_judge_reads_what_was_done_and_why(offline: WebEnv, tmp_path: Path) -> None:
    runs: list[Trajectory] = []
    for _ in range(2):
        offline.reset(options={"case": PRICE.id})
        if not runs:
            offline.reasoning = "I do not know."
        *_, told = offline.step("send_msg_to_user('I give up.')")
        runs.append(told["trajectory"])
        offline.reasoning = "This is of no step of the next episode."
    assert [run.key.attempt for run in runs] == [0, 1]
    assert [[step.reasoning for step in run.steps] for run in runs] == [
        ["I do not know.", None],
        [None, None],
    ]
    assert runs[0].answer == "I give up."
    judged = tj.judge(runs, "heuristic", out=tmp_path / "run")
    assert [one.key for one in judged] == [run.key for run in runs]


def test_a_seed_draws_the_same_cases_and_nothing_is_learnt_by_heart(offline: WebEnv) -> None:
    drawn = []
    for _ in range(2):
        first, told = offline.reset(seed=7)
        begun = [(first["url"], told["case"])]
        begun += [(seen["url"], told["case"]) for seen, told in (offline.reset() for _ in range(9))]
        drawn.append(begun)
    assert drawn[0] == drawn[1]
    assert len({url for url, _ in drawn[0]}) == 10, "each run has an address of its own"
    assert {case for _, case in drawn[0]} == {PRICE.id, BUY.id}


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_several_are_played_at_once(cases: Path, mode: str) -> None:
    how = {"shared_memory": False} if mode == "async" else {}
    envs = gymnasium.make_vec(
        NAME, 2, vectorization_mode=mode, vector_kwargs=how, cases=str(cases), browser=False
    )
    try:
        envs.reset(seed=1)
        seen, rewards, ended, _, told = envs.step(["noop()", "send_msg_to_user('x')"])
        assert (rewards.tolist(), ended.tolist()) == ([0, 0], [False, True])
        assert seen["last_action"] == ("noop()", "send_msg_to_user('x')")
        assert told["trajectory"][1].answer == "x"
    finally:
        envs.close()


def test_the_python_of_the_docs_runs(cases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parents[3] / "docs" / "environments.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    monkeypatch.chdir(cases.parent)
    made = 'cases="cases.jsonl"'
    assert made in code
    shown: dict[str, Any] = {"policy": lambda seen: "send_msg_to_user('No.')"}
    exec(code.replace(made, f"{made}, browser=False"), shown)
    assert (shown["reward"], shown["terminated"]) == (0.0, True)
    assert shown["info"]["trajectory"].steps[0].reasoning == "What the policy thought."


def test_mistakes_are_one_sentence(cases: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere\.jsonl: cannot be read .*trajudge env generate"):
        WebEnv(tmp_path / "nowhere.jsonl")
    with pytest.raises(UserError, match="there is none"):
        WebEnv([])
    with pytest.raises(UserError, match="needs a browser and pictures"):
        WebEnv(cases, browser=False, render_mode="rgb_array")
    env = WebEnv(cases, browser=False)
    with pytest.raises(ResetNeeded, match=r"call reset\(\) first"):
        env.step("noop()")
    with pytest.raises(UserError, match="there is no case 'x'"):
        env.reset(options={"case": "x"})
    with pytest.raises(UserError, match="'task' is none: there is  case"):
        env.reset(options={"task": 1})
    env.reset()
    with pytest.raises(TypeError, match="an action is text"):
        env.step(3)  # type: ignore[arg-type]
    env.step("send_msg_to_user('x')")
    with pytest.raises(ResetNeeded):
        env.step("noop()")
    env.close()
    env.close()
    with pytest.raises(ClosedEnvironmentError, match="make another one"):
        env.reset()


FORGETFUL = """
import sys
from trajudge.environments.gym import WebEnv

env = WebEnv(sys.argv[1], pictures=False)
env.reset(seed=0)
print(len(env.cases))
"""


@pytest.mark.browser
@pytest.mark.slow
def test_a_program_that_never_closes_it_ends(chromium: Path, cases: Path) -> None:
    """It waited for its browser for ever."""
    done = subprocess.run(
        [sys.executable, "-c", FORGETFUL, str(cases)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")


def test_without_gymnasium_the_extra_is_named() -> None:
    code = (
        "import sys\n"
        "sys.modules['gymnasium'] = None\n"
        "from importlib import util\n"
        "known = util.find_spec\n"
        "util.find_spec = lambda name: None if name == 'gymnasium' else known(name)\n"
        "import trajudge.environments.gym\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'trajudge[gym]'" in done.stderr.splitlines()[-1]
    assert done.returncode == 1
