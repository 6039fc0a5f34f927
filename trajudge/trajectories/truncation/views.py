"""Ever shorter views of a trajectory, of which the first that fits is taken."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.represent import Representation, StepLine, final_axtrees, step_lines
from trajudge.trajectories.tokens import byte_count, count_tokens, most_tokens
from trajudge.trajectories.truncation.cutting import cut_middle
from trajudge.trajectories.truncation.steps import (
    FIELD_LIMIT,
    STEP_OVERHEAD,
    Elision,
    KeptSteps,
    fewer_steps,
)

# An overflow says that the counter was too low by an unknown factor: ask for this share less.
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
    """Parts of a trajectory that a prompt shows; ``elided`` steps are left out after the first
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
    """Truncated views of one trajectory. Texts are counted only when a view depends on them, and
    once; ``at`` builds the view of a level."""

    def __init__(
        self,
        trajectory: Trajectory,
        representation: Representation,
        elision: Elision = "middle",
    ) -> None:
        """Prepare the views; ``elision`` is where steps are left out. Raises MissingObservation if
        the representation needs a tree and there is none."""
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
        """Build the view of this level in at most ``budget`` tokens, or None if it has none."""
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
        """Tell whether the full view is too short to be worth counting, as in most runs."""
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
    """Ever shorter views: the first that fits ``budget`` (tokens), then one for every overflow.

    Ask for the next one only after the provider refused the last as too long; ``room`` are the
    tokens that it said would fit, where it did. Ends after ``MAX_OVERFLOWS`` refusals, or when
    nothing shorter makes sense; empty if nothing fits. Raises MissingObservation if the
    representation needs a tree and there is none.
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
        """Build the next view: what fits into the room; where none is known, the pruned tree in
        place of the full one, else what fits into a share of the last view."""
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
