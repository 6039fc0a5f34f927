"""The end of commands: exit codes, user errors as one sentence; and limits of settings."""

from __future__ import annotations

import errno
import functools
import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, ParamSpec

from trajudge.util.errors import UserError
from trajudge.util.files import UnsafeFile
from trajudge.util.masking import without_known
from trajudge.util.terminal import one_line

OK = 0

FAILURES = 1

USAGE_ERROR = 2

INTERRUPTED = 130

BROKEN_PIPE = 141  # as a shell says of a program that SIGPIPE ended

# Errors of the system that any reading or writing may meet, and what the user can do.
_MENDS = {
    errno.ENOSPC: "cannot be written ({}): make room and start the same command again",
    errno.ENAMETOOLONG: "{}: give a shorter path",
    **dict.fromkeys(
        (errno.EACCES, errno.EISDIR, errno.ELOOP, errno.ENOTDIR, errno.EIO, errno.ENXIO),
        "cannot be read or written ({}): name another file",
    ),
}

_NOT_REGULAR = "{}: name a regular file"

P = ParamSpec("P")


def user_errors(command: Callable[P, int]) -> Callable[P, int]:
    """Wrap a command that returns its exit code: UserError is printed to stderr with exit code
    2, Ctrl-C gives 130, a closed output pipe (``| head``) 141, a full disk and an unusable path
    2. Other exceptions are defects and keep their traceback. A replaced standard error is
    restored."""

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> int:
        outer = sys.stderr
        try:
            code = command(*args, **kwargs)
            sys.stdout.flush()
            return code
        except KeyboardInterrupt:
            sys.stderr.write("interrupted\n")
            return INTERRUPTED
        except BrokenPipeError:
            if not _output_is_closed():
                raise
            return BROKEN_PIPE
        except OSError as error:
            unsafe = isinstance(error, UnsafeFile)
            mend = _NOT_REGULAR if unsafe else _MENDS.get(error.errno or 0)
            if mend is None or (error.filename is None and error.errno != errno.ENOSPC):
                raise
            if error.errno == errno.ENOSPC:
                _give_up_full_output()
            place = error.filename or "the output"
            sys.stderr.write(f"error: {one_line(f'{place}: {mend.format(error.strerror)}')}\n")
            return USAGE_ERROR
        except UserError as error:
            sys.stderr.write(f"error: {one_line(without_known(str(error)))}\n")
            return USAGE_ERROR
        finally:
            sys.stderr = outer

    return guarded


@contextmanager
def saved_behind_output() -> Iterator[Callable[..., None]]:
    """Print a result and save it, so that neither is lost if the other fails.

    The block calls the yielded function with each function that saves, and its arguments, and
    prints. The saves run after the block, in order, also if standard output is closed or full, or
    an earlier save fails; then the error is raised.
    """
    saves: list[Callable[[], object]] = []

    def save(work: Callable[..., object], *details: Any, **options: Any) -> None:
        saves.append(functools.partial(work, *details, **options))

    try:
        yield save
        sys.stdout.flush()
    finally:
        with ExitStack() as stack:
            for work in reversed(saves):
                stack.callback(work)


def _output_is_closed() -> bool:
    """Return True if nobody reads standard output; its rest is then discarded, because the
    interpreter would report an error at exit."""
    waiting = select.poll()
    waiting.register(sys.stdout.fileno(), 0)
    if not any(event & select.POLLERR for _, event in waiting.poll(0)):
        return False
    _discard_output()
    return True


def _give_up_full_output() -> None:
    """Flush standard output; if there is no space, its rest is discarded."""
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


HIGHEST_PORT = 65535

LARGEST = 2**63 - 1  # what a run's manifest can hold

# More is a slip, and would fit in no machine's memory.
MOST_SAMPLES = 10_000

MOST_CASES = 10_000

MOST_PAGE_LOADS = 10_000  # of a task, that a fault plan may count on
