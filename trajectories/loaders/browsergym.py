"""AgentLab / BrowserGym experiment folders ``<date>_<agent>_on_<task>_<seed>``.

``exp_args.pkl`` names the agent and the task (the folder's name does where it is missing),
``goal_object.pkl.gz`` the goal, ``step_N.pkl.gz`` observation, thought and action of step N with
``screenshot_step_N.png``, ``summary_info.json`` the reward. Pickles are read as data only
(``trajectories.unpickle``). The benchmark is the task name up to its first dot. Every run of an
agent on a task is an attempt, counted from 0 over the folders loaded together in the order of
their names, that is of their dates, runs that crashed included. A run without a goal is
Unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from trajectories.actions import last_message_to_user
from trajectories.inert import BadPickle, mapping, number
from trajectories.loaders import accept_all
from trajectories.loaders.browsergym_goal import read_goal
from trajectories.loaders.files import (
    Damaged,
    Source,
    any_subfolder,
    decode,
    name_of,
    number_attempts,
    read_all,
    reason,
    screenshot,
    subfolders,
    text,
)
from trajectories.loaders.summary import Summary, read_summary
from trajectories.model import ImageRef, Observation, Step, Trajectory, TrajectoryKey, Unreadable
from trajectories.unpickle import read_pickle

KIND = "browsergym"
MAX_STEPS = 10_000
_STEP = re.compile(r"step_(\d{1,6})\.pkl\.gz")
_FOLDER = re.compile(r"(?:[\d-]+_[\d-]+_)?(?P<agent>.+)_on_(?P<task>.+)_(?P<seed>[^_]+)")


def detect(path: Path) -> bool:
    """Whether the folder is an experiment folder or holds one."""
    return any_subfolder(path, _is_experiment)


def load(
    path: Path, want: Callable[[TrajectoryKey], bool] = accept_all
) -> Iterator[Trajectory | Unreadable]:
    """The experiment folder, or every one directly inside, in the order of their keys.

    Raises UserError if there is none.
    """
    folders = subfolders(path, _is_experiment, KIND, "experiment folders with step_0.pkl.gz")
    return read_all(number_attempts(_source(folder) for folder in folders), _read, want)


def _is_experiment(folder: Path) -> bool:
    names = ("exp_args.pkl", "goal_object.pkl.gz", "step_0.pkl.gz")
    return any((folder / name).is_file() for name in names)


def _source(folder: Path) -> Source:
    name = name_of(folder)
    try:
        arguments = mapping(read_pickle(folder / "exp_args.pkl"))
    except (BadPickle, OSError):
        arguments = {}  # ``_read`` says what is wrong with it
    match = _FOLDER.fullmatch(name)
    agent = text(mapping(arguments.get("agent_args")).get("agent_name"))
    task = text(mapping(arguments.get("env_args")).get("task_name"))
    agent = agent or (match["agent"] if match else "unknown")
    task = task or (match["task"] if match else name)
    # An agent's folder has no slash in its name: agents are called there as in their paths.
    key = TrajectoryKey(
        benchmark=task.partition(".")[0], agent=agent.replace("/", "_"), task_id=task
    )
    return Source(key, task, folder)


def _read(source: Source) -> Trajectory:
    folder = source.path
    warnings: list[str] = []
    arguments = _pickle(folder / "exp_args.pkl", warnings)
    summary = _summary(folder, warnings)
    infos = _step_files(folder, warnings)
    first = mapping(_pickle(infos[0][1], warnings)) if infos else {}
    goal_object = _pickle(folder / "goal_object.pkl.gz", [])
    goal, images = read_goal(goal_object, mapping(first.get("obs")), warnings)
    if goal is None and not images:
        ending = f"; the run ended with: {summary.error}" if summary.error else ""
        raise Damaged(f"it has no goal{ending}")
    steps, answer = _steps(folder, infos, warnings)
    environment = mapping(mapping(arguments).get("env_args"))
    model = mapping(mapping(arguments).get("agent_args")).get("model_name")
    seed = environment.get("task_seed")
    return Trajectory(
        key=source.key,
        raw_task_id=source.raw_task_id,
        goal=goal or "",
        goal_images=images,
        steps=steps,
        answer=answer,
        official_reward=summary.official_reward,
        terminated=summary.terminated,
        truncated=summary.truncated,
        telemetry=summary.telemetry,
        metadata={
            "model": text(model),
            "seed": seed if isinstance(seed, int) else None,
            "error": summary.error,
            "warnings": [*warnings],
        },
    )


def _pickle(path: Path, warnings: list[str]) -> object:
    """The content of a pickle; None with a warning if there is no such file. Raises Damaged."""
    try:
        return read_pickle(path)
    except FileNotFoundError:
        warnings.append(f"{path.name} is missing.")
        return None
    except BadPickle as error:
        raise Damaged(f"{path.name}: {reason(error)}") from None


def _summary(folder: Path, warnings: list[str]) -> Summary:
    path = folder / "summary_info.json"
    if not path.exists():
        warnings.append("summary_info.json is missing: the run's reward is not known.")
        return read_summary({})
    return read_summary(decode(path, dict[str, Any]))


def _step_files(folder: Path, warnings: list[str]) -> list[tuple[int, Path]]:
    """(number, file) of the steps in the order of their numbers, not of their names."""
    found = sorted(
        (int(match[1]), path) for path in folder.iterdir() if (match := _STEP.fullmatch(path.name))
    )
    if len(found) > MAX_STEPS:
        raise Damaged(f"it has more than {MAX_STEPS:,} steps")
    if [number for number, _ in found] != list(range(len(found))):
        warnings.append("The numbers of the steps have gaps.")
    return found


def _steps(
    folder: Path, files: list[tuple[int, Path]], warnings: list[str]
) -> tuple[tuple[Step, ...], str | None]:
    """The steps, one file decoded at a time, and the run's answer."""
    steps, messages = [], None
    for index, (step_number, path) in enumerate(files):
        info = mapping(_pickle(path, warnings))
        observation = mapping(info.get("obs"))
        messages = observation.get("chat_messages") or messages
        thought = mapping(info.get("agent_info")).get("think")
        steps.append(
            Step(
                index=index,
                observation=_observation(observation, folder, step_number, warnings),
                reasoning=text(thought),
                action=text(info.get("action")),
            )
        )
    return tuple(steps), _answer(messages) or last_message_to_user(step.action for step in steps)


