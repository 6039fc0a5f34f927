"""Truncation of a trajectory to fit a prompt: the first that fits of a sequence of shorter
views."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import cached_property
from itertools import accumulate
from typing import Literal, NamedTuple

from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.represent import Representation, StepLine, final_axtrees, step_lines
from trajudge.trajectories.tokens import byte_count, count_tokens, fits, most_tokens


def cut_middle(text: str, budget: int, *, head_share: float = 2 / 3) -> str:
    """Truncate the middle of ``text`` to at most ``budget`` tokens (if those fit the marker).

    The marker states the number of removed characters. Long texts are cut at line breaks.
    """
    if fits(text, budget):
        return text

    def kept(characters: int) -> str:
        head = int(characters * head_share)
        tail = characters - head
        start, end = _to_line_breaks(text, head, len(text) - tail)
        return f"{text[:start]}\n[... {end - start} characters left out ...]\n{text[end:]}"

    # No text is counted at less than a twentieth of a token per character.
    most = min(len(text) - 1, 20 * budget)
    return kept(largest(most, lambda characters: count_tokens(kept(characters)) <= budget))


def _to_line_breaks(text: str, start: int, end: int) -> tuple[int, int]:
    """Extend the cut to complete lines if a line break is near on both sides."""
    before = text.rfind("\n", max(0, start - 200), start)
    after = text.find("\n", end, end + 200)
    return (start if before < 0 else before), (end if after < 0 else after + 1)


def largest(most: int, holds: Callable[[int], bool]) -> int:
    """Find the largest number in 0..``most`` for which ``holds``, by bisection; 0 if none."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low


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
    """The steps of a view: the first ``head`` ones, then ``elided`` omitted ones, then the
    others."""

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
    """Return how many of ``count`` kept steps are first ones; at least one is a last one."""
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
    """Fit the steps into at most ``allowance`` tokens: shorter reasoning, then fewer steps, then
    a minimum of the last steps."""
    for reasoning in _REASONING_LIMITS:
        short = [_shortened(step, reasoning, FIELD_LIMIT) for step in steps]
        if sum(step_tokens(step) for step in short) <= allowance:
            return KeptSteps(tuple(short), len(short), 0)
    least = [_shortened(step, _SMALLEST_FIELD, _SMALLEST_FIELD) for step in short]
    return _elide(short, allowance, elision) or _elide(least, allowance, elision)


# After an overflow the count was too low by an unknown factor: reduce the budget to this share.
SHRINK = 0.6

MAX_OVERFLOWS = 6


class TruncationLevel(IntEnum):
    """How far a view is truncated."""

    FULL = 0
    PRUNED = 1
    CUT = 2
    ELIDED = 3

    @property
    def label(self) -> str:
        return self.name.lower()


class TruncatedView(NamedTuple):
    """The parts of a trajectory in a prompt; ``elided`` steps are omitted after the first
    ``head`` ones."""

    rung: TruncationLevel
    goal: str
    steps: tuple[StepLine, ...]
    head: int
    elided: int
    answer: str | None
    axtree: str | None

    @property
    def tokens(self) -> int:
        """The estimate for goal, steps, answer and tree together, with their overhead, without
        the template's own words."""
        steps = KeptSteps(self.steps, self.head, self.elided).tokens
        return steps + _tokens(self.goal) + _tokens(self.answer) + _tokens(self.axtree)


def _tokens(text: str | None) -> int:
    return count_tokens(text) if text else 0


