"""AgentLab / BrowserGym experiment folders ``<date>_<agent>_on_<task>_<seed>``.

``exp_args.pkl`` names the agent and the task (the folder's name does where it is missing),
``goal_object.pkl.gz`` the goal, ``step_N.pkl.gz`` observation, thought and action of step N with
``screenshot_step_N.png``, ``summary_info.json`` the reward. Pickles are read as data only
(``trajectories.pickles.unpickle``). The benchmark is the task name up to its first dot. Every run
of an agent on a task is an attempt, counted from 0 over the folders loaded together in the order of
their names, that is of their dates, runs that crashed included. Of those, one that had no goal yet
gets that of another run of its task (``browsergym_goal``); without one it is Unreadable.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trajudge.trajectories.actions import last_message_to_user
from trajudge.trajectories.loaders.browsergym_experiments import (
    ARGUMENTS,
    Experiment,
    arguments,
    find_experiments,
    holds_experiment,
    read_arguments,
    step_files,
)
from trajudge.trajectories.loaders.browsergym_goal import Goals
from trajudge.trajectories.loaders.browsergym_tree import tree_text
from trajudge.trajectories.loaders.files import (
    Damaged,
    TrajectorySource,
    decode,
    number_attempts,
    read_all,
    readable,
    reason,
    screenshot,
)
from trajudge.trajectories.loaders.summary import ExperimentSummary, read_summary
from trajudge.trajectories.loaders.values import Values
from trajudge.trajectories.loading import Loaded, Want, accept_all
from trajudge.trajectories.model import ImageRef, Observation, Step, Trajectory, TrajectoryKey
from trajudge.trajectories.pickles.objects import BadPickle, mapping, number, plain
from trajudge.trajectories.pickles.unpickle import read_pickle
from trajudge.trajectories.util.safe_files import DataFolder

KIND = "browsergym"
# What an agent says: a message, or (``report_infeasible``) why the task cannot be done.
_SPEAKING = ("assistant", "infeasible")
LEAKS = ("summary_info.json:cum_reward", "step_*.pkl.gz:reward", "step_*.pkl.gz:task_info")
MAX_STEPS = 10_000


def detect(path: Path) -> bool:
    """Tell whether the folder is an experiment, holds one, or is a study."""
    return holds_experiment(path)


def load(path: Path, want: Want = accept_all) -> Loaded:
    """Yield the experiment, or every one below the folder, in the order of their keys.

    Raises UserError if there is none.
    """
    root = DataFolder(path)
    experiments = find_experiments(root)
    goals = Goals(root, experiments)
    sources = number_attempts(_source(root, experiment) for experiment in experiments)
    return read_all(sources, lambda source: _read(source, goals), want)


def run_folders(path: Path) -> dict[TrajectoryKey, Path]:
    """Return the experiment's folder of each run that ``load`` yields, by its key, for what stands
    beside the run's own files. Raises UserError as ``load`` does."""
    root = DataFolder(path)
    sources = number_attempts(_source(root, experiment) for experiment in find_experiments(root))
    return {source.key: source.path for source in sources}


def _source(root: DataFolder, experiment: Experiment) -> TrajectorySource:
    benchmark = experiment.task.partition(".")[0]
    key = TrajectoryKey(benchmark=benchmark, agent=experiment.agent, task_id=experiment.task)
    return TrajectorySource(key, experiment.task, experiment.folder, root)


def _read(source: TrajectorySource, goals: Goals) -> Trajectory:
    warnings: list[str] = []
    values = Values(warnings)
    named = read_arguments(_arguments(source, warnings), values)
    summary = _summary(source, values)
    infos = _step_files(source.path)
    goal, images = goals.of(source.path, summary.error, warnings)
    steps, answer = _steps(source, infos, values)
    values.check_actions(steps)
    return Trajectory(
        key=source.key,
        raw_task_id=source.raw_task_id,
        goal=goal,
        goal_images=images,
        steps=steps,
        answer=answer,
        official_reward=summary.official_reward,
        terminated=summary.terminated,
        truncated=summary.truncated,
        telemetry=summary.telemetry,
        metadata={
            "model": named.model,
            "seed": named.seed,
            "error": summary.error,
            "warnings": [*warnings],
        },
    )


