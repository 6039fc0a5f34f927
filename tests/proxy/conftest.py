"""The site that tests of the proxy load, one server per module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import missing
from tests.proxy.site import Site, open_site
from tests.proxy.tls import own_certificate
from trajudge.proxy.mitm.process import MITMPROXY
from trajudge.util.machine import NoEnvironment


def forgetting(site: Site) -> Site:
    """Return the site without the requests of earlier tests."""
    site.seen.clear()
    return site


@pytest.fixture(scope="module")
def shared_site() -> Iterator[Site]:
    with open_site() as site:
        yield site


@pytest.fixture
def site(shared_site: Site) -> Site:
    return forgetting(shared_site)


@pytest.fixture(scope="module")
def shared_modern_site() -> Iterator[Site]:
    """The site by TLS. It names HTTP/2 first, as most of the web does, but answers in HTTP/1.1
    alone: the proxy, which stands between it and an agent, asks its origins for nothing else."""
    with open_site(own_certificate("h2", "http/1.1")) as site:
        yield site


@pytest.fixture
def modern_site(shared_modern_site: Site) -> Site:
    return forgetting(shared_modern_site)


@pytest.fixture(scope="session")
def mitmproxy() -> None:
    """mitmproxy in its own environment, which is made if it is not there."""
    try:
        MITMPROXY.python()
    except NoEnvironment as error:
        missing("mitmproxy", str(error))
