"""Which experiments a folder holds, found and told apart as AgentLab does it.

AgentLab looks for ``exp_args.pkl`` at any depth (results/study/experiment, and studies in a
study), follows no link on the way, and passes over folders whose names begin with ``_`` or ``.``:
an experiment that was run again had its earlier folder renamed to ``_<name>``. Its tables then
tell agents apart by ``agent_name`` and by every argument of the agent that varies; here the
model's name is the one that makes another agent.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from trajudge.trajectories.loaders.files import name_of
from trajudge.trajectories.loaders.values import Values
from trajudge.trajectories.pickles.objects import BadPickle, mapping
from trajudge.trajectories.pickles.unpickle import read_pickle
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import DataFolder

ARGUMENTS = "exp_args.pkl"
_STUDY = "study.pkl.gz"
_MARKS = (ARGUMENTS, "goal_object.pkl.gz", "step_0.pkl.gz")
# Of the date and time that a name may begin with, then what the experiment is of.
_FOLDER = re.compile(r"(?:[\d-]+_[\d-]+_)?(?P<agent>.+)_on_(?P<task>.+)_(?P<seed>[^_]+)")
_STEP = re.compile(r"step_(\d{1,6})\.pkl\.gz")
# A study of studies holds its experiments two levels down.
_DETECTED_LEVELS = 3
_LEVELS = 32
_HIDDEN = ("_", ".")
_MODEL_ARGUMENTS = ("chat_model_args", "model_args")


class Experiment(NamedTuple):
    """An experiment's folder and what its arguments say; None for what they do not."""

    folder: Path
    agent: str
    task: str
    model: str | None
    seed: int | None


def is_experiment(folder: Path) -> bool:
    """Tell whether the folder holds one of the files that every experiment begins with."""
    return any((folder / name).is_file() for name in _MARKS)


def holds_experiment(path: Path) -> bool:
    """Tell whether the folder is an experiment, holds one, or is a study with one further down."""
    if not path.is_dir():
        return False
    levels = _DETECTED_LEVELS if (path / _STUDY).is_file() else 1
    return next(_folders(path, levels), None) is not None


def find_experiments(root: DataFolder) -> list[Experiment]:
    """Find every experiment in the order of their folders' names, that is of their dates.

    Raises UserError if there is none.
    """
    if not root.path.is_dir():
        raise UserError(
            f"{root.path} is no folder: --data browsergym:PATH needs experiment folders or studies"
        )
    try:
        folders = sorted(_folders(root.path), key=lambda folder: (folder.name, folder))
    except OSError as error:
        raise UserError(f"{error.filename} cannot be listed ({error.strerror})") from None
    if not folders:
        raise UserError(
            f"{root.path} holds no browsergym trajectory: --data browsergym:PATH needs experiment "
            "folders with step_0.pkl.gz (those whose names begin with _ were run again elsewhere)"
        )
    return told_apart([_experiment(root, folder) for folder in folders])


def told_apart(experiments: Iterable[Experiment]) -> list[Experiment]:
    """Append the model to an agent's name (``agent-model``) where it stands for several models."""
    experiments = list(experiments)
    models: defaultdict[str, set[str]] = defaultdict(set)
    for experiment in experiments:
        if experiment.model:
            models[experiment.agent].add(experiment.model)
    return [
        experiment._replace(agent=_with_model(experiment))
        if len(models[experiment.agent]) > 1
        else experiment
        for experiment in experiments
    ]


def arguments(root: DataFolder, folder: Path) -> object:
    """Read the content of ``exp_args.pkl``. Raises BadPickle, OSError."""
    return read_pickle(folder / ARGUMENTS, folder=root)


def step_files(folder: Path) -> list[tuple[int, Path]]:
    """List (number, file) of the steps in the order of their numbers, not of their names."""
    return sorted(
        (int(match[1]), path) for path in folder.iterdir() if (match := _STEP.fullmatch(path.name))
    )


class Arguments(NamedTuple):
    """What ``exp_args.pkl`` says; None for what it does not."""

    agent: str | None
    task: str | None
    model: str | None
    seed: int | None


def read_arguments(content: object, values: Values) -> Arguments:
    """Read the names of agent, task and model, and the seed. The model's name stands among the
    agent's arguments, or in those of its model."""
    agent_args = mapping(mapping(content).get("agent_args"))
    environment = mapping(mapping(content).get("env_args"))
    holders = (agent_args, *(mapping(agent_args.get(name)) for name in _MODEL_ARGUMENTS))
    models = (values.name(holder.get("model_name"), "model_name") for holder in holders)
    return Arguments(
        agent=values.name(agent_args.get("agent_name"), "agent_name"),
        task=values.name(environment.get("task_name"), "task_name"),
        model=next(filter(None, models), None),
        seed=values.whole(environment.get("task_seed"), "task_seed"),
    )


def _experiment(root: DataFolder, folder: Path) -> Experiment:
    name = name_of(folder)
    try:
        content = arguments(root, folder)
        read = read_arguments(content, Values([]))
    except (BadPickle, OSError):
        read = Arguments(None, None, None, None)  # whoever reads the run says what is wrong
    match = _FOLDER.fullmatch(name)
    agent = read.agent or (match["agent"] if match else "unknown")
    task = read.task or (match["task"] if match else name)
    # An agent's folder has no slash in its name: agents are called there as in their paths.
    return Experiment(folder, agent.replace("/", "_"), task, read.model, read.seed)


def _with_model(experiment: Experiment) -> str:
    model = (experiment.model or "").replace("/", "_")
    return (
        experiment.agent
        if not model or experiment.agent.endswith(model)
        else f"{experiment.agent}-{model}"
    )


def _folders(path: Path, levels: int = _LEVELS) -> Iterator[Path]:
    """Yield the path itself if it is an experiment, else those below it, at most ``levels`` deep.

    A link to an experiment elsewhere counts (whoever reads it says that it leads out); one to a
    place inside does not: what it shows is found there.
    """
    if is_experiment(path):
        yield path
        return
    if levels == 0:
        return
    root = DataFolder(path)
    with os.scandir(path) as entries:
        children = sorted(entry.name for entry in entries if entry.is_dir())
    for name in children:
        child = path / name
        if name.startswith(_HIDDEN):
            continue
        if not child.is_symlink():
            yield from _folders(child, levels - 1)
        elif is_experiment(child) and not root.holds(child):
            yield child
