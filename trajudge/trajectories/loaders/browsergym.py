"""AgentLab / BrowserGym experiment folders ``<date>_<agent>_on_<task>_<seed>``.

``exp_args.pkl`` names the agent and the task (if it is missing, the folder's name does),
``goal_object.pkl.gz`` the goal, ``step_N.pkl.gz`` has observation, thought and action of step N
with ``screenshot_step_N.png``, ``summary_info.json`` the reward. Pickles are read as data only
(``trajectories.pickles``). The benchmark is the task name up to its first dot. Every run of an
agent on a task, also a crashed one, is an attempt, counted from 0 over the folders in the order of
their names, which begin with dates. A crashed run without a goal gets that of another run of its
task; without one it is Unreadable.

Most agents of AgentLab write the accessibility tree as text in addition to, or instead of, the
object (``axtree_txt``); others may keep only Chromium's object. The text has BrowserGym's form: a
tab for each level, ``[bid] role 'name' value='…', property=…``.

AgentLab looks for ``exp_args.pkl`` at any depth (results/study/experiment, and studies in a study),
follows no links, and skips folders whose names begin with ``_`` or ``.``: the earlier folder of a
repeated experiment is renamed to ``_<name>``. Its tables distinguish agents by ``agent_name`` and
by every argument of the agent that varies; here only the model's name distinguishes agents.

The goal is messages of text and images in OpenAI's format. A run that crashed before its first
observation has none. Its goal is that of another run of its task if the two must be equal: with the
same seed, in a benchmark whose seeds do not change goals, or if at least two other seeds gave the
same one. (MiniWoB and WorkArena draw the goal by the seed.)
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from trajudge.trajectories.actions import last_message_to_user
from trajudge.trajectories.loaders._files import (
    Damaged,
    decode,
    name_of,
    numbers,
    readable,
    reason,
    text,
)
from trajudge.trajectories.loaders._run import (
    RunReader,
    RunSource,
    Values,
    number_attempts,
    read_all,
)
from trajudge.trajectories.model import (
    ImageRef,
    Loaded,
    Observation,
    Step,
    Trajectory,
    TrajectoryKey,
    Want,
    accept_all,
)
from trajudge.trajectories.needs import EVERYTHING, Needs
from trajudge.trajectories.pickles import BadPickle, mapping, number, plain, read_pickle
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder

_REWARDS = ("cum_reward", "cum_raw_reward")


class ExperimentSummary(NamedTuple):
    """The end of a run. ``telemetry`` excludes the reward, so that a model fitted on it cannot
    use the rule-based verdict; its names are the file's without the prefix ``stats.``, and
    ``error`` is 1 if the run ended in one."""

    official_reward: float | None
    terminated: bool | None
    truncated: bool | None
    telemetry: dict[str, float]
    error: str | None


def read_summary(info: Mapping[str, object], values: Values) -> ExperimentSummary:
    """Read the parts of ``summary_info`` that a trajectory keeps; ``values`` records values of a
    wrong type."""
    error = values.text(info.get("err_msg"), "err_msg")
    return ExperimentSummary(
        official_reward=values.number(info.get("cum_reward"), "reward cum_reward"),
        terminated=values.flag(info.get("terminated"), "terminated"),
        truncated=values.flag(info.get("truncated"), "truncated"),
        telemetry={
            name.removeprefix("stats."): value
            for name, value in numbers(info).items()
            if name not in _REWARDS
        }
        | {"error": float(error is not None)},
        error=error,
    )


Node = Mapping[object, object]

_UNSHOWN_ROLES = {"LineBreak"}

_UNSHOWN_PROPERTIES = {
    *("editable", "readonly", "level", "settable", "multiline", "invalid", "focusable"),
}

# Properties that are shown by their name alone, where they hold.
_FLAGS = {"required", "focused", "atomic"}


def tree_text(recorded: object) -> str | None:
    """Write Chromium's tree as text; None for anything else."""
    listed = mapping(recorded).get("nodes")
    nodes = [mapping(node) for node in listed] if isinstance(listed, list | tuple) else []
    by_id = {str(node.get("nodeId")): node for node in nodes[1:]}
    lines = list[str]()
    waiting = [(nodes[0], 0, "")] if nodes else []
    while waiting:
        node, depth, above = waiting.pop()
        name = "" if _role(node) in _UNSHOWN_ROLES else _value(node, "name")
        line = _line(node, name, above)
        if line is not None:
            lines.append("\t" * depth + line)
        listed = node.get("childIds")
        children = [str(child) for child in listed] if isinstance(listed, list | tuple) else []
        # Each node is written once, whatever a damaged file says.
        inside = [child for one in children if (child := by_id.pop(one, None)) is not None]
        deeper = depth if line is None else depth + 1
        waiting += [(child, deeper, str(name or "")) for child in reversed(inside)]
    return text("\n".join(lines))


