"""Progress of a command, on standard error: one bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from trajudge.trajectories.util.terminal import terminal_console

ShowProgress = Callable[[str, int, int], None]
"""Takes what is counted, how many are done and how many there are."""


@contextmanager
def progress_bar() -> Iterator[ShowProgress]:
    """Yield the function that shows progress; the bar appears with its first call and goes away
    with the block."""
    if not sys.stderr.isatty():
        yield lambda label, done, total: None
        return
    from rich.progress import Progress, TaskID  # noqa: PLC0415 - only where somebody looks

    progress = Progress(console=terminal_console(stderr=True), transient=True)
    rows: list[TaskID] = []

    def show(label: str, done: int, total: int) -> None:
        if not rows:
            shown.enter_context(progress)
            rows.append(progress.add_task(label, total=total))
        progress.update(rows[0], description=label, completed=done, total=total)

    with ExitStack() as shown:
        yield show
