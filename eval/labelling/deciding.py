"""The trajectories that decide an acceptance: those that a candidate of a frozen plan accepts.

Whether a candidate reaches the plan's precision is told by the labels of what it accepts, so that a
label of anything else says nothing of it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from trajudge.eval.data.sources import Source
from trajudge.eval.labelling.frame import Frame, read_frame
from trajudge.eval.select.measures.scores import accepts, judge_scores, rule_scores
from trajudge.eval.select.plan import read_plan
from trajudge.eval.stats.interval import Bools
from trajudge.trajectories.util.errors import UserError


def read_deciding(source: Source, candidates: Path) -> tuple[Frame, Bools]:
    """Read the frame of the trajectories that decide, and which candidate accepts each (N, C).
    Raises UserError for a plan that cannot be read, that bounds no precision, or names judges whose
    judgments are not given, and where no candidate accepts anything."""
    plan = read_plan(candidates)
    if plan.target.kind != "precision":
        raise UserError(
            f"--candidates {candidates}: bounds false positives, which what is not accepted "
            "decides, too: draw with another --strategy, or name a plan with --target-precision"
        )
    keys = sorted({judgment.key for judgment in source.judgments}, key=lambda key: key.order)
    scored = {use: judge_scores(source.judgments, use) for use in ("score", "verdict")}
    accepted = np.stack(
        [
            accepts(rule_scores(family.rule, scored[family.rule.use], keys), threshold)
            for family, threshold in plan.candidates
        ],
        axis=1,
    )
    decides = accepted.any(axis=1)
    if not decides.any():
        raise UserError(
            f"--candidates {candidates}: none of them accepts a trajectory of these runs"
        )
    frame = read_frame(source, {keys[place] for place in np.flatnonzero(decides)})
    return frame, accepted[decides]
