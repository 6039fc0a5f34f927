"""The site that tests of the proxy load, one server per module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.proxy.site import Site, open_site


@pytest.fixture(scope="module")
def shared_site() -> Iterator[Site]:
    with open_site() as site:
        yield site


@pytest.fixture
def site(shared_site: Site) -> Site:
    shared_site.seen.clear()
    return shared_site
