"""Steps within a number of tokens: shortened texts, then steps left out in the middle."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

from trajudge.trajectories.represent import StepLine
from trajudge.trajectories.tokens import count_tokens
from trajudge.trajectories.truncation.cutting import cut_middle, largest

# Words and tags that a template puts around a step, its number included.
STEP_OVERHEAD = 50
MARKER_TOKENS = 40
# Before steps are left out: tokens that the reasoning, and every other text of a step, may keep.
_REASONING_LIMITS = (1600, 400, 100)
FIELD_LIMIT = 400
_SMALLEST_FIELD = 60


Elision = Literal["start", "middle", "end"]
"""Where steps are left out: in the middle twice as many last ones as first ones stay, at the start
only last ones, at the end first ones and the very last."""


class KeptSteps(NamedTuple):
    """Steps that stay: the first ``head`` ones, then ``elided`` left out, then the others."""

    steps: tuple[StepLine, ...]
    head: int
    elided: int

    @property
    def tokens(self) -> int:
        marker = MARKER_TOKENS if self.elided else 0
        return marker + sum(step_tokens(step) for step in self.steps)


def step_tokens(step: StepLine) -> int:
    texts = (step.url, step.action, step.reasoning)
    return STEP_OVERHEAD + sum(count_tokens(text) for text in texts if text)


def _shortened(step: StepLine, reasoning: int, field: int) -> StepLine:
    return StepLine(
        number=step.number,
        url=step.url and cut_middle(step.url, field),
        action=step.action and cut_middle(step.action, field),
        reasoning=step.reasoning and cut_middle(step.reasoning, reasoning),
    )


def _head(count: int, elision: Elision) -> int:
    """Tell how many of ``count`` kept steps are first ones; at least one is a last one."""
    return {"start": 0, "middle": count // 3, "end": max(count - 1, 0)}[elision]


def _elide(steps: Sequence[StepLine], allowance: int, elision: Elision) -> KeptSteps | None:
    """Keep as many steps as fit, at least the last one; None if not even that fits."""
    sums = [0, *accumulate(step_tokens(step) for step in steps)]

    def size(count: int) -> int:
        head = _head(count, elision)
        tail = len(steps) - (count - head)
        marker = MARKER_TOKENS if count < len(steps) else 0
        return sums[head] + sums[-1] - sums[tail] + marker

    count = largest(len(steps), lambda number: size(number) <= allowance)
    if count == len(steps):
        return KeptSteps(tuple(steps), count, 0) if size(count) <= allowance else None
    head = _head(count, elision)
    tail = len(steps) - (count - head)
    return KeptSteps((*steps[:head], *steps[tail:]), head, tail - head) if count else None


def fewer_steps(
    steps: Sequence[StepLine], allowance: int, elision: Elision = "middle"
) -> KeptSteps | None:
    """Fit the steps into at most ``allowance`` tokens: shorter reasoning, then fewer steps, then as
    little of the last steps as still makes sense."""
    for reasoning in _REASONING_LIMITS:
        short = [_shortened(step, reasoning, FIELD_LIMIT) for step in steps]
        if sum(step_tokens(step) for step in short) <= allowance:
            return KeptSteps(tuple(short), len(short), 0)
    least = [_shortened(step, _SMALLEST_FIELD, _SMALLEST_FIELD) for step in short]
    return _elide(short, allowance, elision) or _elide(least, allowance, elision)
