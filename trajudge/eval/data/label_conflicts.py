"""Whether several runs hold the same labels of their trajectories."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from trajudge.annotations.model import Labels
from trajudge.eval.data.index.keys import distinct, joined
from trajudge.eval.data.index.labels import LabelColumns
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.terminal import count_of


def refuse_conflicts(labels: Iterable[tuple[str, Labels]]) -> None:
    """Raise UserError where two of them, each by the name of its run, hold different labels of a
    trajectory: what is scored would depend on the order in which the runs are given."""
    named = [(name, LabelColumns.of(some)) for name, some in labels if len(some)]
    if len(named) < 2:
        return
    keys = joined([each.keys for _, each in named])
    verdicts = np.concatenate([each.verdicts for _, each in named], axis=1)
    known, place = distinct(keys)
    first = np.empty(len(known), dtype=np.int64)
    first[place[::-1]] = np.arange(len(keys))[::-1]
    other = np.flatnonzero((verdicts != verdicts[:, first[place]]).any(axis=0))
    if not len(other):
        return
    runs = np.repeat(np.arange(len(named)), [len(each.keys) for _, each in named])
    one, two = (named[runs[row]][0] for row in (first[place[other[0]]], other[0]))
    differing = count_of(len(np.unique(place[other])), "trajectory")
    raise UserError(
        f"{one} and {two}: their labels of {keys.key(int(other[0]))} differ (in all the runs those "
        f"of {differing}): name the labels that count with --annotations KIND:PATH"
    )
