"""BrowserGym: folders of its own, accessibility trees, and AgentLab studies."""

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
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trajectories.loaders import made
from tests.trajectories.loaders.made import PNG, browsergym, only, split
from trajudge.trajectories.loaders import detect_kind
from trajudge.trajectories.loaders.browsergym import detect, load, tree_text
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


@pytest.mark.parametrize(("most", "read"), [(4, 1), (3, 0)])
def test_as_many_steps_as_the_limit_are_read(
    most: int, read: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trajudge.trajectories.loaders.browsergym.MAX_STEPS", most)
    browsergym(tmp_path / NAME, steps=4)
    runs, unread = split(load(tmp_path))
    assert len(runs) == read
    assert [one.reason for one in unread] == ["it has more than 3 steps"] * (1 - read)


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


def test_a_folder_that_is_not_there_is_the_users_mistake(tmp_path: Path) -> None:
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


def _node(number: int, role: str, *children: int, name: str | None = "", **more: Any) -> Any:
    named = {} if name is None else {"name": {"value": name}}
    ids = [str(child) for child in children]
    return {"nodeId": str(number), "role": {"value": role}, "childIds": ids, **named, **more}


def _property(name: str, value: object) -> dict[str, object]:
    return {"name": name, "value": {"type": "x", "value": value}}


TREE = {
    "nodes": [
        _node(1, "RootWebArea", 2, 5, 8, 99, name="Té", properties=[_property("focused", True)]),
        _node(2, "heading", 3, name=" Hot tea ", properties=[_property("level", 1)]),
        _node(3, "StaticText", name="Hot tea"),
        _node(5, "generic", 6),
        _node(6, "textbox", 7, name="Name", value={"value": "x\ny"}, browsergym_id="a6"),
        _node(7, "StaticText", name="x"),
        _node(8, "none", 9, name=None),
        _node(9, "button", 1, name="Go", properties=[_property("disabled", True)]),
    ]
}
TEXT = """\
RootWebArea 'Té', focused
\theading 'Hot tea'
\t[a6] textbox 'Name' value='x\\ny'
\t\tStaticText 'x'
\tbutton 'Go', disabled=True"""


def test_a_tree_is_written_in_browsergyms_form_and_once_where_it_holds_itself() -> None:
    assert tree_text(TREE) == TEXT


@pytest.mark.parametrize("value", [None, {}, {"nodes": []}, {"nodes": [3]}, {"nodes": "ab"}])
def test_what_is_no_tree_has_no_text(value: object) -> None:
    assert tree_text(value) is None


def test_a_step_without_the_text_shows_the_object(tmp_path: Path) -> None:
    folder = tmp_path / "2025-01-01_00-00-00_A_on_webarena.3_5"
    seen = {"chat_messages": [], "axtree_object": TREE, "last_action_error": ""}
    [run], [] = split(load(browsergym(folder, steps=2, told={"obs": seen})))
    assert [(step.observation.axtree or "")[:11] for step in run.steps] == ["RootWebArea"] * 2


_SECONDS = count()
DAY = "2025-03-04"


def _study(root: Path, name: str = "GenericAgent_on_webarena") -> Path:
    folder = root / f"{DAY}_00-00-00_{name}"
    folder.mkdir(parents=True)
    (folder / "study.pkl.gz").write_bytes(gzip.compress(pickle.dumps({"name": name})))
    return folder


def _prepare(study: Path, agent: str = "A", task: str = "webarena.3", **options: Any) -> Path:
    """A run that went well, under the name that AgentLab gives it."""
    minute, second = divmod(next(_SECONDS) % 3600, 60)
    exp_name = f"{agent}_on_{task}_{options.get('seed', 5)}"
    safe = re.sub(r"[\/:*?<>|]", "_", exp_name)
    name = f"{DAY}_01-{minute:02}-{second:02}_{safe}"
    return made.browsergym(study / name, agent=agent, task=task, steps=2, **options)


def _crash(folder: Path, message: str = "Page.goto: Timeout") -> Path:
    """The browser did not come up: a first step without an observation, and the error."""
    for path in folder.iterdir():
        if path.name != "exp_args.pkl":
            path.unlink()
    step = made.instance("browsergym_made.loop.StepInfo", step=0, obs=None, agent_info={})
    (folder / "step_0.pkl.gz").write_bytes(gzip.compress(pickle.dumps(vars(step), 4)))
    summary = {"n_steps": 0, "cum_reward": 0, "cum_raw_reward": 0, "err_msg": message}
    summary |= {"stack_trace": "...", "stats.cum_steps": 1, "terminated": None, "truncated": None}
    (folder / "summary_info.json").write_text(json.dumps(summary, indent=4))
    return folder


def _relaunch(folder: Path, **options: Any) -> Path:
    folder.rename(folder.with_name("_" + folder.name))
    return _prepare(folder.parent, **options)


def test_an_experiment_that_was_run_again_counts_once(tmp_path: Path) -> None:
    study = _study(tmp_path)
    first = _crash(_prepare(study))
    again = _relaunch(_relaunch(first, cum_reward=0.25), cum_reward=0.75)
    assert sum(path.is_dir() for path in study.iterdir()) == 3
    for path in (tmp_path, study, again):
        [run], [] = split(load(path))
        assert (run.official_reward, run.key.attempt, run.metadata["error"]) == (0.75, 0, None)


def test_what_is_hidden_is_read_where_it_is_named(tmp_path: Path) -> None:
    study = _study(tmp_path)
    _prepare(study)
    hidden = study / "_old"
    next(path for path in study.iterdir() if path.is_dir()).rename(hidden)
    assert not detect(study)
    with pytest.raises(UserError, match="begin with _ were run again"):
        load(study)
    [run], [] = split(load(hidden))
    assert run.key.task_id == "webarena.3"


def test_studies_are_found_at_any_depth(tmp_path: Path) -> None:
    """Results hold studies; a study of several agents holds a study for each."""
    results = tmp_path / "agentlab_results"
    _prepare(_study(results, "A_on_webarena"), task="webarena.1")
    both = _study(results, "2_agents_on_webarena")
    for agent in ("B", "C"):
        _prepare(_study(both, f"{agent}_on_webarena"), agent=agent, task="webarena.2")
    _prepare(_study(results / "_archive", "A_on_webarena"), task="webarena.3")
    (both / "result_df.csv").write_text("a\n")
    runs, [] = split(load(results))
    assert [str(run.key) for run in runs] == [
        "webarena/A/webarena.1",
        "webarena/B/webarena.2",
        "webarena/C/webarena.2",
    ]
    for path in (results, both, both / f"{DAY}_00-00-00_B_on_webarena"):
        assert detect_kind(path) == "browsergym"


def test_attempts_count_by_date_over_all_studies(tmp_path: Path) -> None:
    later, earlier = _study(tmp_path, "a_later"), _study(tmp_path, "b_earlier")
    _prepare(earlier, cum_reward=0.25)
    _prepare(later, cum_reward=0.5)
    _prepare(earlier, cum_reward=0.75)
    runs, [] = split(load(tmp_path))
    assert [(run.key.attempt, run.official_reward) for run in runs] == [
        (0, 0.25),
        (1, 0.5),
        (2, 0.75),
    ]


@pytest.mark.parametrize("holder", [None, "chat_model_args", "model_args"])
def test_two_models_under_one_name_are_two_agents(holder: str | None, tmp_path: Path) -> None:
    """AgentLab's most_basic_agent has one name whatever the model."""
    study = _study(tmp_path)
    for model in ("openai/gpt-4o", "claude-3.7"):
        _prepare(study, "most_basic_agent", model=model, holder=holder)
        _prepare(study, f"GenericAgent-{model}", model=model, holder=holder)
    runs, [] = split(load(tmp_path))
    assert [(run.key.agent, run.key.attempt, run.metadata["model"]) for run in runs] == [
        ("GenericAgent-claude-3.7", 0, "claude-3.7"),
        ("GenericAgent-openai_gpt-4o", 0, "openai/gpt-4o"),
        ("most_basic_agent-claude-3.7", 0, "claude-3.7"),
        ("most_basic_agent-openai_gpt-4o", 0, "openai/gpt-4o"),
    ]


def test_one_model_leaves_the_agents_name_as_it_is(tmp_path: Path) -> None:
    study = _study(tmp_path)
    _prepare(study, "most_basic_agent", holder="chat_model_args")
    _prepare(study, "most_basic_agent", holder="chat_model_args")
    runs, [] = split(load(study))
    assert [str(run.key) for run in runs] == [
        "webarena/most_basic_agent/webarena.3",
        "webarena/most_basic_agent/webarena.3#1",
    ]


def test_a_crashed_run_counts_with_the_goal_of_another_run_of_the_task(tmp_path: Path) -> None:
    study = _study(tmp_path)
    _crash(_prepare(study, "A", seed=1))
    lender = _prepare(study, "B", seed=2)
    [crashed, other], [] = split(load(study))
    assert (str(crashed.key), crashed.goal) == ("webarena/A/webarena.3", other.goal)
    assert crashed.official_reward == 0
    assert crashed.metadata["error"] == "Page.goto: Timeout"
    assert crashed.metadata["warnings"] == [
        f"The run crashed before it had a goal: that of {lender.name} is shown.",
        "The screenshot screenshot_step_0.png is missing.",
    ]


def _goal(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


@pytest.mark.parametrize(
    ("others", "goal"),
    [
        ([], None),
        ([(2, "Buy tea")], None),
        ([(1, "Buy milk"), (2, "Buy tea")], "Buy milk"),
        ([(2, "Buy tea"), (3, "Buy tea")], "Buy tea"),
        ([(2, "Buy tea"), (3, "Buy milk")], None),
    ],
    ids=["alone", "another seed", "the same seed", "seeds that agree", "seeds that do not"],
)
def test_where_seeds_draw_the_goal_it_is_lent_only_if_it_must_be_the_same(
    others: list[tuple[int, str]], goal: str | None, tmp_path: Path
) -> None:
    study, task = _study(tmp_path), "miniwob.click-menu"
    crashed = _crash(_prepare(study, "A", task, seed=1))
    for seed, text in others:
        _prepare(study, "B", task, seed=seed, goal=_goal(text))
    runs, unread = split(load(study))
    if goal is None:
        assert len(runs) == len(others)
        [bad] = unread
        assert (bad.source, bad.key and bad.key.agent) == (str(crashed), "A")
        assert bad.reason == "it has no goal; the run ended with: Page.goto: Timeout"
    else:
        assert [run.goal for run in runs if run.key.agent == "A"] == [goal]


def test_a_run_that_has_not_begun_is_no_crash(tmp_path: Path) -> None:
    """AgentLab writes the arguments of all experiments before it runs the first."""
    study = _study(tmp_path)
    waiting = _prepare(study, "A")
    for path in waiting.iterdir():
        if path.name != "exp_args.pkl":
            path.unlink()
    _prepare(study, "B")
    [run], [bad] = split(load(study))
    assert run.key.agent == "B"
    assert (bad.source, bad.reason) == (str(waiting), "it has no goal")


def test_a_link_to_an_experiment_elsewhere_is_named_and_not_read(tmp_path: Path) -> None:
    study = _study(tmp_path)
    inside = _prepare(study, "A")
    outside = _prepare(tmp_path / "elsewhere", "B")
    (study / outside.name).symlink_to(outside)
    (study / "again").symlink_to(inside.name)
    [run], [bad] = split(load(study))
    assert run.key.agent == "A"
    assert bad.source == str(study / outside.name)
    assert "leads out of the data folder" in bad.reason


def test_a_folder_of_several_kinds_of_data_is_none_of_them(tmp_path: Path) -> None:
    _prepare(tmp_path / "browsergym")
    made.webvoyager(tmp_path / "webvoyager" / "taskTea--1")
    with pytest.raises(
        UserError, match=r"is a folder of data: name one in it, such as browsergym:.*webvoy"
    ):
        detect_kind(tmp_path)


def test_results_published_beside_judgments_are_no_judgments(tmp_path: Path) -> None:
    """AgentRewardBench's own layout: published/<judge>/results.json lies as deep below the parent
    as judgments lie below theirs."""
    for folder in ("set", "other"):
        published = tmp_path / folder / "published" / "webjudge-7b"
        published.mkdir(parents=True)
        (published / "results.json").write_text('{"y_human": [1], "y_judge": [0]}')
        (published / "agreement_rate.json").write_text("{}")
    made.judgment(tmp_path / "set")
    assert detect_kind(tmp_path / "set") == "agentrewardbench-text"
    with pytest.raises(UserError, match=r"name one in it, such as agentrewardbench-text:.*set"):
        detect_kind(tmp_path)
    (tmp_path / "set" / "judgments").rename(tmp_path / "set" / "renamed")
    assert detect_kind(tmp_path / "set" / "renamed") == "agentrewardbench-text"
    with pytest.raises(UserError, match=r"no known format|name one of"):
        detect_kind(tmp_path / "other")


@pytest.mark.real_data
def test_the_folder_of_all_real_data_is_named_part_by_part(real_data: Path) -> None:
    with pytest.raises(UserError, match=r"agentrewardbench-text:.*browsergym:.*webvoyager:"):
        detect_kind(real_data)
