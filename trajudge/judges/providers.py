"""Rooms that use this one and bring judges of their own: they register, this one asks them.

Nothing is imported here, so that registering costs a command's ``--help`` nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trajudge.judges.entry import JudgeEntry

PROVIDERS: list[Callable[[], Mapping[str, JudgeEntry]]] = []


def register_judges(provide: Callable[[], Mapping[str, JudgeEntry]]) -> None:
    """Add the entries that ``provide`` gives when the judges are first listed."""
    PROVIDERS.append(provide)