def _observation(
    observation: Any, folder: Path, step_number: int, warnings: list[str]
) -> Observation:
    return Observation(
        url=_url(observation),
        axtree=text(observation.get("axtree_txt")),
        screenshot=_screenshot(folder, step_number, warnings),
        page_error=text(observation.get("last_action_error")),
    )


def _url(observation: Any) -> str | None:
    urls, active = observation.get("open_pages_urls"), number(observation.get("active_page_index"))
    if not isinstance(urls, list | tuple) or active is None or not 0 <= active < len(urls):
        return text(observation.get("url"))
    return text(urls[int(active)])


def _screenshot(folder: Path, step_number: int, warnings: list[str]) -> ImageRef | None:
    stem = f"screenshot_step_{step_number}"
    names = [f"{stem}{suffix}" for suffix in (".png", ".jpg", ".jpeg")]
    name = next((name for name in names if (folder / name).exists()), names[0])
    return screenshot(folder / name, folder, warnings)


def _answer(messages: object) -> str | None:
    """The agent's last message after the user's; the greeting before it is no answer."""
    answer, asked = None, False
    for message in messages if isinstance(messages, list | tuple) else ():
        fields = mapping(message)
        if fields.get("role") == "user":
            asked = True
        elif fields.get("role") == "assistant" and asked:
            answer = text(fields.get("message"))
    return answer
