"""How far a run is: one live line on a terminal or in a notebook, a plain line now and then
elsewhere."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TextIO

from rich.live import Live
from rich.text import Text

from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.util.terminal import one_line, terminal_console

PLAIN_EVERY = 10.0
NOTEBOOK_EVERY = 0.25
PLAIN_AT_LEAST = 1.0  # seconds between two plain lines, whatever happens
TOLD_EVERY = 0.5


class RunProgress:
    """Counts judgments as they come and shows them on ``stream`` (standard error).

    ``total`` judgments are due, ``earlier`` of them stood in the journal already; ``name`` says
    whose, where several runs follow each other.
    """

    def __init__(
        self, total: int, earlier: int = 0, stream: TextIO | None = None, *, name: str = ""
    ) -> None:
        self.name = name
        self.total = total
        self.earlier = earlier
        self.statuses: Counter[Status] = Counter()
        self.cached = 0
        self.cost = 0.0
        self.unpriced = False
        self.waits = ""
        self._waits_told = False
        self._notebook = NotebookLine() if stream is None and in_notebook() else None
        self._console = terminal_console(file=stream or sys.stderr)
        self._live = (
            Live(console=self._console, refresh_per_second=4, transient=True)
            if self._console.is_terminal and not self._notebook
            else None
        )
        self._started = self._shown = time.monotonic()

    def __enter__(self) -> RunProgress:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live:
            self._live.stop()
        if self._notebook:
            self._notebook.show(self.line())
        elif self._live:
            self._console.print(self._one_row())
        else:
            self._console.print(self.line(), soft_wrap=True)

    def add(self, judgment: Judgment) -> None:
        """Count one judgment; what it cost counts unless the cache answered."""
        self.statuses[judgment.status] += 1
        calls = judgment.calls
        self.cached += bool(calls) and all(call.cached for call in calls)
        fresh = [call.cost for call in calls if not call.cached]
        self.cost += sum(cost for cost in fresh if cost is not None)
        self.unpriced |= any(cost is None for cost in fresh)
        self._show()

    def tell(self, waits: str) -> None:
        """Show why calls wait, "" if none does; soon where there was no such reason before."""
        self.waits = waits
        self._waits_told &= bool(waits)
        rested = time.monotonic() - self._shown >= PLAIN_AT_LEAST
        self._show(at_once=bool(waits) and not self._waits_told and rested)

    def _show(self, *, at_once: bool = False) -> None:
        if self._live:
            self._live.update(self._one_row())
        elif self._notebook:
            if time.monotonic() - self._shown >= NOTEBOOK_EVERY:
                self._shown = time.monotonic()
                self._notebook.show(self.line())
        elif at_once or time.monotonic() - self._shown >= PLAIN_EVERY:
            self._shown = time.monotonic()
            self._waits_told = bool(self.waits)
            self._console.print(self.line(), soft_wrap=True)

    def _one_row(self) -> Text:
        """Return the line for a terminal, cut with an ellipsis where it has more columns."""
        return Text(self.line(), no_wrap=True, overflow="ellipsis")

    def line(self) -> str:
        """Return for example ``judged 40/120 (12 cached, 0 from before), none failed, $0.31,
        9.8/s``."""
        fresh = sum(self.statuses.values())
        done = fresh + self.earlier
        failed = [
            f"{count} {status}"
            for status, count in sorted(self.statuses.items())
            if status is not Status.OK
        ]
        whose = f"{one_line(self.name)}: " if self.name else ""
        rate = fresh / max(time.monotonic() - self._started, 1e-9)
        money = f"${self.cost:.2f}" + (" + calls of unknown price" if self.unpriced else "")
        parts = [
            f"{whose}judged {done}/{self.total} ({self.cached} cached, {self.earlier} from before)",
            f"failed {', '.join(failed)}" if failed else "none failed",
            money,
            f"{rate:.1f}/s",
        ]
        if fresh and done < self.total:
            parts.append(f"{_duration((self.total - done) / rate)} left")
        if self.waits:
            parts.append(self.waits)
        return ", ".join(parts)


def in_notebook() -> bool:
    """Tell whether this is the process of a notebook, whose cells show what is displayed."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython  # noqa: PLC0415 - an interactive shell has it

    return hasattr(get_ipython(), "kernel")


class NotebookLine:
    """One line below a cell that is replaced by the next."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str) -> None:
        """Replace the line. It belongs to the cell that showed it first."""
        from IPython.display import display  # noqa: PLC0415 - a notebook has it

        shown = {"text/plain": text}
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)


@asynccontextmanager
async def telling(progress: RunProgress, waits: Callable[[], str] | None) -> AsyncIterator[None]:
    """Show while the block runs why it waits, also when no judgment comes."""

    async def tell() -> None:
        while waits is not None:
            await asyncio.sleep(TOLD_EVERY)
            progress.tell(waits())

    task = asyncio.create_task(tell())
    try:
        yield
    finally:
        task.cancel()
        progress.waits = ""


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
