"""Work that reads files or computes, away from the loop that answers requests."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

import anyio.to_thread

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Call a function in a thread of its own and return what it returns."""
    return await anyio.to_thread.run_sync(partial(function, *arguments, **options))
