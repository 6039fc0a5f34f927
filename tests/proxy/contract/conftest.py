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
    """A back end, and the scheme by which agents reach a site whose server speaks plain HTTP."""

    backend: Backend
    scheme: str
    site: Site

    @property
    def origin(self) -> str:
        return self.site.origin if self.scheme == "http" else "https://shop.localhost"

    def settings(self, *faults: Mapping[str, Any], **fields: Any) -> ProxySettings:
        here = f"shop.localhost=http://127.0.0.1:{self.site.port}"
        sites = open_sites((here, "*.localhost", "127.0.0.1"), https=self.backend == "mitm")
        return replace(settings_of(*faults, backend=self.backend, **fields), sites=sites)

    def client(
        self, proxy: EmbeddedProxy, port: int | None = None, *, http2: bool = False
    ) -> httpx.AsyncClient:
        trust: ssl.SSLContext | bool = True
        if proxy.authority:
            trust = ssl.create_default_context(cafile=str(proxy.authority.certificate))
        url = f"http://127.0.0.1:{port or proxy.port}"
        return httpx.AsyncClient(proxy=url, trust_env=False, timeout=30, verify=trust, http2=http2)


ARMS: tuple[tuple[Backend, str], ...] = (("embedded", "http"), ("mitm", "http"), ("mitm", "https"))


@pytest.fixture(params=ARMS, ids="-".join)
def arm(request: pytest.FixtureRequest, site: Site) -> Arm:
    backend, scheme = request.param
    if backend == "mitm":
        request.getfixturevalue("mitmproxy")
    return Arm(backend, scheme, site)


@pytest.fixture(params=ARMS[::2], ids="-".join)
def main_arm(request: pytest.FixtureRequest, site: Site) -> Arm:
    """One arm per back end."""
    backend, scheme = request.param
    if backend == "mitm":
        request.getfixturevalue("mitmproxy")
    return Arm(backend, scheme, site)
