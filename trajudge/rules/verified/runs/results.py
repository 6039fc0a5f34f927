"""What is kept of one judged run, and how far a claim that a task cannot be done was explored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Protocol

import msgspec
from msgspec import Struct

from trajudge.rules.verdict import Assertion, Outcome, Verdict
from trajudge.rules.verified.dataset import TaskId

_ODD = re.compile(r"[^\w.-]")
MULTI_SITE = "multi-site"
TAU = 0.5
"""The least exploration ratio of an adequate claim (paper, section 3.2 and Figure 2)."""


class JudgedTask(Protocol):
    """What a result says of its task, Verified's or an original one."""

    @property
    def task_id(self) -> TaskId: ...
    @property
    def template(self) -> str: ...
    @property
    def sites(self) -> tuple[str, ...]: ...
    @property
    def achievable(self) -> bool: ...


class TaskResult(Struct, frozen=True, kw_only=True):
    """The verdict on one run, with every comparison.

    ``notes`` are what was taken for granted. ``failure_modes`` are the names of what did not hold,
    without positions; ``parse_failure`` is the class of an unreadable response. ``steps`` are the
    run's; ``run`` tells it from others of its task. ``exploration`` is R = steps over the site's
    median of successes at tasks that can be done, for tasks that cannot be done. ``partial_score``
    is that of a dialect which gives one for a part (WebChoreArena).
    """

    task_id: TaskId
    template: str
    sites: tuple[str, ...]
    outcome: Outcome
    reasons: tuple[str, ...] = ()
    failure_modes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    parse_failure: str | None = None
    achievable: bool = True
    steps: float | None = None
    exploration: float | None = None
    seconds: float = 0.0
    assertions: tuple[Assertion, ...] = ()
    run: str = ""
    partial_score: float | None = None

    @property
    def file_name(self) -> str:
        """Its own among the results: that of the task, and of the run where a task has several."""
        return f"{self.task_id}-{_ODD.sub('_', self.run)}" if self.run else str(self.task_id)

    @property
    def site(self) -> str:
        """The sites of a task that has several, joined."""
        return "-".join(sorted(self.sites))

    @property
    def stratum(self) -> str:
        """What summaries by site count the run to: its site, or the tasks of several (paper,
        Table 4)."""
        return self.sites[0] if len(self.sites) == 1 else MULTI_SITE

    @property
    def judged(self) -> bool:
        """Whether anything was compared: not where a file could not be read, nor over time."""
        return bool(self.assertions)

    @property
    def score(self) -> float:
        """1 for a pass; a fail and what is unknown score nothing."""
        return float(self.outcome is Outcome.PASS)


def result_of(
    task: JudgedTask, verdict: Verdict, steps: float | None, seconds: float
) -> TaskResult:
    """Return the result of one run."""
    broken = [item for item in verdict.assertions if item.outcome is verdict.outcome]
    failed = broken if verdict.outcome is not Outcome.PASS else []
    modes = dict.fromkeys(_mode(item.name) for item in failed)
    unread = [item.name for item in failed if item.name.startswith("parse_failure.")]
    return TaskResult(
        task_id=task.task_id,
        template=task.template,
        sites=task.sites,
        outcome=verdict.outcome,
        reasons=verdict.reasons,
        notes=verdict.notes,
        failure_modes=tuple(modes) or (("not judged",) if verdict.reasons else ()),
        parse_failure=unread[0].partition(".")[2] if unread else None,
        achievable=task.achievable,
        steps=steps,
        seconds=round(seconds, 6),
        assertions=verdict.assertions,
        partial_score=verdict.score,
    )


def _mode(name: str) -> str:
    """``network.2.post_data.title`` → ``network.post_data``."""
    parts = [part for part in name.partition("[")[0].split(".") if not part.isdigit()]
    return ".".join(parts[:2])


def explored(results: Sequence[TaskResult]) -> list[TaskResult]:
    """Return the results with R where a run claims, rightly or not, that its task cannot be done.

    The median is that of the site's successes among these very runs (paper, section 3.2); without
    one there is no R.
    """
    medians = site_medians(results)
    return [
        result
        if result.achievable or result.steps is None or not medians.get(result.site)
        else msgspec.structs.replace(result, exploration=result.steps / medians[result.site])
        for result in results
    ]


def site_medians(results: Iterable[TaskResult]) -> Mapping[str, float]:
    """Median steps of the successes at tasks that can be done, by site."""
    steps: dict[str, list[float]] = {}
    for result in results:
        if result.achievable and result.outcome is Outcome.PASS and result.steps is not None:
            steps.setdefault(result.site, []).append(result.steps)
    return {site: median(values) for site, values in steps.items()}


def premature(result: TaskResult, tau: float = TAU) -> bool:
    """Tell whether the run gave up on too little: R < τ."""
    return result.exploration is not None and result.exploration < tau
