"""Ranks with ties from paired differences: judges that are not told apart share a rank."""

from __future__ import annotations

from collections.abc import Collection

from trajudge.eval.leaderboard.records import RankRange
from trajudge.eval.scoring.records import ALPHA, Comparison, Rate

METHOD = (
    "Ranks: two judges are compared on the trajectories that both judged, by the difference of the "
    "metric with an interval over tasks; p-values are corrected by Holm over all pairs of a table "
    "(α = .05). The first number is 1 plus the judges that are significantly better, the second "
    "the number of judges less those that are significantly worse: judges whose difference is not "
    "significant share a rank."
)


def rank_ranges(
    comparison: Comparison, benchmark: str, metric: Rate, judges: Collection[str]
) -> dict[str, RankRange]:
    """Rank ``judges``, those whose metric is defined, by their differences in success."""
    better, worse = dict.fromkeys(judges, 0), dict.fromkeys(judges, 0)
    for each in comparison.differences:
        if (each.benchmark, each.label, each.metric) != (benchmark, "success", metric):
            continue
        if not {each.first, each.second} <= better.keys() or not each.difference:
            continue
        if each.p_holm is not None and each.p_holm <= ALPHA:
            won, lost = (
                (each.first, each.second) if each.difference > 0 else (each.second, each.first)
            )
            better[lost] += 1
            worse[won] += 1
    return {
        judge: RankRange(best=1 + better[judge], worst=len(better) - worse[judge])
        for judge in better
    }


def smallest_overlap(comparison: Comparison, benchmark: str) -> dict[str, int]:
    """Return, per judge, the smallest number of trajectories that it shares with another one."""
    overlaps: dict[str, int] = {}
    for each in comparison.differences:
        if (each.benchmark, each.label) == (benchmark, "success"):
            for judge in (each.first, each.second):
                overlaps[judge] = min(each.n, overlaps.get(judge, each.n))
    return overlaps
