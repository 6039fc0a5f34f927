"""How the judgments of a judge ended, of how many a prompt was shortened, what was not judged,
which labels are unsure."""

from __future__ import annotations

import numpy as np

from trajudge.eval.rungs import RUNGS, WHOLE
from trajudge.eval.scoring.groups import Group
from trajudge.eval.scoring.observations import STATUSES, Verdicts
from trajudge.eval.scoring.records import Coverage, Label
from trajudge.eval.scoring.reference import UNKNOWN
from trajudge.eval.stats.interval import Bools


def coverage_of(
    judge: str, group: Group, said: Verdicts, due: Bools, members: Bools, *, training: Bools
) -> Coverage:
    """Of the trajectories in the group; ``due`` (T,) are those that the judge had to judge,
    ``members`` (T,) those of the group, ``training`` (T,) those that are left out because the
    judge was trained on them."""
    inside = members[said.place]
    ended = np.bincount(said.status[inside], minlength=len(STATUSES)).tolist()
    cut = np.bincount(said.rung[inside], minlength=len(RUNGS)).tolist()
    judged, trained = int(inside.sum()), int((training & members).sum())
    return Coverage(
        judge=judge,
        benchmark=group.benchmark,
        agent=group.agent,
        judged=judged,
        statuses={status: n for status, n in zip(STATUSES, ended, strict=True) if n},
        shortened={rung: n for rung, n in zip(RUNGS, cut, strict=True) if n and rung != WHOLE},
        unjudged=int((due & members & ~training).sum()) - judged,
        unlabelled=int((inside & ~said.reference.annotated[said.place]).sum()),
        training=trained,
    )


def unsure(said: Verdicts, label: Label, members: Bools) -> int:
    """How many judged trajectories of the group have an annotation without this label."""
    unknown = said.reference.annotated & (said.reference.truth[label] == UNKNOWN) & members
    return int(unknown[said.place].sum())
