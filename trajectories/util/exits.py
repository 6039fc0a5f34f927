"""How a command ends: exit codes, and a user's mistake as one sentence instead of a traceback."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable
from typing import NoReturn, ParamSpec

DONE = 0
FAILURES = 1
MISTAKE = 2
INTERRUPTED = 130

P = ParamSpec("P")


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one sentence (UserError), not the usage of every option."""

    def error(self, message: str) -> NoReturn:
        from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415 - --help needs none of it

        raise UserError(f"{message}: see  {self.prog} --help")


def user_errors(command: Callable[P, int]) -> Callable[P, int]:
    """A command that returns its exit code: UserError is printed to stderr and gives 2, Ctrl-C
    gives 130. Everything else is a defect and keeps its traceback."""

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            return command(*args, **kwargs)
        except KeyboardInterrupt:
            sys.stderr.write("interrupted\n")
            return INTERRUPTED
        except Exception as error:
            # Imported late: a command's --help must not wait for the data model.
            from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415
            from trajudge.trajectories.util.terminal import one_line  # noqa: PLC0415

            if not isinstance(error, UserError):
                raise
            sys.stderr.write(f"error: {one_line(str(error))}\n")
            return MISTAKE

    return guarded
