"""The schemes by which agents reach the site: a test with an arm holds for all of them."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from tests.proxy.site import Site, settings_of
from trajudge.proxy.commands import open_sites
from trajudge.proxy.process import ProxySettings, RunningProxy


class _Http2First(ssl.SSLContext):
    """Offers HTTP/2 before HTTP/1.1, as browsers do and httpx does not."""

    def set_alpn_protocols(self, alpn_protocols: Iterable[str]) -> None:
        super().set_alpn_protocols(["h2", "http/1.1"])


SCHEMES = ("http", "https", "http2")


@dataclass(frozen=True)
class Arm:
    """How agents reach the site: by ``http``, by ``https`` although its server speaks plain HTTP,
    or so by ``http2``."""

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
        sites = open_sites((here, "*.localhost", "127.0.0.1"))
        return settings_of(*faults, sites=sites, **fields)

    def client(
        self, proxy: RunningProxy, port: int | None = None, *, http2: bool | None = None
    ) -> httpx.AsyncClient:
        """A client that offers one protocol."""
        http2 = self.http2 if http2 is None else http2
        trust = (_Http2First if http2 else ssl.SSLContext)(ssl.PROTOCOL_TLS_CLIENT)
        trust.load_verify_locations(str(proxy.certificate))
        return httpx.AsyncClient(
            proxy=f"http://127.0.0.1:{port or proxy.port}",
            trust_env=False,
            timeout=30,
            verify=trust,
            http2=http2,
        )
