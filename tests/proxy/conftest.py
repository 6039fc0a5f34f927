"""The site that tests of the proxy load, one server per module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import missing
from tests.proxy.site import Site, open_site
from trajudge.proxy.mitm.process import MITMPROXY
from trajudge.trajectories.util.local.pinned import NoEnvironment


@pytest.fixture(scope="module")
def shared_site() -> Iterator[Site]:
    with open_site() as site:
        yield site


@pytest.fixture
def site(shared_site: Site) -> Site:
    shared_site.seen.clear()
    return shared_site


@pytest.fixture(scope="session")
def mitmproxy() -> None:
    """mitmproxy in its own environment, which is made if it is not there."""
    try:
        MITMPROXY.python()
    except NoEnvironment as error:
        missing("mitmproxy", str(error))
