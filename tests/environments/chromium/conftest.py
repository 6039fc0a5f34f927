"""One site and one browser for all tests of the layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path

import pytest

from tests.environments.chromium.site import Site, serve
from trajudge.environments.chromium import Browser, Session, launch, open_session

_RUNS = count()

Open = Callable[..., AbstractContextManager[Session]]


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    with serve() as running:
        yield running


@pytest.fixture(scope="session")
def browser(chromium: Path, site: Site) -> Iterator[Browser]:
    pytest.importorskip("playwright")
    with launch(site.server_port) as running:
        yield running


@pytest.fixture
def at(browser: Browser) -> Open:
    """Opens a session at a path of a run of its own, with patience for a busy machine."""

    def opened(
        path: str, *, patience: float = 30.0, **options: object
    ) -> AbstractContextManager[Session]:
        address = f"http://run{next(_RUNS)}.localhost{path}"
        return open_session(browser, address, patience=patience, **options)  # type: ignore[arg-type]

    return opened


def bid(session: Session, name: str) -> str:
    """The bid of the element with this name."""
    found = session.observe().elements
    return next(element.bid for element in found if element.name == name)


def click(session: Session, name: str) -> str | None:
    """Click the element with this name."""
    return session.act(f"click({bid(session, name)!r})")
