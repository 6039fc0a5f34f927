"""What opens a run and its page: Chromium, or the text engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from secrets import token_bytes
from typing import Protocol

from trajudge.environments.agents.protocol import Job
from trajudge.environments.chromium import open_session
from trajudge.environments.recording.episode import OpenPage, Viewport
from trajudge.environments.recording.recorder import Recorder
from trajudge.environments.serving.run import ServedRun, open_run
from trajudge.environments.text import TextSession

OpenRun = tuple[OpenPage, ServedRun]


class Pages(Protocol):
    """``open`` gives the first page of a fresh run, and the run, which end with the block. Runs of
    other names have other operation codes: what a policy learns by heart is of no use to it."""

    def open(self, job: Job, name: str) -> AbstractContextManager[OpenRun]: ...

    def close(self) -> None: ...


class ChromiumPages:
    """Pages in one browser, which starts with the first."""

    def __init__(self, viewport: Viewport, *, pictures: bool) -> None:
        self._viewport, self._pictures = viewport, pictures
        self._recorder = Recorder(seed=0)

    @contextmanager
    def open(self, job: Job, name: str) -> Iterator[OpenRun]:
        server, browser = self._recorder.server, self._recorder.browser
        run = server.open(job.config, name, job.goal)
        try:
            with open_session(
                browser,
                run.start_url,
                viewport=self._viewport,
                visible="rendered",
                pictures=self._pictures,
            ) as session:
                yield session, run
        finally:
            server.close(run)

    def close(self) -> None:
        self._recorder.close()


class TextPages:
    """Pages without a browser (``environments.text``)."""

    def __init__(self) -> None:
        self._secret = token_bytes(32)

    @contextmanager
    def open(self, job: Job, name: str) -> Iterator[OpenRun]:
        run = open_run(job.config, self._secret, name, job.goal)
        try:
            yield TextSession(run), run
        finally:
            run.state.close()

    def close(self) -> None:
        """Close nothing: no run is open."""
