"""What a judge accepts of the runs as they were, at its own verdict and at every score: the curve
that a defence must leave, if it does more than make the judge stricter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from trajudge.robustness.measures.pairs import PerturbedPairs
from trajudge.trajectories.model import TrajectoryKey


class OperatingPoint(NamedTuple):
    """Successes (``true``) and failures (``false``) among the runs with a score of at least
    ``threshold``; None: among those that the judge's verdict accepts."""

    threshold: float | None
    true: int
    false: int


class OperatingPoints(NamedTuple):
    """Of ``successes`` runs that succeeded and ``failures`` that did not: the point of the verdict,
    and those of the scores from the strictest, where every verdict has one."""

    successes: int = 0
    failures: int = 0
    verdict: OperatingPoint = OperatingPoint(None, 0, 0)
    by_score: tuple[OperatingPoint, ...] = ()


def operating_points(everything: Sequence[PerturbedPairs]) -> OperatingPoints:
    """Count over the sources of all pairs, each once; those of unknown truth are left out."""
    known: dict[TrajectoryKey, tuple[float, float, float]] = {}
    for one in everything:
        scores = one.details.before if one.details else np.full(len(one.clean), np.nan)
        for source, *values in zip(one.sources, one.truth, one.clean, scores, strict=True):
            truth_of, clean_of, score_of = map(float, values)
            known.setdefault(source, (truth_of, clean_of, score_of))
    truth, clean, score = np.array([*known.values()], float).reshape(-1, 3).T
    success, failure = truth == 1, truth == 0
    yes, judged = clean == 1, ~np.isnan(clean) & (success | failure)
    found = np.unique(score[judged])[::-1]
    complete = judged.any() and not np.isnan(found).any()
    return OperatingPoints(
        int(success.sum()),
        int(failure.sum()),
        OperatingPoint(None, int((success & yes).sum()), int((failure & yes).sum())),
        tuple(
            OperatingPoint(
                float(least),
                int((judged & success & (score >= least)).sum()),
                int((judged & failure & (score >= least)).sum()),
            )
            for least in (found if complete else ())
        ),
    )


def precision_at_recall(points: OperatingPoints, recall: float) -> float | None:
    """Return the precision that the judge has when it is made as strict or lax as ``recall`` says;
    None for a recall of 0 and for one that it reaches at no score.

    Between two points some of the runs of the laxer one are accepted at random, so that accepted
    successes and failures are interpolated, not precision (Davis and Goadrich, ICML 2006).
    """
    fewest = {0: 0}
    for point in (*points.by_score, points.verdict):
        fewest[point.true] = min(point.false, fewest.get(point.true, point.false))
    wanted = recall * points.successes
    most = max(fewest)
    if not 0 < wanted <= most + 1e-9:
        return None
    reached = sorted(fewest)
    false = float(np.interp(wanted, reached, [fewest[true] for true in reached]))
    return wanted / (wanted + false)
