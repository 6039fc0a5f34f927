"""What stands for an abstention in its group: the mean of the others, once all are known.

A trainer that normalises rewards within a group gives that value the advantage 0, and the others
those of the group without it. The members may be asked for one by one, by several processes.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import suppress

_MOST = 10_000  # groups in memory; the oldest is forgotten


class _Group:
    def __init__(self, size: int) -> None:
        self.size = size
        self.values: dict[str, float | None] = {}
        self.is_whole = asyncio.Event()


class RewardGroups:
    """The values of groups by their names, None for a member that abstained."""

    def __init__(self) -> None:
        self._groups: OrderedDict[str, _Group] = OrderedDict()

    def add(self, name: str, size: int, member: str, value: float | None) -> None:
        """Take down a member of a group of ``size``; one that is asked for again counts once."""
        group = self._groups.setdefault(name, _Group(size))
        self._groups.move_to_end(name)
        group.values[member] = value
        if len(group.values) >= group.size:
            group.is_whole.set()
        if len(self._groups) > _MOST:
            self._groups.popitem(last=False)

    async def mean(self, name: str, patience: float) -> float | None:
        """Return the mean of a group's values once its members are known, or of those that are
        known after ``patience`` seconds; None: of none."""
        group = self._groups.get(name)
        if group is None:
            return None
        with suppress(TimeoutError):
            await asyncio.wait_for(group.is_whole.wait(), patience)
        known = [value for value in group.values.values() if value is not None]
        return sum(known) / len(known) if known else None
