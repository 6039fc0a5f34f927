"""Attempts of agents at tasks, as the hazard model of task difficulty reads them.

Source: WebArena Verified, section 4.5 and appendix B (preprocessing, step bins, reference steps).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trajudge.eval.stats.interval import Bools, Floats, Ints

BIN_STARTS = np.array([1, 3, 6, 11, 21])
"""First step count of every bin: 1-2, 3-5, 6-10, 11-20, 21 to the cap."""

Exhausted = Literal["reached", "failed"]
"""Which attempts are flagged as out of budget: all at the cap, or (as published) those that also
failed. The latter leaks the outcome into a predictor; it is kept for comparison."""


@dataclass(frozen=True, eq=False)
class Attempts:
    """One run per (agent, task). ``agent``, ``task``, ``steps``, ``success``, ``exhausted``: (N,).

    Codes index the names; ``site``, ``template`` and ``category`` (T,) belong to the tasks.
    """

    agent: Ints
    task: Ints
    steps: Ints
    success: Bools
    exhausted: Bools
    site: Ints
    template: Ints
    category: Ints
    agent_names: tuple[object, ...]
    task_names: tuple[object, ...]
    site_names: tuple[object, ...]

    @cached_property
    def agents_per_task(self) -> Ints:
        """How many agents attempted each task, (T,)."""
        return np.bincount(self.task, minlength=len(self.task_names))

    def outcomes(self) -> Floats:
        """Success by agent and task (A, T); ``nan`` where not attempted."""
        table = np.full((len(self.agent_names), len(self.task_names)), np.nan)
        table[self.agent, self.task] = self.success
        return table

    def reference_steps(self) -> Floats:
        """Choose the steps (S,) at which tasks of a site are compared.

        They are the median of its successes where there are 30, else the 60th percentile of all
        its attempts; at most the site's 95th percentile, at least 1.
        """
        where = self.site[self.task]
        reference = np.ones(len(self.site_names))
        for s in range(len(self.site_names)):
            steps = self.steps[where == s]
            won = self.steps[(where == s) & self.success]
            typical = np.median(won) if len(won) >= 30 else np.quantile(steps, 0.6)
            reference[s] = max(1.0, min(typical, np.quantile(steps, 0.95)))
        return reference

    def without_agent(self, agent: int) -> Attempts:
        """Select the attempts of all other agents; drop tasks that nobody else tried."""
        keep = self.agent != agent
        tasks = np.unique(self.task[keep])
        names = [self.agent_names[a] for a in self.agent[keep]]
        return attempts(
            names,
            [self.task_names[t] for t in self.task[keep]],
            self.steps[keep],
            self.success[keep],
            site={self.task_names[t]: self.site_names[self.site[t]] for t in tasks},
            template={self.task_names[t]: int(self.template[t]) for t in tasks},
            category={self.task_names[t]: int(self.category[t]) for t in tasks},
            exhausted=self.exhausted[keep],
        )


def attempts(
    agent: ArrayLike,
    task: ArrayLike,
    steps: ArrayLike,
    success: ArrayLike,
    *,
    site: dict[object, object],
    template: dict[object, object],
    category: dict[object, object],
    cap: int = 30,
    exhausted: Exhausted | NDArray[np.bool_] = "reached",
) -> Attempts:
    """Encode runs (N,); steps are held within 1 and ``cap``.

    ``site``, ``template`` and ``category`` map a task's name to its labels. Raises ValueError on
    a second run of one agent at one task, and on a task without labels.
    """
    agents, who = np.unique(np.asarray(agent), return_inverse=True)
    tasks, task_index = np.unique(np.asarray(task), return_inverse=True)
    if len(np.unique(np.column_stack([who, task_index]), axis=0)) < len(who):
        raise ValueError("an agent has two runs of one task: keep one of them")
    names = tuple(tasks.tolist())
    labels = {"site": site, "template": template, "category": category}
    for kind, known in labels.items():
        if missing := [name for name in names if name not in known]:
            raise ValueError(f"task {missing[0]!r} has no {kind}")
    sites, of_site = np.unique([str(site[name]) for name in names], return_inverse=True)
    won = np.asarray(success).astype(bool)
    count = np.clip(np.asarray(steps, dtype=np.int64), 1, cap)
    if isinstance(exhausted, str):
        flagged = (count == cap) & ~(won & (exhausted == "failed"))
    else:
        flagged = exhausted
    return Attempts(
        agent=who.ravel(),
        task=task_index.ravel(),
        steps=count,
        success=won,
        exhausted=flagged,
        site=of_site,
        template=_codes(template, names),
        category=_codes(category, names),
        agent_names=tuple(agents.tolist()),
        task_names=names,
        site_names=tuple(sites.tolist()),
    )


def step_bin(steps: ArrayLike) -> Ints:
    """Bin of a step count, from 0."""
    return np.searchsorted(BIN_STARTS, np.asarray(steps), side="right") - 1


def _codes(labels: dict[object, object], names: tuple[object, ...]) -> Ints:
    return np.unique([str(labels[name]) for name in names], return_inverse=True)[1].ravel()
