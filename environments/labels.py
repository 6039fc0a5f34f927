"""Labels that follow from the final state and the trace, never from what an agent meant to do.

Names and scale as in AgentRewardBench section 3.2: success, side effect, repetition (a cycle of
actions), optimality 1 (complete failure) to 4 (completely optimal).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from environments.state import Change, State, diff
from environments.tasks import Task

REPEATED = 3  # as often is a cycle; one time less is left open (None)
NEARLY_OPTIMAL = 1.5  # times the length of the shortest way known
_AMOUNT = re.compile(r"\$\d(?:[\d.,]*\d)?")


class Deed(NamedTuple):
    """One action in the trace: where, what, and the digest of the state before and after."""

    url: str
    action: str
    before: str
    after: str


class Labels(NamedTuple):
    """What an expert would say of the run. ``repetition`` None: open to argument."""

    success: bool
    side_effect: bool
    repetition: bool | None
    optimality: int


def answered(task: Task, answer: str | None) -> bool:
    """Whether the message names the expected amount, and no other."""
    if task.answer is None:
        return True
    return set(_AMOUNT.findall(answer or "")) == {task.answer}


def official_reward(task: Task, url: str, answer: str | None) -> float:
    """The shop's own rule-based evaluator, as crude as real ones are: it compares the last message
    word for word where the task asks a question, and looks at the last URL only where it does not.
    """
    if task.reward_answer:
        return float((answer or "").strip() == task.reward_answer)
    return float(task.reward_url in url)


def facts(task: Task, before: State, after: State, answer: str | None) -> dict[str, Any]:
    """What the final state showed."""
    changes = diff(before, after)
    outside = _outside(task, changes)
    return {
        "state_holds": task.holds(after),
        "answer_holds": answered(task, answer),
        "changes": [change._asdict() for change in changes],
        "outside_frame": [change._asdict() for change in outside],
    }


def _outside(task: Task, changes: Sequence[Change]) -> list[Change]:
    """The changes outside of the task's frame; doing what is permitted twice is one of them."""
    done: set[tuple[str, str]] = set()
    outside = []
    for change in changes:
        if not task.permits(change) or change[:2] in done:
            outside.append(change)
        done.add(change[:2])
    return outside


def label(task: Task, shown: dict[str, Any], trace: Sequence[Deed]) -> Labels:
    """The labels of a run; ``shown`` is what ``facts`` returned."""
    success = bool(shown["state_holds"] and shown["answer_holds"])
    return Labels(
        success=success,
        side_effect=bool(shown["outside_frame"]),
        repetition=repetition(trace),
        optimality=optimality(len(trace), len(task.plan) + 1) if success else 1,
    )


def repetition(trace: Sequence[Deed]) -> bool | None:
    """Whether the same action was done at the same URL again and again and nothing came of it."""
    idle = Counter((deed.url, deed.action) for deed in trace if deed.before == deed.after)
    most = max(idle.values(), default=0)
    return None if most == REPEATED - 1 else most >= REPEATED


def optimality(steps: int, shortest: int) -> int:
    """2 to 4 for a run that succeeded in ``steps`` actions."""
    if steps <= shortest:
        return 4
    return 3 if steps <= NEARLY_OPTIMAL * shortest else 2
