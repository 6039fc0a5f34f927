"""The site that tests of the proxy load, one server per module, and mitmproxy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.proxy.arms import SCHEMES, Arm
from tests.proxy.program import mitmproxy
from tests.proxy.site import Site, open_site

__all__ = ["mitmproxy"]


def forgetting(site: Site) -> Site:
    """Return the site without the requests of earlier tests."""
    site.seen.clear()
    return site


@pytest.fixture(scope="session", autouse=True)
def _with_mitmproxy(mitmproxy: None) -> None:
    """All tests here start it."""


@pytest.fixture(scope="module")
def shared_site() -> Iterator[Site]:
    with open_site() as site:
        yield site


@pytest.fixture
def site(shared_site: Site) -> Site:
    return forgetting(shared_site)


@pytest.fixture(
    params=[pytest.param(one, marks=[pytest.mark.slow] * (one != "http")) for one in SCHEMES]
)
def arm(request: pytest.FixtureRequest, site: Site) -> Arm:
    return Arm(request.param, site)
