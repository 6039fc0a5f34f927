"""The Gymnasium environment: Gymnasium's own checker takes it, and its reward is the state's."""

from __future__ import annotations

import ast
import json
import math
import pickle
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing
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
from trajudge.environments.apps import APPS, load_app
from trajudge.environments.checks.draws import AXES
from trajudge.environments.gym import IDS, WebEnv
from trajudge.environments.gym.env import WebVectorEnv
from trajudge.environments.gym.observation import axtree_object
from trajudge.environments.gym.spaces import UnicodeText
from trajudge.environments.model.case import Case, write_cases
from trajudge.environments.recording.recorder import Recorder, recorded_offline
from trajudge.trajectories.model import Trajectory
from trajudge.util.errors import UserError

ALL = "trajudge/all-v0"
PRICE = sound("price")  # a question: its answer is no code, which another run would not have
BUY = sound("buy")


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    write_cases(tmp_path / "cases.jsonl", [PRICE, BUY])
    return tmp_path / "cases.jsonl"


@pytest.fixture
def offline(cases: Path) -> Iterator[WebEnv]:
    env = WebEnv(cases=cases)
    yield env
    env.close()


def played(env: WebEnv, case: Case, actions: Sequence[str]) -> tuple[float, bool, dict[str, Any]]:
    """The reward, whether the agent ended the episode itself, and what is told of it at its end."""
    env.reset(options={"case": case.id})
    for action in actions:
        _, reward, terminated, truncated, told = env.step(action)
        if terminated or truncated:
            return reward, terminated, told
        assert (reward, set(told)) == (0.0, {"step", "engine", "config"})
    raise AssertionError("the episode did not end")


def click(env: WebEnv, name: str) -> str:
    """A click on the button whose name ends so."""
    buttons = (one for one in env.action_space.elements if one.role == "button")
    return next(f"click({one.bid!r})" for one in buttons if one.name.endswith(name))


def oracles_actions(case: Case) -> list[str]:
    steps = recorded_offline(job(case, agent(Behaviour.ORACLE)), 0).trajectory.steps
    return [step.action for step in steps if step.action]


SAMPLE = ("shop.buy", "press", "level2", "all")