def _arguments(source: TrajectorySource, warnings: list[str]) -> object:
    """Read ``exp_args.pkl``; the folder's name says the same of what is missing or not read."""
    try:
        return arguments(source.data, source.path)
    except FileNotFoundError:
        warnings.append(f"{ARGUMENTS} is missing.")
    except (BadPickle, OSError) as error:
        warnings.append(f"{ARGUMENTS} is not read: {reason(error)}.")
    return None


def _step_info(source: TrajectorySource, path: Path) -> object:
    """Read the content of a step's pickle. Raises Damaged."""
    try:
        return read_pickle(path, folder=source.data)
    except BadPickle as error:
        raise Damaged(f"{readable(path.name)}: {reason(error)}") from None


def _summary(source: TrajectorySource, values: Values) -> ExperimentSummary:
    path = source.path / "summary_info.json"
    try:
        if path.exists():
            return read_summary(decode(source.data, path, dict[str, Any]), values)
        problem = "is missing"
    except Damaged as error:
        problem = f"is not read ({reason(error)})"
    values.warnings.append(f"summary_info.json {problem}: the run's reward is not known.")
    return read_summary({}, values)


def _step_files(folder: Path) -> list[tuple[int, Path]]:
    """List the steps by number. Raises Damaged."""
    files = step_files(folder)
    numbers = {number for number, _ in files}
    lost = next((number for number in range(len(files)) if number not in numbers), None)
    if len(files) > MAX_STEPS:
        raise Damaged(f"it has more than {MAX_STEPS:,} steps")
    if lost is not None:
        raise Damaged(f"step_{lost}.pkl.gz is missing, and later steps are there")
    return files


def _steps(
    source: TrajectorySource, files: list[tuple[int, Path]], values: Values
) -> tuple[tuple[Step, ...], str | None]:
    """Decode the steps, one file at a time, and the run's answer."""
    steps, messages = [], None
    has_shots = any(source.path.glob("screenshot_step_*"))
    for index, (step_number, path) in enumerate(files):
        place = f"of {readable(path.name)}"
        info = mapping(_step_info(source, path))
        observation = mapping(info.get("obs"))
        messages = observation.get("chat_messages") or messages
        thought = mapping(info.get("agent_info")).get("think")
        action = values.text(info.get("action"), "action", place)
        shot = _screenshot(
            source, step_number, values.warnings, named=has_shots and bool(observation)
        )
        steps.append(
            Step(
                index=index,
                observation=_observation(observation, shot, values, place),
                reasoning=values.text(thought, "thought", place),
                # Newer releases of AgentLab write a missing action as the word None.
                action=None if action == "None" else action,
            )
        )
    answer = _answer(messages, values) or last_message_to_user(step.action for step in steps)
    return tuple(steps), answer


def _observation(
    observation: Any, shot: ImageRef | None, values: Values, place: str
) -> Observation:
    axtree = values.text(observation.get("axtree_txt"), "axtree_txt", place)
    error = observation.get("last_action_error")
    return Observation(
        url=_url(observation, values, place),
        axtree=axtree or tree_text(observation.get("axtree_object")),
        screenshot=shot,
        page_error=values.text(error, "last_action_error", place),
    )


def _url(observation: Any, values: Values, place: str) -> str | None:
    urls = plain(observation.get("open_pages_urls"))
    active = number(observation.get("active_page_index"))
    if not isinstance(urls, list | tuple) or active is None or not 0 <= active < len(urls):
        return values.text(observation.get("url"), "url", place)
    return values.text(urls[int(active)], "open_pages_urls", place)


def _screenshot(
    source: TrajectorySource, step_number: int, warnings: list[str], *, named: bool
) -> ImageRef | None:
    """Refer to a step's screenshot; ``named``: the run kept screenshots, so that one of a page that
    was seen is not missing."""
    stem = f"screenshot_step_{step_number}"
    names = [f"{stem}{suffix}" for suffix in (".png", ".jpg", ".jpeg")]
    name = next((name for name in names if (source.path / name).exists()), names[0])
    return screenshot(source.path / name, source.data, warnings, named=named)


def _answer(messages: object, values: Values) -> str | None:
    """Return the agent's last message after the user's; the greeting before it is no answer."""
    answer, goal_given = None, False
    for message in values.entries(messages, "chat_messages"):
        fields = mapping(message)
        role = values.text(fields.get("role"), "role of a chat message")
        if role == "user":
            goal_given = True
        elif role in _SPEAKING and goal_given:
            answer = values.text(fields.get("message"), "message of the agent")
    return answer
