"""How far a run is: one live line on a terminal or in a notebook, a plain line or a JSON object now
and then elsewhere, and a line in ``run.log``."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TextIO

from trajudge.judges.model import Judgment, Status
from trajudge.util.tables import all_folded
from trajudge.util.terminal import PLAIN_EVERY, JsonLines, count_of, one_line, terminal_console

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

log = logging.getLogger(__name__)

LOGGED_EVERY = 60.0
PACE_OF = 60.0  # seconds, the last ones: calls that wait are not as fast as cached ones were
NOTEBOOK_EVERY = 0.25
PLAIN_AT_LEAST = 1.0  # seconds between two plain lines, whatever happens
TOLD_EVERY = 0.5


FIRST_ANSWERS = 20
UNREAD_SHARE = 0.2


def _live_line(stream: TextIO) -> Live:
    from rich.live import Live  # noqa: PLC0415 - only where somebody looks

    return Live(console=terminal_console(file=stream), refresh_per_second=4, transient=True)


class RunProgress:
    """Counts judgments as they come and shows them on ``stream`` (standard error).

    ``total`` judgments are due, ``earlier`` of them stood in the journal already, of which
    ``failed_before`` failed; ``name`` says whose, where several runs follow each other. ``remedy``
    is what to try where a fifth of the first answers cannot be read.
    """

    def __init__(
        self,
        total: int,
        earlier: int = 0,
        failed_before: int = 0,
        *,
        stream: TextIO | None = None,
        name: str = "",
        remedy: str = "",
    ) -> None:
        self.name = name
        self._remedy = remedy
        self.total = total
        self.earlier = earlier
        self.failed_before = failed_before
        self.statuses: Counter[Status] = Counter()
        self.cached = 0
        self.cost = 0.0
        self.unpriced = 0
        self.waits = ""
        self._waits_told = False
        self._json = sys.stderr if stream is None and isinstance(sys.stderr, JsonLines) else None
        self._notebook = NotebookLine() if stream is None and in_notebook() else None
        self._stream = stream or sys.stderr
        shows_live = self._stream.isatty() and not self._notebook
        self._live = _live_line(self._stream) if shows_live else None
        self._started = self._shown = self._logged = time.monotonic()
        self._pace = Pace(self._started)

    def __enter__(self) -> RunProgress:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live:
            self._live.stop()
        if self._json:
            self._json.event("progress", **self.fields())
        elif self._notebook:
            self._notebook.show(self.line())
        elif self._live:
            self._live.console.print(self._one_row())
        else:
            self._print(self.line())

    def add(self, judgment: Judgment) -> None:
        """Count one judgment; what it cost counts unless the cache answered."""
        self.statuses[judgment.status] += 1
        calls = judgment.calls
        self.cached += bool(calls) and all(call.cached for call in calls)
        for call in calls:
            if call.cost is None:
                self.unpriced += not call.cached
            elif not call.cached:
                self.cost += call.cost
        self._pace.count(self.statuses.total())
        if self.statuses.total() == FIRST_ANSWERS:
            unread = self.statuses[Status.UNPARSABLE]
            if unread >= UNREAD_SHARE * FIRST_ANSWERS and self._remedy:
                self._note(
                    f"{unread} of the first {FIRST_ANSWERS} answers cannot be read: {self._remedy}"
                )
        self._show()

    def _note(self, text: str) -> None:
        if self._json:
            self._json.event("warning", message=text)
        elif self._live:
            self._live.console.print(f"warning: {text}")
        else:
            self._print(f"warning: {text}")

    def tell(self, waits: str) -> None:
        """Show why calls wait, "" if none does; soon where there was no such reason before."""
        self.waits = waits
        self._waits_told &= bool(waits)
        now = time.monotonic()
        if now - self._logged >= LOGGED_EVERY:
            self._logged = now
            log.info("%s", self.line())
        rested = now - self._shown >= PLAIN_AT_LEAST
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
            if self._json:
                self._json.event("progress", **self.fields())
            else:
                self._print(self.line())

    def _print(self, text: str) -> None:
        self._stream.write("".join(f"{row}\n" for row in all_folded([text])))
        self._stream.flush()

    def _one_row(self) -> Text:
        """Return the line for a terminal, cut with an ellipsis where it has more columns."""
        from rich.text import Text  # noqa: PLC0415 - only where somebody looks

        return Text(self.line(), no_wrap=True, overflow="ellipsis")

    @property
    def fresh(self) -> int:
        """Judgments of this session."""
        return self.statuses.total()

    @property
    def left(self) -> int:
        """Judgments that are still due."""
        return max(0, self.total - self.earlier - self.fresh)

    @property
    def failed(self) -> dict[str, int]:
        """Counts of this session's statuses but ``ok``."""
        return {str(s): n for s, n in sorted(self.statuses.items()) if s is not Status.OK}

    @property
    def predicted_cost(self) -> float | None:
        """US dollars of this session in the end, if what is left costs what was asked so far; None
        before anything was asked, or where a price is not known."""
        asked = self.fresh - self.cached
        if not asked or self.unpriced:
            return None
        return self.cost * (1 + self.left / asked)

    def seconds_left(self) -> float | None:
        """Predict the seconds to the end, at the pace of the last minute; None without one."""
        rate = self._pace.rate(time.monotonic())
        return self.left / rate if rate else None

    def fields(self) -> dict[str, Any]:
        """Return what ``line`` tells, for programs."""
        seconds = self.seconds_left()
        ends = None if seconds is None else datetime.now(UTC) + timedelta(seconds=seconds)
        return {
            "run": self.name,
            "judged": self.fresh + self.earlier,
            "total": self.total,
            "cached": self.cached,
            "from_before": self.earlier,
            "failed": self.failed,
            "failed_before": self.failed_before,
            "cost": round(self.cost, 6),
            "cost_is_complete": not self.unpriced,
            "calls_of_unknown_cost": self.unpriced,
            "predicted_cost": _rounded(self.predicted_cost, 6),
            "per_second": round(self._pace.rate(time.monotonic()), 3),
            "seconds_left": _rounded(seconds, 1),
            "ends_at": ends and ends.isoformat(timespec="seconds"),
            "waits": self.waits,
        }

    def line(self) -> str:
        """Return for example ``judged 40/120 (12 cached, 0 from before), none failed, $0.31 of
        about $1.20, 9.8/s, 8 s left (until 14:03)``."""
        whose = f"{one_line(self.name)}: " if self.name else ""
        failed = [f"{count} {status}" for status, count in self.failed.items()]
        failed += [f"{self.failed_before} before"] if self.failed_before else []
        parts = [
            f"{whose}judged {self.fresh + self.earlier}/{self.total} ({self.cached} cached, "
            f"{self.earlier} from before)",
            f"failed {', '.join(failed)}" if failed else "none failed",
            self._money(),
            f"{self._pace.rate(time.monotonic()):.1f}/s",
        ]
        seconds = self.seconds_left()
        if self.left and seconds is not None:
            parts.append(f"{_duration(seconds)} left (until {_clock(seconds)})")
        if self.waits:
            parts.append(self.waits)
        return ", ".join(parts)

    def _money(self) -> str:
        unknown = f"{count_of(self.unpriced, 'call')} of unknown cost"
        spent = f"${self.cost:.2f}" + (f" + {unknown}" if self.unpriced else "")
        predicted = self.predicted_cost
        return f"{spent} of about ${predicted:.2f}" if self.left and predicted else spent


class Pace:
    """Judgments per second in the last minute, from counts as they grow."""

    def __init__(self, started: float) -> None:
        self._counts = deque([(started, 0)])
        self._first = self._last = (started, 0)

    def count(self, judged: int) -> None:
        """Record how many are judged now."""
        self._last = (time.monotonic(), judged)
        if self._last[0] - self._counts[-1][0] >= 1.0:
            self._counts.append(self._last)

    def rate(self, now: float) -> float:
        """Return the judgments per second; of all the time where the last minute had none."""
        while len(self._counts) > 1 and now - self._counts[0][0] > PACE_OF:
            self._counts.popleft()
        judged = self._last[1]
        for since, before in (self._counts[0], self._first):
            if judged > before:
                return (judged - before) / max(now - since, 1e-9)
        return 0.0


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


def _clock(seconds: float) -> str:
    """Return the time of day, so many seconds from now; with the day where it is another."""
    now = datetime.now()
    then = now + timedelta(seconds=seconds)
    return f"{then:%H:%M}" if then.date() == now.date() else f"{then:%a %d %b %H:%M}"


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
