"""What the notes below the tables say of judgments, rewards and judges besides their scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from trajudge.eval.scoring.observations import Predictions, Training
from trajudge.eval.store.table import STATUSES, UNKNOWN, JudgmentTable, distinct
from trajudge.stats.intervals import Floats, Ints
from trajudge.util.terminal import count_of


def judge_notes(judge: Predictions, judgments: JudgmentTable, training: Training) -> list[str]:
    """Write the sentences about one judge of ``judgments`` for the notes below the tables."""
    left_out = on_training_set(judge.judge, len(training.get(judge.judge, ())))
    return [*stability_notes(judge, judgments), *left_out]


def stability_notes(judge: Predictions, judgments: JudgmentTable) -> list[str]:
    """Write how a judge's samples in ``judgments`` disagree and fail, and what a cascade asked."""
    several = len(judge.rows) > len(judge)
    samples = [*_flips(judge, judgments), *_failed_samples(judge, judgments)] if several else []
    return [*samples, *_cascade(judge, judgments)]


def flip_rate(judge: Predictions, judgments: JudgmentTable) -> tuple[int, int]:
    """Count the trajectories whose samples disagree on success, and those with two verdicts or
    more; failed samples are left out."""
    success, ok = judgments.verdict("success")[judge.rows], judgments.ok()[judge.rows]
    decided = ok & (success != UNKNOWN)
    place = judge.reference.judged[judge.rows][decided]
    verdicts = np.bincount(place)
    accepted = np.bincount(place, weights=success[decided])
    flipped = (accepted > 0) & (accepted < verdicts)
    return int(flipped.sum()), int((verdicts > 1).sum())


def repeated_note(judgments: JudgmentTable, last: Ints) -> str:
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


def _flips(judge: Predictions, judgments: JudgmentTable) -> list[str]:
    flipped, repeated = flip_rate(judge, judgments)
    if not repeated:
        return []
    return [
        f"{judge.judge}: samples disagree on {flipped} of {repeated} trajectories "
        f"(flip rate {100 * flipped / repeated:.1f} %)"
    ]


def _failed_samples(judge: Predictions, judgments: JudgmentTable) -> list[str]:
    """Count those beside which another sample decides: coverage counts trajectories alone."""
    place, ok = judge.reference.judged[judge.rows], judgments.ok()[judge.rows]
    decided = np.bincount(place[ok], minlength=len(judge.reference)) > 0
    failed = judgments.status[judge.rows][~ok & decided[place]]
    if not len(failed):
        return []
    counts = np.bincount(failed, minlength=len(STATUSES)).tolist()
    each = ", ".join(f"{status} {n}" for status, n in zip(STATUSES, counts, strict=True) if n)
    return [
        f"{judge.judge}: {len(failed):,} of {len(judge.rows):,} samples failed ({each}); the "
        "others of their trajectories count"
    ]


def _cascade(judge: Predictions, judgments: JudgmentTable) -> list[str]:
    """Count the trajectories on which the second member was asked and spared; what was spared is
    priced by the mean of what was asked."""
    settled = ~np.isnan(judgments.second_asked)
    settled &= np.isin(np.arange(len(judgments)), judge.rows)
    if not settled.any():
        return []
    reached = settled & (judgments.second_asked != 0)
    count, spared = int(reached.sum()), int((settled & ~reached).sum())
    shares = f"{count} of {count + spared} trajectories"
    line = f"{judge.judge}: the second member was asked on {shares}"
    calls = judgments.calls
    # The ledger names the member before the stage: what the first one did not ask is the second's.
    members = np.array([stage.split(" ")[0] for stage in calls.stages], dtype=object)
    first = set(members[calls.stage][(settled & ~reached)[calls.judgment]].tolist())
    is_first = np.array([member in first for member in members], dtype=bool)
    costs = calls.cost[reached[calls.judgment] & ~is_first[calls.stage]]
    if count and spared and len(costs) and not np.isnan(costs).any():
        spent = sum(costs.tolist())
        line += f"; it cost ${spent:.4f}, sparing the others about ${spent / count * spared:.4f}"
    return [line]


def reward_notes(rewards: Floats) -> list[str]:
    """Say how many of the official rewards (T,), nan where unknown, are on another scale than the
    rule-based baseline reads."""
    outside = rewards[(rewards < 0) | (rewards > 1)]
    if not len(outside):
        return []
    known = int(np.count_nonzero(~np.isnan(rewards)))
    return [
        f"warning: rule-based: {len(outside)} of {count_of(known, 'official reward')} not between "
        f"0 and 1, such as {outside[0]:g}: above 0.5 counts as success, therefore scale them in "
        "the data"
    ]


def on_training_set(judge: str, count: int) -> Iterator[str]:
    """Say that they were left out."""
    if count:
        yield (
            f"{judge}: {count_of(count, 'trajectory')} left out, because it was trained on them; "
            "trajudge judges train --cross-fit DIR judges each by a model that was not"
        )


def included(training: Training) -> Iterator[str]:
    """Warn that they were not."""
    for judge, keys in training.items():
        yield (
            f"warning: {judge} was trained on {len(keys)} of the trajectories that it is scored "
            "on: its metrics are not those of new trajectories"
        )


def mixed_versions(versions: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Warn of every judge that stands beside itself in another version.

    ``versions`` holds, by the judge's id in the table, the versions on the cards of that judge and
    of its members (``eval.data.manifest.recorded_versions``).
    """
    by_name: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for judge_id, cards in versions.items():
        for name, version in cards.items():
            by_name[name][version].append(judge_id)
    for name, by_version in sorted(by_name.items()):
        if len(by_version) > 1:
            listed = "; ".join(
                f"version {version} in {', '.join(sorted(ids))}"
                for version, ids in sorted(by_version.items())
            )
            yield (
                f"warning: judge {name} is compared in several versions ({listed}): they differ in "
                f"their prompts as well; judge again with the version of this release "
                f"(trajudge judges show {name})"
            )
