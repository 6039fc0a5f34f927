"""Answers about the names of a shop's wares."""

from __future__ import annotations

from trajudge.environments.model.spec import AnswerKind
from trajudge.environments.verify.answers import answered
from trajudge.environments.verify.truth import ResolvedAnswer

MUGS = ("Oak Mug", "Dark Oak Mug", "Slate Mug", "Wool Throw", "Café Table")


def right(
    kind: AnswerKind,
    value: str | tuple[str, ...],
    message: str | None,
    goal: str = "",
    among: tuple[str, ...] = (),
) -> bool | None:
    values = (value,) if isinstance(value, str) else value
    (fact,) = answered([ResolvedAnswer(kind, values, among)], message, goal)
    return fact.right
