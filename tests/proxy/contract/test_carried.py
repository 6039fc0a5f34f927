"""A connection that mitmproxy carries as it is: what comes on it, in whatever pieces."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from tests.proxy.contract.conftest import Arm
from tests.proxy.site import Site, events_of
from trajudge.proxy.backends import running
from trajudge.proxy.server.embedded import EmbeddedProxy

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("mitmproxy")]


@pytest.mark.slow
async def test_a_connection_for_plain_requests_takes_a_tunnel_as_well(
    site: Site, tmp_path: Path
) -> None:
    arm = Arm("mitm", "http", site)
    host = f"shop.localhost:{site.port}"
    async with running(arm.settings(out=tmp_path)) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        page = f"GET {arm.origin}/b HTTP/1.1\r\nHost: {host}\r\nSec-Fetch-Dest: document\r\n\r\n"
        for part in (page[:2], page[2:9], page[9:]):
            writer.write(part.encode())
            await asyncio.sleep(0.05)
        assert b"<h1>/b</h1>" in await reader.readuntil(b"</html>")
        writer.write(b"CONNECT shop.localhost:443 HTTP/1.1\r\nHost: shop.localhost:443\r\n\r\n")
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        await writer.start_tls(_trusting(proxy), server_hostname="shop.localhost")
        writer.write(b"GET /plain HTTP/1.1\r\nHost: shop.localhost\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        assert await reader.readexactly(1000) == b"x" * 1000
        writer.close()
    assert [page["url"] for page in events_of(tmp_path, "page")] == [f"{arm.origin}/b"]
    assert site.paths() == ["/b", "/plain"]


def _trusting(proxy: EmbeddedProxy) -> ssl.SSLContext:
    assert proxy.authority
    return ssl.create_default_context(cafile=str(proxy.authority.certificate))
