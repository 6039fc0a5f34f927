"""One BLAS thread for products that are too small to share.

The matrix products here take microseconds; waking a pool of threads for each makes the whole
several times slower on a busy machine and gains little on an idle one. One thread also adds
in one order, so the digits are the same wherever the pools are sized differently.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache
from importlib import import_module
from typing import Any


@lru_cache(maxsize=1)
def _controller() -> Any:
    """Find the thread pools of the libraries loaded by now, numpy's among them."""
    return import_module("threadpoolctl").ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    """Inside, products run on the calling thread; afterwards the pools are as they were."""
    limited: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limited
