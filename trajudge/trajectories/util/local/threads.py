"""Threads of the linear algebra below NumPy and SciPy.

Each of the two starts a thread a core when it is loaded, and these wait by running: a command that
only reads and counts pays for them. What a command multiplies is small, and does as well with one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

LIMIT = "OPENBLAS_NUM_THREADS"
_limited = set[str]()


def limit_threads() -> None:
    """Have NumPy and SciPy start no threads in this process, if the user has set no number."""
    if LIMIT not in os.environ:
        os.environ[LIMIT] = "1"
        _limited.add(LIMIT)


def users_environment() -> Mapping[str, str]:
    """Return the environment as the user set it, for programs of theirs."""
    return {name: value for name, value in os.environ.items() if name not in _limited}
