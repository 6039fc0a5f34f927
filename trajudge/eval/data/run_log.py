"""``run.log`` in a run's folder: what the engine met (refusals, pauses, retries), with the time."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trajudge.trajectories.util.secrets import masked
from trajudge.trajectories.util.terminal import one_line

LOG = "run.log"
SOURCES = ("trajudge.eval", "trajudge.judges", "trajudge.trajectories")


@contextmanager
def run_log(folder: Path) -> Iterator[None]:
    """Append to ``run.log`` what judging logs, and the tracebacks of users' code.

    The file is made at the first line.

    No key gets into it, whatever an error message repeats.
    """
    handler = _Handler(folder / LOG, encoding="utf-8", delay=True)
    handler.setFormatter(_OneLine("%(asctime)s %(message)s"))
    loggers = [logging.getLogger(name) for name in SOURCES]
    earlier = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        for logger, level in zip(loggers, earlier, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)
        handler.close()


class _Handler(logging.FileHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        """Pass over a line that cannot be written: a full disk is told where judgments are kept."""


class _OneLine(logging.Formatter):
    """A record on one line, a traceback below it with its own lines, indented; both without control
    characters and without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        # The base class would take a traceback that another handler's formatter left on the record.
        text = one_line(self._message(record))
        if record.exc_info:
            lines = self.formatException(record.exc_info).splitlines()
            text = "\n    ".join([text, *map(one_line, lines)])
        return masked(text)

    def _message(self, record: logging.LogRecord) -> str:
        record.message = record.getMessage()
        record.asctime = self.formatTime(record)
        return self.formatMessage(record)
