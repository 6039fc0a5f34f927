"""What opens a run and its page: Chromium, or the text engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from secrets import token_bytes
from typing import Protocol

from trajudge.environments.agents.protocol import Job
from trajudge.environments.chromium import open_session
from trajudge.environments.chromium.observation import PageDetails, Visible
from trajudge.environments.recording.episode import OpenPage, Viewport
from trajudge.environments.recording.recorder import Recorder
from trajudge.environments.serving.run import ServedRun, open_run
from trajudge.environments.text import TextSession


class DetailedPage(OpenPage, Protocol):
    """An open page that also says what BrowserGym's observation needs beyond the tree."""

    def details(self) -> PageDetails: ...


OpenRun = tuple[DetailedPage, ServedRun]


class Pages(Protocol):
    """``open`` gives the first page of a fresh run, and the run, which end with the block. Runs of
    other names have other operation codes: what a policy learns by heart is of no use to it."""

    def open(self, job: Job, name: str) -> AbstractContextManager[OpenRun]: ...

    def close(self) -> None: ...


class ChromiumPages:
    """Pages in one browser, which starts with the first."""

    def __init__(self, viewport: Viewport, visible: Visible, *, pictures: bool) -> None:
        self._viewport, self._visible = viewport, visible
        self._recorder = Recorder(seed=0, secret=token_bytes(32))
        self._recorder.pictures = pictures

    @contextmanager
    def open(self, job: Job, name: str) -> Iterator[OpenRun]:
        server, browser = self._recorder.server, self._recorder.browser
        run = server.open(job.config, name, job.goal)
        try:
            with open_session(
                browser,
                run.start_url,
                viewport=self._viewport,
                visible=self._visible,
                pictures=self._recorder.pictures,
            ) as session:
                yield session, run
        finally:
            server.close(run)

    def close(self) -> None:
        self._recorder.close()


class TextPages:
    """Pages without a browser (``environments.text``)."""

    def __init__(self, visible: Visible) -> None:
        self._visible = visible
        self._secret = token_bytes(32)

    @contextmanager
    def open(self, job: Job, name: str) -> Iterator[OpenRun]:
        run = open_run(job.config, self._secret, name, job.goal)
        try:
            yield TextSession(run, visible=self._visible), run
        finally:
            run.state.close()

    def close(self) -> None:
        """Close nothing: no run is open."""