def _line(node: Node, name: object, above: str) -> str | None:
    """Write a node; None for an uninformative one, such as text that its parent's name contains."""
    role = _role(node)
    if role in _UNSHOWN_ROLES or "name" not in node:
        return None
    properties = _properties(node)
    label = str(name or "")
    if (role == "generic" and not properties) or (role == "StaticText" and label in above):
        return None
    bid, value = plain(node.get("browsergym_id")), _value(node, "value")
    shown = role if role == "generic" and not label else f"{role} {label.strip()!r}"
    shown = shown if bid is None else f"[{bid}] {shown}"
    shown = shown if value is None else f"{shown} value={value!r}"
    return ", ".join([shown, *properties])


def _properties(node: Node) -> list[str]:
    listed = node.get("properties")
    shown = list[str]()
    for each in map(mapping, listed if isinstance(listed, list | tuple) else ()):
        name, value = str(each.get("name")), _value(each, "value")
        if value is None or name in _UNSHOWN_PROPERTIES:
            continue
        if name not in _FLAGS:
            shown.append(f"{name}={value!r}")
        elif value:
            shown.append(name)
    return shown


def _role(node: Node) -> str:
    return str(_value(node, "role"))


def _value(node: Node, name: str) -> object:
    return plain(mapping(node.get(name)).get("value"))


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


@dataclass(frozen=True)
class Experiment:
    """An experiment's folder and its arguments; ``model`` and ``seed`` are None if the arguments
    lack them. ``warnings`` are about unreadable arguments."""

    folder: Path
    agent: str
    task: str
    model: str | None
    seed: int | None
    warnings: tuple[str, ...] = ()


def is_experiment(folder: Path) -> bool:
    """Return True if the folder has one of the files with which every experiment begins."""
    return any((folder / name).is_file() for name in _MARKS)


def holds_experiment(path: Path) -> bool:
    """Return True if the folder is an experiment, has one, or is a study with one in a
    subfolder."""
    if not path.is_dir():
        return False
    levels = _DETECTED_LEVELS if (path / _STUDY).is_file() else 1
    return next(_folders(path, levels), None) is not None


def find_experiments(root: DataFolder) -> list[Experiment]:
    """Return every experiment in the order of the folders' names, which begin with dates.

    Raises UserError without any.
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
    return disambiguate_agents([_experiment(root, folder) for folder in folders])


def disambiguate_agents(experiments: Iterable[Experiment]) -> list[Experiment]:
    """Append the model to an agent's name (``agent-model``) if the name is used for several
    models."""
    experiments = list(experiments)
    models: defaultdict[str, set[str]] = defaultdict(set)
    for experiment in experiments:
        if experiment.model:
            models[experiment.agent].add(experiment.model)
    return [
        replace(experiment, agent=_with_model(experiment))
        if len(models[experiment.agent]) > 1
        else experiment
        for experiment in experiments
    ]


def step_files(folder: Path) -> list[tuple[int, Path]]:
    """List (number, file) of the steps in numeric order."""
    return sorted(
        (int(match[1]), path) for path in folder.iterdir() if (match := _STEP.fullmatch(path.name))
    )


def _experiment(root: DataFolder, folder: Path) -> Experiment:
    """Read the names of agent, task and model, and the seed, from ``exp_args.pkl``, and missing
    ones from the folder's name. The model's name is among the agent's arguments, or among its
    model's."""
    values, content = Values(), None
    warnings = values.warnings
    try:
        content = read_pickle(folder / ARGUMENTS, folder=root)
    except FileNotFoundError:
        warnings.append(f"{ARGUMENTS} is missing.")
    except (BadPickle, OSError) as error:
        warnings.append(f"{ARGUMENTS} is not read: {reason(error)}.")
    agent_args = mapping(mapping(content).get("agent_args"))
    environment = mapping(mapping(content).get("env_args"))
    holders = (agent_args, *(mapping(agent_args.get(name)) for name in _MODEL_ARGUMENTS))
    models = (values.name(holder.get("model_name"), "model_name") for holder in holders)
    name = name_of(folder)
    match = _FOLDER.fullmatch(name)
    agent = values.name(agent_args.get("agent_name"), "agent_name")
    task = values.name(environment.get("task_name"), "task_name")
    # An agent's folder cannot have a slash in its name, so that names are as in paths.
    return Experiment(
        folder=folder,
        agent=(agent or (match["agent"] if match else "unknown")).replace("/", "_"),
        task=task or (match["task"] if match else name),
        model=next(filter(None, models), None),
        seed=values.whole(environment.get("task_seed"), "task_seed"),
        warnings=tuple(warnings),
    )


