"""The judgments that a run has still to make, drawn lazily from the files."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

import numpy as np

from trajudge.eval.data.index.columns import STATUS_CODE, JudgmentColumns
from trajudge.eval.data.index.keys import KeyColumns, KeyPlaces, joined, places_among
from trajudge.eval.data.index.labels import RewardColumns, Rewards, RunRewards
from trajudge.eval.data.task_goals import goal_digest
from trajudge.eval.runs.plan import RunPlan, strict_stop
from trajudge.eval.stats.interval import Bools, Ints
from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.actions import holds_answer
from trajudge.trajectories.model import REPEAT, Trajectory, TrajectoryKey, Unreadable

_APART = 10_000  # samples between the draws of a trajectory and those of its repeat


class JudgmentJob(NamedTuple):
    """One judgment to make: ``sample`` counts repeated judgments of a trajectory from 0. ``item``
    is the trajectory, or why it could not be read."""

    key: TrajectoryKey
    item: Trajectory | Unreadable
    sample: int

    @property
    def draw(self) -> int:
        """The sample index of its requests: a trajectory that is there to be asked about again
        (``REPEAT``) draws anew, where the first one's reply would be in the cache."""
        repeat = self.item.metadata.get(REPEAT) if isinstance(self.item, Trajectory) else None
        return self.sample + _APART * repeat if isinstance(repeat, int) else self.sample


@dataclass
class LoadReport:
    """What the files gave besides jobs: the official ``rewards`` of the trajectories that were
    read. Those that are not read for the judge are read where ``earlier`` lacks their reward.
    ``unsent`` counts those whose answer no action holds, where the judge reads it there alone. A
    report belongs to one ``jobs_of``."""

    earlier: Rewards = field(default_factory=dict)
    unreadable: list[Unreadable] = field(default_factory=list)
    repeated: list[TrajectoryKey] = field(default_factory=list)
    unsent: int = 0
    _places: array[int] = field(default_factory=lambda: array("q"))
    _rewards: array[float] = field(default_factory=lambda: array("d"))
    _goals: array[int] = field(default_factory=lambda: array("q"))

    def add_reward(self, place: int, reward: float | None, goal: int = 0) -> None:
        """Note the reward of the trajectory at this place of the plan's keys, and the digest of its
        goal."""
        self._places.append(place)
        self._goals.append(goal)
        self._rewards.append(np.nan if reward is None else reward)

    def goals(self, keys: KeyColumns) -> tuple[KeyColumns, Ints]:
        """Return the digests of the goals that were noted so far, ``keys`` the plan's."""
        return keys.at(np.array(self._places)), np.array(self._goals)

    def rewards(self, keys: KeyColumns) -> RunRewards:
        """Return the rewards that were noted so far, ``keys`` the plan's."""
        places = np.array(self._places, dtype=np.int64)
        return RunRewards(RewardColumns(keys.at(places), np.array(self._rewards)))

    def cut(self) -> LoadReport:
        """Return what was noted since the last call."""
        self._places, places = array("q"), self._places
        self._rewards, rewards = array("d"), self._rewards
        self.unreadable, unreadable = [], self.unreadable
        self.repeated, repeated = [], self.repeated
        self.unsent, unsent = 0, self.unsent
        return LoadReport({}, unreadable, repeated, unsent, places, rewards)


def with_unreached(rewards: Rewards, keys: KeyColumns, judged: KeyColumns) -> Rewards:
    """Add those of ``keys`` that a run which ends early has not come to, with an unknown reward:
    they count against its coverage."""
    known = RewardColumns.of(rewards)
    unreached = places_among(keys, joined([known.keys, judged])) < 0
    if not unreached.any():
        return rewards
    reward = np.concatenate([known.reward, np.full(int(unreached.sum()), np.nan)])
    return RunRewards(RewardColumns(joined([known.keys, keys.at(unreached)]), reward))


def without_unreached(rewards: Rewards, judged: KeyColumns) -> Rewards:
    """Leave out what ``with_unreached`` added in an earlier session."""
    known = RewardColumns.of(rewards)
    reached = ~np.isnan(known.reward) | (places_among(known.keys, judged) >= 0)
    if reached.all():
        return rewards
    return RunRewards(RewardColumns(known.keys.at(reached), known.reward[reached]))


