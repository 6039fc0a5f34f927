"""Labels, rewards and groups of the trajectories, as arrays that all judges share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from trajudge.annotations.agentrewardbench import benchmark_of, family_of
from trajudge.eval.data.index.columns import UNKNOWN, VERDICTS
from trajudge.eval.data.index.keys import Codes, KeyColumns, distinct, joined, marked, places_among
from trajudge.eval.data.index.labels import LabelColumns, RewardColumns
from trajudge.eval.scoring.records import LABELS, Label
from trajudge.eval.stats.interval import Bools, Floats, Ints
from trajudge.trajectories.model import TrajectoryKey
from trajudge.trajectories.util.terminal import count_of

__all__ = ["UNKNOWN", "ReferenceLabels"]

Name = TypeVar("Name", str, tuple[str, str])


@dataclass(frozen=True, eq=False)
class ReferenceLabels:
    """Arrays of one shape (T,), one entry a trajectory in the order of ``keys``.

    ``benchmark`` and ``agent`` index the names in ``benchmarks`` and ``agents``; ``task`` is a
    number of its own for every task of a benchmark, or every family of them. ``labels`` are the
    expert's, 1, 0 or UNKNOWN by name, which is all that a trajectory that is not ``annotated`` has;
    ``reward`` is nan where unknown; ``in_run`` tells which have one, or are said to have none.
    ``judged`` (N,) are the places of the keys that it was made of. ``weight`` is one over the
    probability with which a label's trajectory was drawn, in proportion to their mean; 1 where all
    were drawn alike.
    """

    keys: KeyColumns
    benchmarks: tuple[str, ...]
    agents: tuple[str, ...]
    benchmark: Codes
    agent: Codes
    task: Codes
    annotated: Bools
    labels: Mapping[Label, NDArray[np.int8]]
    reward: Floats
    in_run: Bools
    judged: Codes
    weight: Floats

    @classmethod
    def of(
        cls, judged: KeyColumns, labels: LabelColumns, rewards: RewardColumns
    ) -> ReferenceLabels:
        """Look up the labels and the official rewards of the trajectories that were judged, and
        of those that have a reward. Raises UserError where only some of the labels tell how
        they were drawn."""
        keys, place = distinct(joined([judged, rewards.keys, labels.keys]))
        size, known = len(keys), len(judged) + len(rewards.keys)
        expert = np.full((len(VERDICTS), size), UNKNOWN, dtype=np.int8)
        expert[:, place[known:]] = labels.verdicts
        reward = np.full(size, np.nan)
        reward[place[len(judged) : known]] = rewards.reward
        weight = np.ones(size)
        weight[place[known:]] = labels.weights()
        annotated = marked(size, place[known:])
        in_run = marked(size, place[len(judged) : known])
        wanted = marked(size, place[:known])
        number = np.cumsum(wanted, dtype=np.int32) - 1
        where = number[place[: len(judged)]]
        del place, number
        keys = keys.at(wanted)
        benchmarks, benchmark, task = _groups(keys)
        return cls(
            keys=keys,
            benchmarks=benchmarks,
            agents=keys.agents,
            benchmark=benchmark,
            agent=keys.agent,
            task=task,
            annotated=annotated[wanted],
            labels={label: expert[VERDICTS.index(label)][wanted] for label in LABELS},
            reward=reward[wanted],
            in_run=in_run[wanted],
            judged=where,
            weight=weight[wanted],
        )

    @cached_property
    def index(self) -> Mapping[TrajectoryKey, int]:
        """Find a trajectory's place by its key, in the order of keys."""
        return {key: place for place, key in enumerate(self.keys)}

    @cached_property
    def is_weighted(self) -> bool:
        """Tell whether some labels were more likely to be drawn than others."""
        return bool((self.weight != 1).any())

    def __len__(self) -> int:
        return len(self.keys)

    def places(self, keys: KeyColumns) -> Ints:
        """Find the trajectories of ``keys`` (N,); -1 for one that is not here."""
        return places_among(keys, self.keys)


def _groups(keys: KeyColumns) -> tuple[tuple[str, ...], Codes, Codes]:
    """Return the names of the benchmarks to report under, the benchmark of every trajectory among
    them, and its task's number; looked up once a task."""
    pair = keys.benchmark.astype(np.int64) * len(keys.tasks) + keys.task
    _, first, which = np.unique(pair, return_index=True, return_inverse=True)
    families = [(benchmark_of(key), family_of(key)) for key in map(keys.key, first.tolist())]
    benchmarks, benchmark = _codes([name for name, _ in families])
    _, task = _codes(families)
    return benchmarks, benchmark[which], task[which]


def _codes(names: list[Name]) -> tuple[tuple[Name, ...], Codes]:
    """Return the distinct names in order, and the index of each among them."""
    distinct_names = sorted(set(names))
    code = {name: number for number, name in enumerate(distinct_names)}
    return tuple(distinct_names), np.array([code[name] for name in names], dtype=np.int32)


def reward_notes(rewards: Floats) -> list[str]:
    """Say how many of the official rewards (T,), nan where unknown, are on another scale than the
    rule-based baseline reads."""
    outside = rewards[(rewards < 0) | (rewards > 1)]
    if not len(outside):
        return []
    known = count_of(int((~np.isnan(rewards)).sum()), "official reward")
    return [
        f"warning: rule-based: {len(outside)} of {known} not between 0 and 1, such as "
        f"{outside[0]:g}: above 0.5 counts as success, therefore scale them in the data"
    ]
