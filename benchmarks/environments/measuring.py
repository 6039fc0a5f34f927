"""CPU time of this process and its browsers, and one printed row for each figure."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.environments.miniwob_probe import cpu

_BEFORE = Path(__file__).parents[1] / "figures" / "environments.txt"
_NAME, _FIGURE, _GOAL, _MET = 50, 18, 12, 8


@dataclass
class Spent:
    """Seconds."""

    wall: float = 0.0
    cpu: float = 0.0


@contextmanager
def spent(clock: Callable[[], float] = cpu) -> Iterator[Spent]:
    """Measure a block. The default ``clock`` counts browsers, but only in hundredths of a second:
    without a browser use ``time.process_time``."""
    used = Spent(-time.perf_counter(), -clock())
    yield used
    used.cpu += clock()
    used.wall += time.perf_counter()


def resident() -> float:
    """Return the megabytes of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def say(name: str, figure: str, goal: str = "", met: bool | None = None, note: str = "") -> None:
    """Print a row: what is measured, its goal, whether it is met, and the figure of the run that
    ``python -m benchmarks environments`` kept last, where it differs."""
    verdict = "" if met is None else "met" if met else "NOT MET"
    before = _before(name)
    if before not in ("", figure):
        note = f"before: {before}; {note}".rstrip("; ")
    row = f"{name:{_NAME}}{figure:>{_FIGURE}}  {goal:{_GOAL}}{verdict:{_MET}}{note}"
    print(row.rstrip(), flush=True)


def _before(name: str) -> str:
    if not _BEFORE.is_file():
        return ""
    lines = _BEFORE.read_text(encoding="utf-8").splitlines()
    rows = (line for line in lines if line[:_NAME].rstrip() == name)
    return next((row[_NAME : _NAME + _FIGURE].strip() for row in rows), "")
