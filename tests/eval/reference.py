"""Slow and obvious forms, written as the definitions read, that the tests compare with."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from trajudge.eval.scoring.metrics import METRICS
from trajudge.stats.intervals import Floats, Ints
from trajudge.stats.suites import Levels


def resample_rows(cluster: Ints, stratum: Ints, rng: np.random.Generator) -> Ints:
    """Row numbers of one stratified cluster resample."""
    rows = []
    for h in np.unique(stratum):
        names = np.unique(cluster[stratum == h])
        for name in rng.choice(names, size=len(names)):
            rows.append(np.flatnonzero((stratum == h) & (cluster == name)))
    return np.concatenate(rows)


def total_rows(values: Floats, rows: Ints) -> Floats:
    return np.asarray(values[rows].sum(axis=0))


def hierarchical_loop(
    outcomes: dict[int, dict[int, dict[tuple[int, ...], list[int]]]],
    rng: np.random.Generator,
    levels: Levels,
    *,
    pooled: bool = False,
) -> list[float]:
    """One replicate of every app's rate, from app -> scenario -> configuration -> outcomes."""
    rates = []
    for scenarios in outcomes.values():
        names = list(scenarios)
        if levels.scenarios:
            names = [names[i] for i in rng.integers(0, len(names), len(names))]
        sums = [scenario_loop(scenarios[name], rng, levels) for name in names]
        if pooled:
            flat = [value for cells in sums for cell in cells for value in cell]
            rates.append(float(np.mean(flat)))
        else:
            rates.append(float(np.mean([np.mean([np.mean(c) for c in cells]) for cells in sums])))
    return rates


def scenario_loop(
    cells: dict[tuple[int, ...], list[int]], rng: np.random.Generator, levels: Levels
) -> list[Floats]:
    """The rollouts of every configuration copy in one copy of a scenario."""
    axes = [sorted(set(values)) for values in zip(*cells, strict=True)]
    switches = levels.axis_switches(len(axes))
    for _ in range(100):
        chosen = [
            [axis[i] for i in rng.integers(0, len(axis), len(axis))] if on else axis
            for axis, on in zip(axes, switches, strict=True)
        ]
        drawn = [cells[cell] for cell in product(*chosen) if cell in cells]
        if drawn:
            break
    else:
        drawn = list(cells.values())
    return [
        np.asarray(rng.choice(values, len(values)) if levels.rollouts else values, float)
        for values in drawn
    ]


def confusion_columns(verdicts: ArrayLike, truth: ArrayLike) -> Floats:
    """TP, FP, FN and TN of G judges' verdicts (N, G) and the truth (N,): (N, 4 * G)."""
    said, right = np.asarray(verdicts, dtype=bool), np.asarray(truth, dtype=bool)[:, None]
    cells = [said & right, said & ~right, ~said & right, ~said & ~right]
    return np.concatenate(cells, axis=1).astype(float)


def confusion_statistic(*names: str) -> Callable[[Floats], Floats]:
    """Totals (..., 4 * G) to metrics (..., len(names) * G)."""

    def statistic(totals: Floats) -> Floats:
        cells = np.stack(np.split(totals, 4, axis=-1), axis=-1)
        return np.concatenate([METRICS[name].value(cells) for name in names], axis=-1)

    return statistic
