"""Folders of results as AgentLab leaves them: studies, relaunches, crashes, several models.

``_prepare``, ``_relaunch`` and ``_crash`` do to the disk what AgentLab's ``ExpArgs.prepare``,
``_move_old_exp`` and ``ExpArgs.run`` do.
"""

from __future__ import annotations

import gzip
import json
import pickle
import re
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.trajectories.loaders import made
from tests.trajectories.loaders.made import split
from trajudge.trajectories.loaders import detect_kind
from trajudge.trajectories.loaders.browsergym import detect, load
from trajudge.util.errors import UserError

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
