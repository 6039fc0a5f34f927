"""The trajectories that decide an acceptance: those that a candidate of a frozen plan accepts.

Whether a candidate reaches the plan's precision is told by the labels of what it accepts, so that a
label of anything else says nothing of it.
"""

from __future__ import annotations

import numpy as np

from trajudge.eval.labelling.frame import Frame, read_frame
from trajudge.eval.labelling.settings import BuildConfig
from trajudge.eval.select.evidence import check_planned, read_inputs
from trajudge.eval.select.plan import SelectionPlan
from trajudge.eval.select.scores import accepts, judge_scores, rule_scores
from trajudge.eval.sources import Source
from trajudge.stats.intervals import Bools
from trajudge.util.errors import UserError


def read_deciding(source: Source, config: BuildConfig, plan: SelectionPlan) -> tuple[Frame, Bools]:
    """Read the frame of the trajectories that decide, and which candidate accepts each (N, C), from
    judgments as ``trajudge select`` reads them. Raises UserError for a plan that bounds no
    precision, or names judges whose judgments are not given, and where no candidate accepts
    anything."""
    candidates = config.candidates
    if plan.target.kind != "precision":
        raise UserError(
            f"--candidates {candidates}: bounds false positives, which what is not accepted "
            "decides, too: draw with another --strategy, or name a plan with --target-precision"
        )
    inputs = read_inputs(config.runs, config.judgments)
    check_planned(inputs, plan)
    judgments = inputs.judgments
    keys = sorted({judgment.key for judgment in judgments}, key=lambda key: key.order)
    scored = {use: judge_scores(judgments, use) for use in ("score", "verdict")}
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
