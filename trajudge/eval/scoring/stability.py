"""What the judgments of a run say beside their scores: how steady, and what a cascade saved."""

from __future__ import annotations

import numpy as np

from trajudge.eval.data.index.columns import STATUSES, UNKNOWN, JudgmentColumns
from trajudge.eval.data.index.keys import distinct
from trajudge.eval.stats.interval import Ints
from trajudge.trajectories.util.terminal import count_of


def stability_notes(judgments: JudgmentColumns, trajectories: int) -> list[str]:
    """Sentences about one judge of so many trajectories for the notes below the tables."""
    several = len(judgments) > trajectories
    samples = [*_flips(judgments), *_failed_samples(judgments)] if several else []
    return [*samples, *_cascade(judgments)]


def flip_rate(judgments: JudgmentColumns) -> tuple[int, int]:
    """(trajectories whose samples disagree on success, trajectories with two verdicts or more);
    failed samples are left out."""
    success = judgments.verdict("success")
    decided = judgments.ok() & (success != UNKNOWN)
    _, place = distinct(judgments.keys.at(decided))
    verdicts = np.bincount(place)
    accepted = np.bincount(place, weights=success[decided])
    flipped = (accepted > 0) & (accepted < verdicts)
    return int(flipped.sum()), int((verdicts > 1).sum())


def repeated_note(judgments: JudgmentColumns, last: Ints) -> str:
    """Say how many judgments come more than once, of which ``last`` are the rows that count, and
    how many with another verdict; a failed one that was asked for again contradicts nothing."""
    places = distinct(judgments.keys)[1]
    each = np.stack((judgments.judge, places, judgments.sample))
    one = np.unique(each, axis=1, return_inverse=True)[1].ravel()
    counted = np.empty(len(last), dtype=np.int64)
    counted[one[last]] = last
    earlier = np.setdiff1d(np.arange(len(judgments)), last)
    now, verdicts, ok = counted[one[earlier]], judgments.verdicts, judgments.ok()
    other = (verdicts[:, earlier] != verdicts[:, now]).any(axis=0) & ok[earlier] & ok[now]
    repeated, different = len(np.unique(now)), len(np.unique(now[other]))
    return (
        f"holds {count_of(repeated, 'judgment')} more than once, {different} of them with another "
        "verdict: the last of each counts"
    )


def _flips(judgments: JudgmentColumns) -> list[str]:
    flipped, repeated = flip_rate(judgments)
    if not repeated:
        return []
    rate = f"{100 * flipped / repeated:.1f} %"
    return [
        f"{_name(judgments)}: samples disagree on {flipped} of {repeated} trajectories "
        f"(flip rate {rate})"
    ]


def _failed_samples(judgments: JudgmentColumns) -> list[str]:
    """Those beside which another sample decides: coverage counts trajectories alone."""
    known, place = distinct(judgments.keys)
    ok = judgments.ok()
    decided = np.bincount(place[ok], minlength=len(known)) > 0
    failed = judgments.status[~ok & decided[place]]
    if not len(failed):
        return []
    counts = np.bincount(failed, minlength=len(STATUSES)).tolist()
    each = ", ".join(f"{status} {n}" for status, n in zip(STATUSES, counts, strict=True) if n)
    return [
        f"{_name(judgments)}: {len(failed):,} of {len(judgments):,} samples failed ({each}); the "
        "others of their trajectories count"
    ]


def _cascade(judgments: JudgmentColumns) -> list[str]:
    """Asked and spared; what was spared is priced by the mean of what was asked."""
    settled = ~np.isnan(judgments.second_asked)
    if not settled.any():
        return []
    reached = settled & (judgments.second_asked != 0)
    count, spared = int(reached.sum()), int((settled & ~reached).sum())
    shares = f"{count} of {count + spared} trajectories"
    line = f"{_name(judgments)}: the second member was asked on {shares}"
    calls = judgments.calls
    # The ledger names the member before the stage: what the first one did not ask is the second's.
    members = np.array([name.split(" ")[0] for name in calls.stages], dtype=object)
    member = members[calls.stage]
    first = set(member[(settled & ~reached)[calls.judgment]].tolist())
    of_second = reached[calls.judgment] & np.array([one not in first for one in member], dtype=bool)
    costs = calls.cost[of_second]
    if count and spared and len(costs) and not np.isnan(costs).any():
        spent = sum(costs.tolist())
        line += f"; it cost ${spent:.4f}, sparing the others about ${spent / count * spared:.4f}"
    return [line]


def _name(judgments: JudgmentColumns) -> str:
    return judgments.judges[int(judgments.judge[0])]
