"""Slow and obvious forms, written as the definitions read, that the tests compare with."""

from __future__ import annotations

import numpy as np

from eval.stats.interval import Floats, Ints


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