def _with_model(experiment: Experiment) -> str:
    model = (experiment.model or "").replace("/", "_")
    return (
        experiment.agent
        if not model or experiment.agent.endswith(model)
        else f"{experiment.agent}-{model}"
    )


def _folders(path: Path, levels: int = _LEVELS) -> Iterator[Path]:
    """Yield the path itself if it is an experiment, else those below it, at most ``levels`` deep.

    A link to an experiment outside counts (its reader reports that it leads out); a link to one
    inside does not, because the target is yielded itself.
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


# Their task ids name one goal: a seed only chooses among several tasks of a template.
_SEEDLESS = frozenset(
    {"webarena", "visualwebarena", "webarenalite", "webarena_verified", "assistantbench"}
)

_GOAL = "goal_object.pkl.gz"


class Goal(NamedTuple):
    """Text and images of a goal."""

    text: str
    images: tuple[ImageRef, ...]


class Goals:
    """The goals of experiments in one folder, ``data``."""

    def __init__(self, root: DataFolder, experiments: Iterable[Experiment]) -> None:
        self._data = root
        self._by_folder = {experiment.folder: experiment for experiment in experiments}
        self._by_task: defaultdict[str, list[Experiment]] = defaultdict(list)
        for experiment in self._by_folder.values():
            self._by_task[experiment.task].append(experiment)
        self._told: dict[Path, Goal | None] = {}

    def experiment(self, folder: Path) -> Experiment:
        """Return the experiment of a folder."""
        return self._by_folder[folder]

    def of(self, folder: Path, error: str | None, warnings: list[str]) -> Goal:
        """Return the goal of an experiment, whose run ended with ``error``.

        Raises Damaged if it has none and no other run's goal must be the same.
        """
        own = self._own(folder, warnings)
        if own:
            return own
        if error is None:
            raise Damaged("it has no goal")
        lender = self._lender(self._by_folder[folder])
        goal = self._told[lender] if lender else None
        if lender is None or goal is None:
            raise Damaged(f"it has no goal; the run ended with: {error}")
        warnings.append(
            f"The run crashed before it had a goal: that of {readable(lender.name)} is shown."
        )
        return goal

    def _own(self, folder: Path, warnings: list[str]) -> Goal | None:
        """Read the goal in the experiment's own files. Raises Damaged if none of them is read."""
        problem, goal_object = None, None
        try:
            goal_object = self._pickle(folder / _GOAL)
        except Damaged as error:
            problem = error
        first = step_files(folder)[:1] if not _texts(goal_object, Values()) else []
        observed = mapping(self._pickle(first[0][1])).get("obs") if first else None
        goal_text, images = read_goal(goal_object, mapping(observed), warnings)
        if goal_text or any(image.problem is None for image in images):
            if problem:
                warnings.append(f"The goal is that of the first step: {problem}.")
            return Goal(goal_text or "", images)
        if problem:
            raise problem
        return None

    def _pickle(self, path: Path) -> object:
        try:
            return read_pickle(path, folder=self._data)
        except FileNotFoundError:
            return None
        except BadPickle as error:
            raise Damaged(f"{path.name}: {reason(error)}") from None

    def _lender(self, experiment: Experiment) -> Path | None:
        """Return the folder of another run of the task whose goal must be the same."""
        others = [
            other for other in self._by_task[experiment.task] if self._known(other) is not None
        ]
        same = [o for o in others if o.seed is not None and o.seed == experiment.seed]
        if same or not others:
            return same[0].folder if same else None
        seeds, goals = {o.seed for o in others}, {self._told[o.folder] for o in others}
        fixed = experiment.task.partition(".")[0] in _SEEDLESS or (
            None not in seeds and len(seeds) > 1
        )
        return others[0].folder if fixed and len(goals) == 1 else None

    def _known(self, experiment: Experiment) -> Goal | None:
        if experiment.folder not in self._told:
            try:
                self._told[experiment.folder] = self._own(experiment.folder, [])
            except (Damaged, OSError):
                self._told[experiment.folder] = None
        return self._told[experiment.folder]


