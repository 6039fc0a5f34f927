"""Preference pairs: two runs of a task that act differently on the same page."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from trajudge.eval.acceptance.conversations import ChatTurn
from trajudge.eval.acceptance.training.choosing import ChosenRuns, JudgedRun
from trajudge.eval.acceptance.training.examples import (
    SaveScreenshot,
    TrainingExample,
    TrainingTurn,
    step_example,
)
from trajudge.trajectories.model import TrajectoryKey

_HOST = re.compile(r"\bhttps?://[^/\s\"'()]+")


class PairBuilder:
    """Pairs the n-th accepted run of a task with its n-th rejected one, by their keys, and holds a
    run until its partner comes."""

    def __init__(self, chosen: ChosenRuns) -> None:
        self.left_out: Counter[str] = Counter()
        self._partner = _partners(chosen, self.left_out)
        self._waiting: dict[TrajectoryKey, tuple[Sequence[ChatTurn], dict[str, Any], float]] = {}

    def add(
        self,
        run: JudgedRun,
        turns: Sequence[ChatTurn],
        origin: dict[str, Any],
        save: SaveScreenshot,
    ) -> Iterator[TrainingExample]:
        """Take a run; yield the pair where it completes one."""
        partner = self._partner.get(run.key)
        if partner is None:
            return
        other = self._waiting.pop(partner, None)
        if other is None:
            self._waiting[run.key] = (turns, origin, run.score)
            return
        own = (turns, origin, run.score)
        good, bad = (own, other) if run.success else (other, own)
        at = first_difference(good[0], bad[0])
        if at is None:
            self.left_out["the pages differ before the actions do"] += 1
            return
        example = step_example(good[0], at, good[1], True, save)
        rejected = TrainingTurn("assistant", bad[0][at].content, learned=True)
        yield example._replace(rejected=rejected, margin=good[2] - bad[2])


def first_difference(good: Sequence[ChatTurn], bad: Sequence[ChatTurn]) -> int | None:
    """Find the first of the agent's turns whose action (or answer) differs, the pages until then
    being equal; None where there is none.

    Addresses are compared without their host: a site that is started anew for every run has
    another.
    """
    for at in range(2, min(len(good), len(bad)), 2):
        if _without_hosts(good[at - 1].content) != _without_hosts(bad[at - 1].content):
            return None
        if _action(good[at]) != _action(bad[at]):
            return at
    return None


def _action(turn: ChatTurn) -> str:
    """Return the action, or the answer, without the reasoning before it."""
    return _without_hosts(turn.content.rpartition("</think>\n")[2])


def _without_hosts(text: str) -> str:
    return _HOST.sub("", text)


def _partners(chosen: ChosenRuns, left_out: Counter[str]) -> dict[TrajectoryKey, TrajectoryKey]:
    by_task: dict[tuple[str, str], tuple[list[TrajectoryKey], list[TrajectoryKey]]]
    by_task = defaultdict(lambda: ([], []))
    for key in sorted(chosen.runs, key=lambda key: key.order):
        by_task[key.benchmark, key.task_id][chosen.runs[key][0].success].append(key)
    partners = {}
    for bad, good in by_task.values():
        for one, other in zip(good, bad, strict=False):
            partners.update({one: other, other: one})
        left_out["no partner of the same task"] += abs(len(good) - len(bad))
    return partners
