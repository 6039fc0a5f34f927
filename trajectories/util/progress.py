"""Progress of fetching, on stderr: a bar on a terminal, a plain line now and then elsewhere.

Silent until something is really downloaded, so that a complete local copy reads without a word.
"""

from __future__ import annotations

import sys
from time import monotonic
from typing import TYPE_CHECKING

from trajudge.trajectories.hub.mirror import HubCopy
from trajudge.trajectories.util.terminal import terminal_console

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

_LINE_EVERY_SECONDS = 10.0


class Progress:
    """Counts ``total`` items as ``advance`` is called; says what ``copy`` downloaded meanwhile."""

    def __init__(self, copy: HubCopy, total: int) -> None:
        self.copy = copy
        self.total = total
        self.done = 0
        self._bar: Bar | None = None
        self._last_line = 0.0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self) -> None:
        """One more item is done."""
        self.done += 1
        if not self.copy.counts.downloaded:
            return
        if sys.stderr.isatty():
            self._show_bar()
        elif monotonic() - self._last_line > _LINE_EVERY_SECONDS or self.done == self.total:
            self._last_line = monotonic()
            sys.stderr.write(f"fetching: {self.done}/{self.total}, {self._told()}\n")

    def _show_bar(self) -> None:
        if self._bar is None:
            from rich.progress import Progress as Bar  # noqa: PLC0415 - only where somebody looks

            self._bar = Bar(console=terminal_console(stderr=True), transient=True)
            self._bar.add_task("fetching", total=self.total)
            self._bar.start()
        task = self._bar.task_ids[0]
        self._bar.update(task, completed=self.done, description=f"fetching ({self._told()})")

    def _told(self) -> str:
        counts = self.copy.counts
        missing = f", {counts.missing} not in the dataset" if counts.missing else ""
        return f"{counts.downloaded} files, {counts.bytes / 1e6:.1f} MB{missing}"