def read_goal(
    goal_object: object, first: Mapping[object, object], warnings: list[str]
) -> tuple[str | None, tuple[ImageRef, ...]]:
    """Read text and images of ``goal_object``, or of the first observation without it.

    Images are read from base64 data URLs; nothing is downloaded, and others give a warning and a
    reference with the problem.
    """
    values = Values(warnings)
    parts = plain(goal_object if goal_object else first.get("goal_object"))
    if parts is not None and not isinstance(parts, list | tuple):
        return values.text(parts, "goal_object") or values.text(first.get("goal"), "goal"), ()
    texts = _texts(parts, values)
    images = tuple(_images(parts or (), warnings))
    return "\n".join(texts) or values.text(first.get("goal"), "goal"), images


def _texts(parts: object, values: Values) -> list[str]:
    """Return the texts of a goal's parts; a plain text is a part."""
    texts = []
    for part in values.entries(parts, "goal_object"):
        words = part if isinstance(part, str) else mapping(part).get("text")
        texts.append(values.text(words, "text of goal_object"))
    return [words for words in texts if words]


def _images(parts: list[object] | tuple[object, ...], warnings: list[str]) -> Iterator[ImageRef]:
    for part in parts:
        url = mapping(part).get("image_url")
        url = mapping(url).get("url") if isinstance(url, dict) else url
        if url is None:
            continue
        head, _, encoded = url.partition(",") if isinstance(url, str) else ("", "", "")
        if not (head.startswith("data:image/") and head.endswith(";base64")):
            warnings.append("An image of the goal is not part of the files.")
            yield ImageRef(problem="it is not part of the files")
            continue
        try:
            yield ImageRef(data=base64.b64decode(encoded, validate=True))
        except (binascii.Error, ValueError):
            warnings.append("An image of the goal is not valid base64.")
            yield ImageRef(problem="it is not valid base64")


KIND = "browsergym"

# What an agent says: a message, or (``report_infeasible``) why the task cannot be done.
_SPEAKING = ("assistant", "infeasible")

LEAKS = ("summary_info.json:cum_reward", "step_*.pkl.gz:reward", "step_*.pkl.gz:task_info")

MAX_STEPS = 10_000


def detect(path: Path) -> bool:
    """Return True if the folder is an experiment, has one, or is a study."""
    return holds_experiment(path)


def load(path: Path, want: Want = accept_all, needs: Needs = EVERYTHING) -> Loaded:
    """Yield the experiment, or every one in the folder, in the order of their keys.

    Raises UserError without any.
    """
    root = DataFolder(path)
    experiments = find_experiments(root)
    goals = Goals(root, experiments)
    sources = number_attempts(_source(root, experiment) for experiment in experiments)
    return read_all(sources, lambda run: _read(run, goals), want, needs)


def run_folders(path: Path) -> dict[TrajectoryKey, Path]:
    """Return the experiment's folder of each run that ``load`` yields, by key, for additional
    files of the run. Raises UserError as ``load`` does."""
    root = DataFolder(path)
    sources = number_attempts(_source(root, experiment) for experiment in find_experiments(root))
    return {source.key: source.path for source in sources}