def jobs_done(
    keys: KeyColumns,
    samples: int,
    judgments: JudgmentColumns,
    *,
    retry_failed: bool,
    strict: bool,
) -> Bools:
    """Tell which of the samples of ``keys`` need not be judged again, (K, samples). ``strict``
    reads what was skipped again, which may still be unreadable."""
    row = places_among(judgments.keys, keys)
    counted = (row >= 0) & (judgments.sample < samples)
    if retry_failed:
        counted &= judgments.ok()
    if strict:
        counted &= judgments.status != STATUS_CODE[Status.SKIPPED]
    done = np.zeros((len(keys), samples), dtype=bool)
    done[row[counted], judgments.sample[counted]] = True
    return done


def jobs_of(
    plan: RunPlan, samples: int, done: Bools | None, report: LoadReport, *, strict: bool
) -> Iterator[JudgmentJob]:
    """Yield jobs in the order of the files; a trajectory is read only if something of it is
    missing.

    ``done`` is that of ``jobs_done``, None where nothing is. Raises UserError at the first
    trajectory that cannot be read if ``strict``.
    """
    left = np.ones((len(plan.keys), samples), dtype=bool) if done is None else ~done
    wanted = KeyPlaces(plan.keys, places_to_read(plan.keys, left, report))
    if not len(wanted):
        return
    read = np.zeros(len(plan.keys), dtype=bool)
    for item in plan.source.read(wanted.__contains__, plan.needs):
        if isinstance(item, Unreadable):
            if strict:
                raise strict_stop(item)
            report.unreadable.append(item)
        key = item.key
        if key is None or (place := wanted.find(key)) is None:
            continue
        if read[place]:
            report.repeated.append(key)
            continue
        read[place] = True
        if isinstance(item, Trajectory):
            report.add_reward(place, item.official_reward, goal_digest(item))
            if plan.answer_options and left[place].any():
                report.unsent += _is_unsent(item)
        for sample, is_left in enumerate(left[place].tolist()):
            if is_left:
                yield JudgmentJob(key, item, sample)


def places_to_read(keys: KeyColumns, left: Bools, report: LoadReport) -> Ints:
    """Return the places of ``keys`` of which a sample is left, (K, samples), or whose official
    reward is not known."""
    some = left.any(axis=1)
    some |= places_among(keys, RewardColumns.of(report.earlier).keys) < 0
    return np.flatnonzero(some)


def _is_unsent(run: Trajectory) -> bool:
    actions = [step.action for step in run.steps]
    return run.answer is not None and not holds_answer(actions, run.answer)


def first_samples_ahead(jobs: Iterator[JudgmentJob], ahead: int) -> Iterator[JudgmentJob]:
    """Yield the first sample of a trajectory ``ahead`` trajectories before its others.

    When they ask with the same prompt, the provider has it in its cache: a read costs a fraction of
    the first time, and samples that are asked together would each pay for the first time.
    """
    waiting: deque[list[JudgmentJob]] = deque()
    for _, samples in groupby(jobs, key=lambda job: job.key):
        first, *others = samples
        yield first
        waiting.append(others)
        if len(waiting) > ahead:
            yield from waiting.popleft()
    for others in waiting:
        yield from others


def skipped(judge_id: str, key: TrajectoryKey, sample: int, item: Unreadable) -> Judgment:
    """Make the judgment on a trajectory whose file could not be read."""
    detail = f"{item.source}: {item.reason}"
    return Judgment(key=key, judge=judge_id, sample=sample, status=Status.SKIPPED, detail=detail)


_CULPRITS = {
    Status.UNPARSABLE: "unparsable",
    Status.TRUNCATED: "length",
    Status.REFUSED: "refused",
    Status.CONTEXT_OVERFLOW: "context_overflow",
}


def to_refresh(earlier: Judgment | None) -> frozenset[str]:
    """Return the requests that made an earlier judgment fail: they are asked again, the others are
    not.

    Where the ledger does not tell which reply it was, all of them.
    """
    if earlier is None or earlier.status not in _CULPRITS:
        return frozenset()
    culprits = {c.request for c in earlier.calls if c.finish == _CULPRITS[earlier.status]}
    return frozenset(culprits or {call.request for call in earlier.calls})
