"""How a command ends: exit codes, and a user's mistake as one sentence instead of a traceback."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec

from trajectories.errors import UserError

DONE = 0
FINDINGS = 1
MISTAKE = 2
INTERRUPTED = 130

P = ParamSpec("P")


def user_errors(command: Callable[P, int]) -> Callable[P, int]:
    """A command that returns its exit code: UserError is printed to stderr and gives 2, Ctrl-C
    gives 130. Everything else is a defect and keeps its traceback."""

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            return command(*args, **kwargs)
        except UserError as error:
            sys.stderr.write(f"error: {error}\n")
            return MISTAKE
        except KeyboardInterrupt:
            sys.stderr.write("interrupted\n")
            return INTERRUPTED

    return guarded