def _source(root: DataFolder, experiment: Experiment) -> RunSource:
    benchmark = experiment.task.partition(".")[0]
    key = TrajectoryKey(benchmark=benchmark, agent=experiment.agent, task_id=experiment.task)
    return RunSource(key, experiment.task, experiment.folder, root)


def _read(run: RunReader, goals: Goals) -> Trajectory:
    experiment = goals.experiment(run.path)
    run.warnings += experiment.warnings
    summary = _summary(run)
    files = _step_files(run.path)
    goal, images = goals.of(run.path, summary.error, run.warnings)
    steps, answer = _steps(run, files)
    run.check_actions(steps)
    return run.trajectory(
        goal,
        steps,
        goal_images=images,
        answer=answer,
        official_reward=summary.official_reward,
        terminated=summary.terminated,
        truncated=summary.truncated,
        telemetry=summary.telemetry,
        metadata={
            "model": experiment.model,
            "seed": experiment.seed,
            "error": summary.error,
        },
    )


def _summary(run: RunReader) -> ExperimentSummary:
    path = run.path / "summary_info.json"
    try:
        if path.exists():
            return read_summary(decode(run.data, path, dict[str, Any]), run)
        problem = "is missing"
    except Damaged as error:
        problem = f"is not read ({reason(error)})"
    run.warnings.append(f"summary_info.json {problem}: the run's reward is not known.")
    return read_summary({}, run)


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


def _steps(run: RunReader, files: list[tuple[int, Path]]) -> tuple[list[Step], str | None]:
    """Decode the steps, one file at a time, and the run's answer."""
    steps, messages = [], None
    has_shots = any(run.path.glob("screenshot_step_*"))
    for index, (step_number, path) in enumerate(files):
        location = f"of {readable(path.name)}"
        try:
            info = mapping(read_pickle(path, folder=run.data))
        except BadPickle as error:
            raise Damaged(f"{readable(path.name)}: {reason(error)}") from None
        observation = mapping(info.get("obs"))
        messages = observation.get("chat_messages") or messages
        thought = mapping(info.get("agent_info")).get("think")
        action = run.text(info.get("action"), "action", location)
        # The run kept screenshots: one of a page that was seen is not missing.
        shot = _screenshot(run, step_number, named=has_shots and bool(observation))
        steps.append(
            Step(
                index=index,
                observation=_observation(run, observation, shot, location),
                reasoning=run.text(thought, "thought", location),
                # Newer releases of AgentLab write a missing action as the word None.
                action=None if action == "None" else action,
            )
        )
    answer = _answer(messages, run) or last_message_to_user(step.action for step in steps)
    return steps, answer


def _observation(
    run: RunReader, observation: Any, shot: ImageRef | None, location: str
) -> Observation:
    axtree = run.text(observation.get("axtree_txt"), "axtree_txt", location)
    error = observation.get("last_action_error")
    return Observation(
        url=_url(run, observation, location),
        axtree=axtree or tree_text(observation.get("axtree_object")),
        screenshot=shot,
        page_error=run.text(error, "last_action_error", location),
    )


def _url(run: RunReader, observation: Any, location: str) -> str | None:
    urls = plain(observation.get("open_pages_urls"))
    active = number(observation.get("active_page_index"))
    if not isinstance(urls, list | tuple) or active is None or not 0 <= active < len(urls):
        return run.text(observation.get("url"), "url", location)
    return run.text(urls[int(active)], "open_pages_urls", location)


def _screenshot(run: RunReader, step_number: int, *, named: bool) -> ImageRef | None:
    shots = [
        run.path / f"screenshot_step_{step_number}{suffix}" for suffix in (".png", ".jpg", ".jpeg")
    ]
    return run.screenshot(next((shot for shot in shots if shot.exists()), shots[0]), named=named)


def _answer(messages: object, values: Values) -> str | None:
    """Return the agent's last message after the user's; the greeting before it does not count."""
    answer, goal_given = None, False
    for message in values.entries(messages, "chat_messages"):
        fields = mapping(message)
        role = values.text(fields.get("role"), "role of a chat message")
        if role == "user":
            goal_given = True
        elif role in _SPEAKING and goal_given:
            answer = values.text(fields.get("message"), "message of the agent")
    return answer
