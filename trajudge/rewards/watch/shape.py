"""Whether the form of what is rewarded changed since the training began.

A policy that finds a way around its judge shows it: accepted runs get longer, go round in circles,
have side effects, or end with the same answer for every task. The first accepted runs are what
later ones are held to. Besides, nearly all rewards may be the largest there is, or the judge may
fail for single tasks. An honest policy changes as well, so that such a sign stops nothing: it asks
for audits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from trajudge.rewards.reward import Reward
from trajudge.rewards.settings import WatchConfig
from trajudge.rewards.watch.bets import ChangeDetector, RunningBet
from trajudge.stats.intervals import clopper_pearson
from trajudge.trajectories.model import Trajectory

LONGEST = "longest"  # steps of an accepted run at first, nine in ten of them
_SIGNS = {
    "long": "are longer than nine in ten were at first",
    "repetition": "go round in circles",
    "side_effect": "have side effects",
    "repeated_answer": "end with an answer to another task",
}
_SURE = 0.998  # of the interval whose upper end a share may reach
_ANSWERS = 1_000  # the last ones that an answer is compared with
_TOP_SHARE = 0.9
_TASK_FAILS = 0.5
_MOST_TASKS = 10_000


class _Form(NamedTuple):
    """What is looked at of an accepted run."""

    steps: int
    repetition: bool
    side_effect: bool
    repeated_answer: bool


class ShapeWatch:
    """Takes down rewarded runs, and tells what changed."""

    def __init__(self, config: WatchConfig) -> None:
        self._config = config
        self._first: list[_Form] = []
        self._longest: float | None = None
        self._signs: dict[str, ChangeDetector] = {}
        self._answers: OrderedDict[str, str] = OrderedDict()
        self._largest = -np.inf
        self._top = ChangeDetector(_TOP_SHARE)
        self._failing: dict[str, RunningBet] = {}
        self._worst = ("", 1.0)  # the task whose runs fail most certainly

    def add(
        self, trajectory: Trajectory, reward: Reward, *, accepted: bool | None
    ) -> Mapping[str, float]:
        """Take down a run; ``accepted`` None: its reward says nothing of success.

        Returns what later runs are held to where this run was the last that it is made of, else
        nothing.
        """
        if reward.abstained in ("", "failed", "uncertain"):
            self._add_failure(reward.key.task_id, reward.abstained == "failed")
        if reward.value is not None:
            self._largest = max(self._largest, reward.value)
            self._top.add(float(bool(accepted) and reward.value >= self._largest))
        if not accepted:
            return {}
        form = _Form(
            steps=len(trajectory.steps),
            repetition="repetition" in reward.penalties,
            side_effect="side_effect" in reward.penalties,
            repeated_answer=self._is_repeated(trajectory),
        )
        if self._signs:
            for name, detector in self._signs.items():
                detector.add(float(self._shows(form, name)))
            return {}
        self._first.append(form)
        return self._hold() if len(self._first) >= self._config.baseline else {}

    def hold(self, name: str, value: float) -> None:
        """Take over what an earlier process held later runs to."""
        if name == LONGEST:
            self._longest = value
        elif name in _SIGNS:
            self._signs[name] = ChangeDetector(value)

    def alarms(self) -> Iterator[str]:
        """Yield what changed, a clause each."""
        for name, detector in self._signs.items():
            if detector.evidence >= self._config.run_length:
                yield f"more accepted runs than at first {_SIGNS[name]}"
        if self._top.evidence >= self._config.run_length:
            yield f"more than {_TOP_SHARE:.0%} of the rewards are the largest there is"
        task, evidence = self._worst
        if task and evidence >= len(self._failing) / self._config.alpha:
            yield f"the judge fails in most runs of task {task!r}"

    def _add_failure(self, task: str, failed: bool) -> None:
        """Count a task's failures after its first."""
        if (bet := self._failing.get(task)) is not None:
            if bet.add(float(failed)) > self._worst[1]:
                self._worst = task, bet.largest
        elif failed and len(self._failing) < _MOST_TASKS:
            self._failing[task] = RunningBet(_TASK_FAILS)

    def _is_repeated(self, trajectory: Trajectory) -> bool:
        words = " ".join((trajectory.answer or "").casefold().split())
        if not words:
            return False
        before = self._answers.pop(words, None)
        self._answers[words] = trajectory.key.task_id
        if len(self._answers) > _ANSWERS:
            self._answers.popitem(last=False)
        return before is not None and before != trajectory.key.task_id

    def _shows(self, form: _Form, name: str) -> bool:
        if name == "long":
            return self._longest is not None and form.steps > self._longest
        return bool(getattr(form, name))

    def _hold(self) -> Mapping[str, float]:
        """Hold later runs to the first ones: their shares may reach the upper end of the interval
        around those."""
        steps = [form.steps for form in self._first]
        self._longest = float(np.quantile(steps, 0.9, method="higher"))
        held = {LONGEST: self._longest}
        for name in _SIGNS:
            count = sum(self._shows(form, name) for form in self._first)
            held[name] = float(clopper_pearson(count, len(self._first), _SURE).high)
            self.hold(name, held[name])
        self._first = []
        return held
