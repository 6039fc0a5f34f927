"""Ways to compute one thing, timed in turns so that all meet the same moments of the machine."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from trajudge.stats.intervals import Floats

RUNS = 3


@dataclass(frozen=True)
class Way:
    """``work`` does 1 / ``factor`` of the whole."""

    name: str
    work: Callable[[], object]
    note: str = ""
    factor: float = 1.0


def compare(title: str, ways: Sequence[Way], rounds: int) -> None:
    """Print medians over the rounds of wall and CPU seconds, and of the ratios to the first way.

    Each ratio is taken within its round, wall / CPU: what slows the machine slows both sides.
    """
    for way in ways:
        way.work()
    seconds = np.array([[_turn(way) for way in ways] for _ in range(rounds)])
    ratios = np.median(seconds / seconds[:, :1], axis=0)
    print(f"\n{title}, medians of {rounds} rounds")
    print(f"{'':46}{'wall s':>9}{'cpu s':>9}{'MB':>7}{'ratio wall / cpu':>20}  computes")
    for way, (wall, cpu), (slower, costlier) in zip(
        ways, np.median(seconds, axis=0), ratios, strict=True
    ):
        name, ratio = way.name + (" *" if way.factor != 1 else ""), f"{slower:.1f} / {costlier:.1f}"
        print(f"{name:46}{wall:9.4f}{cpu:9.4f}{_peak(way):7.1f}{ratio:>20}  {way.note}")


def _turn(way: Way) -> Floats:
    """Wall and CPU seconds of the best of ``RUNS``, (2,)."""
    best = np.full(2, np.inf)
    for _ in range(RUNS):
        started, used = time.perf_counter(), time.process_time()
        way.work()
        spent = time.perf_counter() - started, time.process_time() - used
        best = np.minimum(best, spent)
    return best * way.factor


def _peak(way: Way) -> float:
    """Peak traced megabytes."""
    tracemalloc.start()
    way.work()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return peak
