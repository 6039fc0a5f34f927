"""The whole reasoning of a run's judgments, read for the search beside the pages."""

from __future__ import annotations

import threading

from trajudge.app.server.workspace import OpenedRun
from trajudge.eval.store.run_index import HEAD, words_read
from trajudge.util.errors import UserError

MOST = 100_000
"""Judgments of a run that are read without being told to."""


class WordReaders:
    """Reads what runs have not read yet, each run in a thread of its own. ``everything``: runs of
    more than ``MOST`` judgments, too. To be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: dict[str, threading.Thread] = {}

    def note(self, run: OpenedRun, everything: bool) -> str:
        """Say which reasoning free text does not know yet, "" for none, and have it read."""
        with run.index.reading() as connection:
            read, count = words_read(connection)
        if read == count:
            return ""
        head = f"the first {HEAD} characters of the reasoning"
        if count > MOST and not everything and not read:
            return f"Free text is looked for in {head}; trajudge inspect --search reads all of it."
        with self._lock:
            working = self._threads.get(run.name)
            if working is None or not working.is_alive():
                self._threads[run.name] = threading.Thread(target=_read, args=(run,), daemon=True)
                self._threads[run.name].start()
        return f"Of {count - read:,} judgments free text knows {head} so far."


def _read(run: OpenedRun) -> None:
    try:
        while run.index.read_words():
            pass
    except UserError:  # the next page begins again, and says what is wrong with the run
        return