def checked(name: str, **keywords: Any) -> None:
    """Let Gymnasium's own checker try an id; any warning but that of boundless numbers fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*A Box observation space maximum value is inf")
        with gymnasium.make(name, **keywords) as env:
            check_env(env.unwrapped)


@pytest.mark.parametrize("form", ["text", "browsergym"])
@pytest.mark.parametrize("tasks", SAMPLE)
def test_gymnasiums_checker_takes_an_id_without_a_browser(tasks: str, form: str) -> None:
    checked(f"trajudge/{tasks}-v0", observation=form)


@pytest.mark.slow
def test_gymnasiums_checker_takes_every_id() -> None:
    for name in IDS:
        if gymnasium.spec(name).kwargs.get("engine") != "chromium":
            checked(name)


def test_every_scenario_application_and_level_has_an_id() -> None:
    scenarios = [(app, scenario) for app in APPS for scenario in load_app(app).scenarios]
    assert {f"trajudge/{app}.{scenario.id}-v0" for app, scenario in scenarios} < {*IDS}
    assert len(IDS) == len(scenarios) + len(APPS) + 4
    for app, scenario in scenarios:
        spec = gymnasium.spec(f"trajudge/{app}.{scenario.id}-v0")
        assert pickle.loads(pickle.dumps(spec)) == spec
        assert (spec.kwargs.get("engine") == "chromium") == bool(scenario.charts)
    # Ids keep to Gymnasium's grammar, and the import can be part of the name.
    named = gymnasium.make("trajudge.environments.gym:trajudge/shop.buy-v0")
    assert named.unwrapped.tasks == "shop.buy"  # type: ignore[attr-defined]


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_gymnasiums_checker_takes_it_in_chromium(chromium: Path, cases: Path) -> None:
    with gymnasium.make(ALL, cases=cases, engine="chromium", render_mode="rgb_array") as env:
        check_env(env.unwrapped)
        seen, told = env.reset(options={"case": BUY.id})
        assert told.keys() == {"step", "engine", "config"}
        assert seen["goal"] == BUY.goal
        assert "button" in seen["axtree"]
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
    env = WebEnv(cases=[PRICE], engine="chromium", pictures=False)
    try:
        assert played(env, PRICE, actions)[:2] == (1.0, True)
    finally:
        env.close()


def test_another_answer_or_none_is_not(offline: WebEnv) -> None:
    *way, _ = oracles_actions(PRICE)
    reward, terminated, told = played(offline, PRICE, [*way, "send_msg_to_user('It is $0.01.')"])
    assert (reward, terminated, told["success"]) == (0.0, True, False)
    budget = job(PRICE, "policy").budget
    reward, terminated, told = played(offline, PRICE, ["noop()"] * budget)
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
        begun = [(first["url"], told["config"])]
        begun += [
            (seen["url"], told["config"]) for seen, told in (offline.reset() for _ in [0] * 9)
        ]
        drawn.append(begun)
    assert drawn[0] == drawn[1]
    assert len({url for url, _ in drawn[0]}) == 10, "each run has an address of its own"
    assert len({config for _, config in drawn[0]}) == 2


def test_the_python_of_the_docs_runs(cases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parents[3] / "docs" / "gym.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    monkeypatch.chdir(cases.parent)
    shown: dict[str, Any] = {"policy": lambda seen: "send_msg_to_user('No.')"}
    exec(code, shown)
    assert (shown["reward"], shown["terminated"]) == (0.0, True)
    assert shown["info"]["trajectory"].steps[0].reasoning == "What the policy thought."


def test_mistakes_are_one_sentence(cases: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere\.jsonl: cannot be read .*trajudge env generate"):
        WebEnv(cases=tmp_path / "nowhere.jsonl")
    with pytest.raises(UserError, match="there is none"):
        WebEnv(cases=[])
    with pytest.raises(UserError, match="needs pictures: use engine='chromium'"):
        WebEnv(render_mode="rgb_array")
    with pytest.raises(UserError, match="visible='window' needs a layout"):
        WebEnv(visible="window")
    with pytest.raises(UserError, match="engine='firefox': choose from text, chromium"):
        WebEnv(engine="firefox")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="max_steps=0: give 1 or more"):
        WebEnv(max_steps=0)
    env = WebEnv(cases=cases)
    with pytest.raises(ResetNeeded, match=r"call reset\(\) first"):
        env.step("noop()")
    with pytest.raises(UserError, match="there is no case 'x'"):
        env.reset(options={"case": "x"})
    with pytest.raises(UserError, match="'task' is none: there is  attempt, case, config, level"):
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

env = WebEnv(cases=sys.argv[1], engine="chromium", pictures=False)
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


# --- the observation ---


def test_browsergyms_observation_is_complete_and_shows_the_page_of_the_short_one() -> None:
    short, full = WebEnv("shop"), WebEnv("shop", observation="browsergym")
    for env in (short, full):
        env.reset(seed=5)
    action = short.actions()[0]
    seen, *_ = short.step(action)
    whole, *_ = full.step(action)
    assert whole in full.observation_space and seen in short.observation_space
    nodes = whole["axtree_object"]["nodes"]
    names = [(node.get("browsergym_id"), node["role"]["value"]) for node in nodes]
    lines = [line.strip() for line in seen["axtree"].splitlines()]
    assert len(nodes) == len(lines)
    assert names[0] == (None, "RootWebArea")
    assert [role for _, role in names] == [line.split("] ")[-1].split()[0] for line in lines]
    below = [child for node in nodes for child in node["childIds"]]
    assert sorted(below) == sorted(node["nodeId"] for node in nodes[1:])
    for bid, role in names:
        if bid is not None and role != "option":
            assert bid in whole["extra_element_properties"]
    [document] = whole["dom_object"]["documents"]
    columns, texts = document["nodes"], whole["dom_object"]["strings"]
    assert len({len(column) for name, column in columns.items() if name[0] != "c"}) == 1
    shown = {texts[value] for value in columns["nodeValue"] if value >= 0}
    assert "Alder & Finch" in shown
    assert "_nonce" not in texts, "nothing that only a form knows"
    assert whole["chat_messages"][0]["message"] == whole["goal"] == seen["goal"]
    assert (whole["open_pages_urls"], whole["active_page_index"].tolist()) == ([seen["url"]], [0])
    assert (whole["last_action"], whole["focused_element_bid"]) == (action, seen["focused"])


def test_the_values_of_a_line_come_back_as_they_were() -> None:
    tree = (
        "RootWebArea 'a', focused\n\t[3] textbox \"it's, visible\" value='x, y', clickable, "
        "visible, required\n\t\tStaticText 'a\\nb'\n\t[4] spinbutton '' value=2.5, valuemax=0, "
        "valuetext='2.5'\n\t[5] combobox 'c', expanded=False, hasPopup='menu'"
    )
    root, box, text, spin, combo = axtree_object(tree)["nodes"]
    assert root["childIds"] == ["1", "3", "4"] and box["childIds"] == ["2"]
    assert (box["name"]["value"], box["value"]["value"]) == ("it's, visible", "x, y")
    assert [one["name"] for one in box["properties"]] == ["required"]
    assert (text["name"]["value"], spin["value"]["value"]) == ("a\nb", 2.5)
    stated = {one["name"]: one["value"]["value"] for one in combo["properties"]}
    assert stated == {"expanded": False, "hasPopup": "menu"}


def test_what_is_visible_is_left_out_where_it_is_off() -> None:
    trees = []
    for visible in ("rendered", "off"):
        env = WebEnv("press", visible=visible)
        trees.append(env.reset(seed=1)[0]["axtree"])
    assert ", visible" in trees[0]
    assert trees[0].replace(", visible", "") == trees[1]


def test_info_and_observations_say_nothing_of_the_way_before_the_end() -> None:
    env = WebEnv(observation="browsergym", axes=AXES)
    for seed in range(5):
        seen, info = env.reset(seed=seed)
        case = env._case({"config": env._episode.job.config})  # type: ignore[union-attr]
        assert set(info) == {"step", "engine", "config"}
        assert "shortest" not in str(seen) and str(case.config.id) not in f"{seen}{info}"


# --- the reward ---


def test_what_is_done_and_undone_earns_nothing() -> None:
    """Potential-based shaping: the sum of the rewards is that of the last state alone."""
    wish = sound("wish")
    way = oracles_actions(wish)[:-1]
    thing = next(ast.literal_eval(one[4:])[1] for one in way if one.startswith("fill("))
    returns = []
    for farmed in (False, True):
        env = WebEnv(cases=[wish], reward="progress", max_steps=200)
        env.reset(seed=0)
        gained = [env.step(action)[1] for action in way]
        assert sum(gained) == pytest.approx(1.0), "the wish is there, and the answer is due"
        for _ in range(10 * farmed):
            gained.append(env.step(click(env, thing))[1])
            assert sum(gained) == pytest.approx(0.0)
            gained += [env.step(action)[1] for action in ("go_back()", *way)]
        *_, reward, _, _, info = env.step("send_msg_to_user('Done.')")
        returns.append((sum(gained) + reward, info["success"], info["predicates_met"]))
    assert returns[0] == pytest.approx(returns[1])


def test_a_change_that_nobody_asked_for_costs_what_a_task_earns() -> None:
    env = WebEnv(cases=[PRICE], reward="progress")
    env.reset(seed=0)
    wish = oracles_actions(sound("wish"))[:-1]
    assert sum(env.step(action)[1] for action in wish) == pytest.approx(-1.0)


def test_a_success_that_is_open_to_argument_is_no_number_unless_one_is_named() -> None:
    cancel = sound("wish")
    for named, expected in ((math.nan, math.nan), (0.25, 0.25)):
        env = WebEnv(cases=[cancel], open_reward=named)
        env.reset(seed=0)
        for action in oracles_actions(cancel)[:-1]:
            env.step(action)
        *_, reward, ended, _, info = env.step("report_infeasible('It could not be done.')")
        assert (ended, info["success"], info["status"]) == (True, None, "open")
        assert reward == pytest.approx(expected, nan_ok=True)


# --- vectors ---


def batches(**how: Any) -> Iterator[gymnasium.vector.VectorEnv[Any, Any, Any]]:
    envs = gymnasium.make_vec("trajudge/shop-v0", 3, **how)
    try:
        yield envs
    finally:
        envs.close()


@pytest.mark.parametrize("mode", [None, "sync", "async"])
@pytest.mark.parametrize("form", ["text", "browsergym"])
def test_several_are_played_at_once_without_an_option(mode: str | None, form: str) -> None:
    for envs in batches(vectorization_mode=mode, observation=form):
        assert mode or isinstance(envs, WebVectorEnv)
        first, told = envs.reset(seed=1)
        assert len(set(told["config"])) == 3
        answers = ("noop()", "send_msg_to_user('x')", "jump()")
        seen, rewards, ended, _, told = envs.step(answers)
        assert (rewards.tolist(), ended.tolist()) == ([0, 0, 0], [False, True, False])
        assert seen["last_action"] == answers, "what was given out before stays as it was"
        assert first["last_action"] == ("", "", "")
        assert "no action is called 'jump'" in seen["last_action_error"][2]
        assert told["trajectory"][1].answer == "x"
        seen, *_ = envs.step(answers)  # the second one begins anew
        assert seen["last_action"] == ("noop()", "", "jump()")


def test_a_vector_shows_what_its_environments_show_alone() -> None:
    alone = WebEnv("shop")
    expected = [alone.reset(seed=4 + number)[0] for number in range(3)]
    for mode in (None, "async"):
        for envs in batches(vectorization_mode=mode):
            seen, _ = envs.reset(seed=4)
            for number, one in enumerate(expected):
                assert {name: seen[name][number] for name in seen} == one


# --- random agents ---


def test_a_random_agent_fills_in_a_form_and_sends_it() -> None:
    """Among its draws those that leave the page of the form are passed over."""
    env = WebEnv("shop.move", axes=["instance"], max_steps=400)
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(399):
        known = set(env.actions())
        action = env.action_space.sample()
        assert action in known
        links = {e.name: f"click('{e.bid}')" for e in env.action_space.elements if e.role == "link"}
        if not any(element.role == "textbox" for element in env.action_space.elements):
            action = links["My details"]
        elif action in {*links.values(), "go_back()"}:
            continue
        env.step(action)
    run = env._episode.run  # type: ignore[union-attr]
    assert sum(event.kind == "operation" for event in run.events) > 5
    written = {str(value) for change in run.evidence().changes for value in change.after.values()}
    assert written & {word.strip(".,()'") for word in run.goal.split()}, "words of the goal"


def test_a_page_is_rendered_where_pictures_are_asked_for() -> None:
    with closing(WebEnv("shop.price")) as env:
        assert env.render() is None
        env.reset(seed=0)
        assert env.render() is None


@pytest.mark.parametrize(("most", "lengths"), [(1, 2), (4, 5), (100, 13)])
def test_a_drawn_text_has_up_to_twelve_letters(most: int, lengths: int) -> None:
    space = UnicodeText(most, seed=0)
    drawn = [space.sample() for _ in range(300)]
    assert {len(text) for text in drawn} == {*range(lengths)}
    assert all(space.contains(text) for text in drawn)