class PromptTruncator:
    """Truncated views of one trajectory. A text is counted once, and only if a view depends on
    it; ``at`` returns the view of a level."""

    def __init__(
        self,
        trajectory: Trajectory,
        representation: Representation,
        elision: Elision = "middle",
    ) -> None:
        """Prepare the views; ``elision`` determines which steps are omitted. Raises
        MissingObservation if the representation needs a tree and there is none."""
        self._elision = elision
        self._goal, self._answer = trajectory.goal, trajectory.answer
        self._steps = step_lines(trajectory)
        self._all_steps = KeptSteps(self._steps, len(self._steps), 0)
        self._tree: str | None = None
        self._given_pruned: str | None = None
        if representation.shows_axtree:
            self._tree, self._given_pruned = final_axtrees(trajectory)

    @cached_property
    def _goal_tokens(self) -> int:
        return count_tokens(self._goal)

    @cached_property
    def _rest_tokens(self) -> int:
        """Goal, answer and all steps: everything but the tree."""
        return self._goal_tokens + _tokens(self._answer) + self._all_steps.tokens

    @cached_property
    def _tree_tokens(self) -> int:
        return _tokens(self._tree)

    @cached_property
    def _pruned(self) -> tuple[str, int] | None:
        """The pruned tree and its tokens, if it is the shorter one."""
        if self._given_pruned is None:
            return None
        tokens = count_tokens(self._given_pruned)
        return (self._given_pruned, tokens) if tokens < self._tree_tokens else None

    @property
    def _smallest(self) -> tuple[str | None, int]:
        """The tree that is cut, and its tokens."""
        return self._pruned or (self._tree, self._tree_tokens)

    def at(self, rung: TruncationLevel, budget: int) -> TruncatedView | None:
        """Return the view of this level in at most ``budget`` tokens, or None without one."""
        if rung is TruncationLevel.FULL:
            is_full = self._fits_for_certain(budget) or self._fits(self._tree_tokens, budget)
            return self._view(rung, self._all_steps, self._answer, self._tree) if is_full else None
        if rung is TruncationLevel.PRUNED:
            if self._pruned is None or not self._fits(self._pruned[1], budget):
                return None
            return self._view(rung, self._all_steps, self._answer, self._pruned[0])
        return self._cut(budget) if rung is TruncationLevel.CUT else self._elided(budget)

    def first(
        self, budget: int, start: TruncationLevel = TruncationLevel.FULL
    ) -> TruncatedView | None:
        """Return the first view from ``start`` downwards that fits; None if nothing does."""
        views = (self.at(rung, budget) for rung in TruncationLevel if rung >= start)
        return next((view for view in views if view is not None), None)

    def _fits_for_certain(self, budget: int) -> bool:
        """Return True if the full view certainly fits, without counting, as in most runs."""
        texts = [self._goal, self._answer]
        for _, url, action, reasoning in self._steps:
            texts += (url, action, reasoning)
        most = byte_count("".join(filter(None, texts))) + most_tokens(self._tree or "")
        return STEP_OVERHEAD * len(self._steps) + most <= budget

    def _fits(self, tree_tokens: int, budget: int) -> bool:
        return self._rest_tokens + tree_tokens <= budget

    def _cut(self, budget: int) -> TruncatedView | None:
        """Keep every step, and at least a third of the budget for the tree."""
        tree, tokens = self._smallest
        share = budget - self._rest_tokens
        if tree is None or share < min(tokens, budget // 3):
            return None
        tree = cut_middle(tree, share)
        if not self._fits(count_tokens(tree), budget):
            return None
        return self._view(TruncationLevel.CUT, self._all_steps, self._answer, tree)

    def _elided(self, budget: int) -> TruncatedView | None:
        tree, tokens = self._smallest
        answer = self._answer and cut_middle(self._answer, max(FIELD_LIMIT, budget // 6))
        rest = budget - self._goal_tokens - _tokens(answer)
        kept = fewer_steps(self._steps, rest - min(tokens, budget // 3), self._elision)
        if kept is None:
            return None
        rest -= kept.tokens
        tree = tree and cut_middle(tree, rest)
        rest -= _tokens(tree)
        return self._view(TruncationLevel.ELIDED, kept, answer, tree) if rest >= 0 else None

    def _view(
        self, rung: TruncationLevel, kept: KeptSteps, answer: str | None, axtree: str | None
    ) -> TruncatedView:
        return TruncatedView(
            rung=rung,
            goal=self._goal,
            steps=kept.steps,
            head=kept.head,
            elided=kept.elided,
            answer=answer,
            axtree=axtree,
        )


class Views(Iterator[TruncatedView]):
    """Shorter and shorter views: the first that fits ``budget`` (tokens), then one for every
    overflow.

    Request the next one only after the provider refused the last as too long; ``room`` are the
    tokens that it reported as available, if it did. Ends after ``MAX_OVERFLOWS`` refusals, or at
    the shortest useful view; empty if nothing fits. Raises MissingObservation if the representation
    needs a tree and there is none.
    """

    def __init__(
        self,
        trajectory: Trajectory,
        representation: Representation,
        budget: int,
        elision: Elision = "middle",
    ) -> None:
        self._truncator = PromptTruncator(trajectory, representation, elision)
        self._budget = budget
        self.room: int | None = None
        self._made = self._descend()

    def __next__(self) -> TruncatedView:
        return next(self._made)

    def _descend(self) -> Iterator[TruncatedView]:
        view = self._truncator.first(self._budget)
        for _ in range(MAX_OVERFLOWS + 1):
            if view is None:
                return
            self.room = None
            yield view
            view = self._below(view)

    def _below(self, view: TruncatedView) -> TruncatedView | None:
        """Return the next view: one that fits the available tokens; if their number is unknown,
        the pruned tree instead of the full one, else one that fits a share of the last view."""
        if self.room is not None:
            start = (
                TruncationLevel.PRUNED
                if view.rung is TruncationLevel.FULL
                else max(TruncationLevel.CUT, view.rung)
            )
            return self._truncator.first(min(self.room, view.tokens - 1), start)
        if view.rung is TruncationLevel.FULL:
            pruned = self._truncator.at(TruncationLevel.PRUNED, view.tokens)
            if pruned is not None:
                return pruned
        return self._truncator.first(int(SHRINK * view.tokens), max(TruncationLevel.CUT, view.rung))


def views(
    trajectory: Trajectory,
    representation: Representation,
    budget: int,
    *,
    elision: Elision = "middle",
) -> Views:
    """Iterate over the views of a trajectory, see ``Views``."""
    return Views(trajectory, representation, budget, elision)
