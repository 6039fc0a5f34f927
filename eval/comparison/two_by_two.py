"""Who of two judges was right on the same trajectories, as counts, and whether it may be chance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from trajudge.eval.stats.judging.comparison import mcnemar


class PairedCounts(NamedTuple):
    """Trajectories by who was right; ``p`` is McNemar's exact two-sided p, None where the two are
    right and wrong on the same ones."""

    both_right: int
    only_first: int
    only_second: int
    both_wrong: int
    p: float | None


def paired_counts(right: Iterable[tuple[bool, bool]]) -> PairedCounts:
    """Count over trajectories whether the first and the second judge were right."""
    table = np.array([*right], dtype=bool).reshape(-1, 2)
    first, second = table[:, 0], table[:, 1]
    test = mcnemar(first, second)
    return PairedCounts(
        both_right=int((first & second).sum()),
        only_first=test.only_first,
        only_second=test.only_second,
        both_wrong=int((~first & ~second).sum()),
        p=test.p_value if test.only_first + test.only_second else None,
    )
