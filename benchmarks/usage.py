"""What this process and all that it started use: a browser is a family of processes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def _stat(pid: str) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def family() -> list[str]:
    """This process and all that come from it."""
    parents: dict[str, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[folder.name] = _stat(folder.name)[1]
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            continue
    found = [str(os.getpid())]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def cpu() -> float:
    """Seconds that the family has used, its ended members included."""
    total = 0
    for pid in family():
        try:
            total += sum(map(int, _stat(pid)[11:15]))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total / _TICKS


def resident() -> float:
    """Megabytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE / 1e6


@dataclass
class Spent:
    """Seconds."""

    wall: float = 0.0
    cpu: float = 0.0


@contextmanager
def spent() -> Iterator[Spent]:
    used = Spent(-time.perf_counter(), -cpu())
    yield used
    used.wall += time.perf_counter()
    used.cpu += cpu()
