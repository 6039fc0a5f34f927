"""How far two experts agree on the trajectories that both annotated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from trajudge.annotations.model import Annotation, Role
from trajudge.trajectories.model import Record

Label = Literal["success", "side_effect", "repetition", "optimality"]


class Agreement(Record):
    """Over the ``n`` pairs where neither expert was unsure. None: not defined (no pair, or both
    experts gave one and the same value throughout)."""

    label: Label
    n: int
    exact: float | None
    kappa: float | None


def agreement(annotations: Iterable[Annotation], label: Label) -> Agreement:
    """Share of equal values and Cohen's kappa between primary and secondary annotations."""
    pairs = label_pairs(annotations, label)
    equal = sum(first == second for first, second in pairs)
    return Agreement(
        label=label,
        n=len(pairs),
        exact=equal / len(pairs) if pairs else None,
        kappa=cohen_kappa(pairs),
    )


def label_pairs(annotations: Iterable[Annotation], label: Label) -> list[tuple[int, int]]:
    """(primary, secondary) values of the doubly annotated trajectories, unsure ones left out.

    The first second opinion of a trajectory counts, whatever the order of the annotations.
    """
    opinions: dict[Role, dict[object, int | None]] = {role: {} for role in Role}
    for annotation in annotations:
        opinions[annotation.role].setdefault(annotation.key, getattr(annotation, label))
    second = opinions[Role.SECONDARY]
    return [
        (first, other)
        for key, first in opinions[Role.PRIMARY].items()
        if first is not None and (other := second.get(key)) is not None
    ]


def cohen_kappa(pairs: Sequence[tuple[int, int]]) -> float | None:
    """Unweighted kappa (Cohen 1960): (observed - expected agreement) / (1 - expected).

    None without a pair and where chance alone explains everything (expected = 1).
    """
    n = len(pairs)
    observed = n * sum(first == second for first, second in pairs)
    left = Counter(first for first, _ in pairs)
    right = Counter(second for _, second in pairs)
    expected = sum(left[value] * right[value] for value in left)
    return None if expected == n * n else (observed - expected) / (n * n - expected)
