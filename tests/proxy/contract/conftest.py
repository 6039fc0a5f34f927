"""The two back ends, each by the schemes that it carries: every test here holds for all of them."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest

from tests.proxy.site import Site, settings_of
from trajudge.proxy.server.embedded import EmbeddedProxy
from trajudge.proxy.server.settings import Backend, ProxySettings
from trajudge.proxy.server.sites import open_sites


@dataclass(frozen=True)
class Arm:
    """A back end, and how agents reach the site: by ``http``, by ``https`` although its server
    speaks plain HTTP, or by ``http2``."""

    backend: Backend
    scheme: str
    site: Site

    @property
    def origin(self) -> str:
        return self.site.origin if self.scheme == "http" else "https://shop.localhost"

    @property
    def http2(self) -> bool:
        return self.scheme == "http2"

    def settings(self, *faults: Mapping[str, Any], **fields: Any) -> ProxySettings:
        here = f"shop.localhost={self.site.address}"
        sites = open_sites((here, "*.localhost", "127.0.0.1"), https=self.backend == "mitm")
        return replace(settings_of(*faults, backend=self.backend, **fields), sites=sites)

    def client(
        self, proxy: EmbeddedProxy, port: int | None = None, *, http2: bool = True
    ) -> httpx.AsyncClient:
        """A client that takes HTTP/2 where it is offered, as browsers do."""
        trust: ssl.SSLContext | bool = True
        if proxy.authority:
            trust = ssl.create_default_context(cafile=str(proxy.authority.certificate))
        url = f"http://127.0.0.1:{port or proxy.port}"
        return httpx.AsyncClient(proxy=url, trust_env=False, timeout=30, verify=trust, http2=http2)


ARMS: tuple[tuple[Backend, str], ...] = (
    ("embedded", "http"),
    ("mitm", "http"),
    ("mitm", "https"),
    ("mitm", "http2"),
)


def _arm(request: pytest.FixtureRequest) -> Arm:
    backend, scheme = request.param
    if backend == "mitm":
        request.getfixturevalue("mitmproxy")
    site = request.getfixturevalue("modern_site" if scheme == "http2" else "site")
    return Arm(backend, scheme, site)


@pytest.fixture(params=ARMS, ids="-".join)
def arm(request: pytest.FixtureRequest) -> Arm:
    return _arm(request)


@pytest.fixture(params=(ARMS[0], *ARMS[2:]), ids="-".join)
def main_arm(request: pytest.FixtureRequest) -> Arm:
    """One arm per back end and protocol."""
    return _arm(request)
