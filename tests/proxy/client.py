"""A client that loads pages through a proxy."""

from __future__ import annotations

import httpx

from tests.proxy.site import page_headers
from trajudge.proxy.process import RunningProxy


def client(proxy: RunningProxy, port: int | None = None) -> httpx.AsyncClient:
    url = proxy.url if port is None else f"http://127.0.0.1:{port}"
    return httpx.AsyncClient(proxy=url, trust_env=False, timeout=10)


async def load(http: httpx.AsyncClient, url: str, **more: str) -> httpx.Response:
    return await http.get(url, headers=page_headers(**more))
