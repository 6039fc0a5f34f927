"""The goal of a BrowserGym run: messages of text and images in the OpenAI form.

A run that crashed before its first observation has none. Its goal is that of another run of its
task where the two must be equal: with the same seed, in a benchmark whose seeds change no goal, or
where at least two other seeds gave the same one. (MiniWoB and WorkArena draw the goal by the seed.)
"""

from __future__ import annotations

import base64
import binascii
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from trajudge.trajectories.loaders.browsergym_experiments import Experiment, step_files
from trajudge.trajectories.loaders.files import Damaged, readable, reason
from trajudge.trajectories.loaders.values import Values
from trajudge.trajectories.model import ImageRef
from trajudge.trajectories.pickles.objects import BadPickle, mapping, plain
from trajudge.trajectories.pickles.unpickle import read_pickle
from trajudge.trajectories.util.safe_files import DataFolder

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
    """The goals of experiments that lie together; ``data`` is their folder."""

    def __init__(self, root: DataFolder, experiments: Iterable[Experiment]) -> None:
        self._data = root
        self._by_folder = {experiment.folder: experiment for experiment in experiments}
        self._by_task: defaultdict[str, list[Experiment]] = defaultdict(list)
        for experiment in self._by_folder.values():
            self._by_task[experiment.task].append(experiment)
        self._told: dict[Path, Goal | None] = {}

    def of(self, folder: Path, error: str | None, warnings: list[str]) -> Goal:
        """Return the goal of an experiment, whose run ended with ``error``.

        Raises Damaged if it has none and none of another run's can stand for it.
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
        first = step_files(folder)[:1] if not _texts(goal_object, Values([])) else []
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
        """Find the folder of another run of the task whose goal must be the same."""
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
    """Read text and images of ``goal_object``, or of the first observation where that is missing.

    Images are read from base64 data URLs; nothing is fetched, and others leave a warning and a
    reference that holds the problem.
    """
    values = Values(warnings)
    parts = plain(goal_object if goal_object else first.get("goal_object"))
    if parts is not None and not isinstance(parts, list | tuple):
        return values.text(parts, "goal_object") or values.text(first.get("goal"), "goal"), ()
    texts = _texts(parts, values)
    images = tuple(_images(parts or (), warnings))
    return "\n".join(texts) or values.text(first.get("goal"), "goal"), images


def _texts(parts: object, values: Values) -> list[str]:
    """Return the texts among the parts of a goal; a part that is a text alone is one."""
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
