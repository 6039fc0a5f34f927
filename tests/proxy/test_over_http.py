"""What the proxy does for an HTTP client: faults, streams, tasks, hosts."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.proxy.arms import Arm
from tests.proxy.site import BROTLI, events_of, median_wait, page_headers
from trajudge.proxy.process import running

pytestmark = pytest.mark.anyio

ONE_AFTER_THE_OTHER: tuple[dict[str, Any], ...] = (
    {"kind": "status", "status": 503, "policy": "at(2)"},
    {"id": "after", "kind": "status", "status": 429, "retry_after": 7, "stage": "after"}
    | {"policy": "at(3)"},
    {"kind": "delay", "seconds": 0.4, "policy": "at(4)"},
    {"kind": "reset", "policy": "at(5)"},
    {"kind": "truncate", "share": 0.25, "policy": "at(6)"},
    {"kind": "session", "location": "/login", "policy": "at(7)"},
    {"kind": "offline", "retry_seconds": 3, "policy": "at(8)"},
    {"kind": "popup", "policy": "at(9)"},
    {"kind": "assets", "assets": ["style"], "status": 404, "policy": "at(10)"},
)


async def load(http: httpx.AsyncClient, url: str) -> httpx.Response:
    return await http.get(url, headers=page_headers())


@pytest.mark.slow
async def test_each_fault_fires_where_it_is_planned(arm: Arm, tmp_path: Path) -> None:
    arm.site.seen.clear()
    origin, loop = arm.origin, asyncio.get_running_loop()
    async with (
        running(arm.settings(*ONE_AFTER_THE_OTHER, out=tmp_path)) as proxy,
        arm.client(proxy) as http,
    ):
        first = [(await load(http, origin + "/plain")).status_code for _ in range(2)]
        after = await load(http, origin + "/plain")
        assert [*first, after.status_code, after.headers["retry-after"]] == [200, 503, 429, "7"]
        assert arm.site.paths() == ["/plain"] * 2  # the status before the origin cost no request
        start = loop.time()
        assert (await load(http, origin + "/plain")).text == "x" * 1000
        assert loop.time() - start >= 0.4
        for _ in range(2):  # the second time at once, as a browser does by itself
            with pytest.raises(httpx.TransportError):
                await load(http, origin + "/b")
        await asyncio.sleep(0.6)
        await _cut_short(arm, http)
        http.follow_redirects = True
        http.cookies.set("session", "1", domain="shop.localhost")
        login = await load(http, origin + "/b")
        assert (login.url.path, [one.status_code for one in login.history]) == ("/login", [303])
        offline = await load(http, origin + "/b")
        assert (offline.status_code, 'content="3"' in offline.text) == (503, True)
        popup = await load(http, origin + "/strict")
        assert "Get our weekly offers" in popup.text
        assert "'nonce-" in popup.headers["content-security-policy"]
        await load(http, origin + "/b")
        style = await http.get(origin + "/style.css", headers=page_headers("style"))
        assert style.status_code == 404
    (end,) = events_of(tmp_path, "task_end")
    assert {e["fault"]: e["fired"] for e in end["exposure"]} == {
        str(fault.get("id", fault["kind"])): [k] for k, fault in enumerate(ONE_AFTER_THE_OTHER, 2)
    }
    assert end["page_loads"] == 10


async def _cut_short(arm: Arm, http: httpx.AsyncClient) -> None:
    raw = b""
    with pytest.raises(httpx.RemoteProtocolError):
        async with http.stream("GET", arm.origin + "/plain", headers=page_headers()) as response:
            assert response.headers["content-length"] == "1000"
            async for piece in response.aiter_raw():
                raw += piece
    assert len(raw) == 250


@pytest.mark.slow
async def test_what_is_not_planned_passes_as_it_is(arm: Arm, tmp_path: Path) -> None:
    loop, origin = asyncio.get_running_loop(), arm.origin
    popup = {"kind": "popup", "policy": "at(2)"}
    async with (
        running(arm.settings(popup, out=tmp_path)) as proxy,
        arm.client(proxy) as http,
        httpx.AsyncClient(verify=False) as direct,
    ):
        for path in ("/i.png", "/plain", "/b"):
            ours = await http.get(origin + path)
            assert ours.http_version == ("HTTP/2" if arm.http2 else "HTTP/1.1")
            theirs = await direct.get(arm.site.address + path)
            assert ours.content == theirs.content
            for name in ("content-type", "cache-control", "etag", "content-encoding"):
                assert ours.headers.get(name) == theirs.headers.get(name)
        packed = {"Accept-Encoding": "br"}
        async with http.stream("GET", origin + "/packed", headers=packed) as brotli:
            assert b"".join([piece async for piece in brotli.aiter_raw()]) == BROTLI
        again = await http.get(origin + "/tagged", headers={"If-None-Match": '"1"'})
        assert (again.status_code, again.content) == (304, b"")
        one = await http.get(origin + "/packed", headers=page_headers(**packed))
        two = await http.get(origin + "/packed", headers=page_headers(**packed))
        assert (one.headers["content-encoding"], "No, thanks" in two.text) == ("br", True)
        echo = await http.post(origin + "/echo?x=1%202", content=_chunks())
        assert (echo.json()["path"], echo.json()["body"]) == ("/echo?x=1%202", "a=1&b=2")
        assert echo.json()["headers"]["host"] == origin.partition("://")[2]
        if arm.http2:  # in which browsers send each cookie by itself
            crumbs = [("Cookie", "a=1"), ("Cookie", "b=2")]
            crumbled = await http.get(origin + "/echo", headers=crumbs)
            assert crumbled.json()["headers"]["cookie"] == "a=1; b=2"
        start = loop.time()
        async with http.stream("GET", origin + "/slow", headers=page_headers()) as response:
            times = [loop.time() - start async for _ in response.aiter_raw()]
        assert times[-1] - times[0] > 0.2
        before = arm.site.connections
        for _ in range(5):
            await http.get(origin + "/plain")
        # Behind HTTP/2 mitmproxy opens a connection for each stream.
        assert arm.site.connections - before <= (5 if arm.http2 else 1)
        with pytest.raises(httpx.HTTPError):
            await http.get(origin + "/cut")
    assert "trajudge" not in json.dumps([headers for _, _, headers, _ in arm.site.seen]).lower()


async def _chunks() -> Any:
    yield b"a=1&"
    yield b"b=2"


@pytest.mark.slow
async def test_a_held_page_holds_nothing_else(arm: Arm) -> None:
    delay = {"kind": "delay", "seconds": 1.0, "policy": "at(1)"}
    async with running(arm.settings(delay)) as proxy, arm.client(proxy) as http:
        await http.get(arm.origin + "/plain")
        page = asyncio.create_task(load(http, arm.origin + "/b"))
        await asyncio.sleep(0.1)
        usual = await median_wait(http, arm.origin + "/plain", page)
        assert (await page).status_code == 200
    assert usual < 0.5


@pytest.mark.slow
async def test_many_slow_answers_are_waited_for_at_once(arm: Arm) -> None:
    """Nobody queues in the proxy: over one connection with HTTP/2, as many as come by HTTP/1.1."""
    count = 24
    arm.site.gathering = threading.Barrier(count)
    async with running(arm.settings()) as proxy, arm.client(proxy) as http:
        await http.get(arm.origin + "/plain")
        answers = await asyncio.gather(*(http.get(arm.origin + "/gathered") for _ in range(count)))
    assert [answer.status_code for answer in answers] == [200] * count


@pytest.mark.slow
async def test_hosts_tasks_and_health(arm: Arm, tmp_path: Path) -> None:
    fault = {"kind": "status", "status": 503, "policy": "at(1)"}
    async with (
        running(arm.settings(fault, out=tmp_path, seed=4)) as proxy,
        arm.client(proxy) as http,
        httpx.AsyncClient(trust_env=False) as direct,
    ):
        health = (await direct.get(f"{proxy.control_url}/health")).json()
        assert health["nonce"] == proxy.settings.nonce
        for _ in range(2):
            answer = await http.get("http://update.example.com/check")
            assert (answer.status_code, "--site" in answer.text) == (403, True)
            with pytest.raises(httpx.ProxyError, match="403"):
                await http.get("https://accounts.example.com/")
        await direct.post(f"{proxy.control_url}/task", json={"id": "first"})
        statuses = [(await load(http, arm.origin + "/b")).status_code for _ in range(2)]
        opened = (await direct.post(f"{proxy.control_url}/port", json={"id": "own"})).json()
        async with arm.client(proxy, opened["port"]) as other:
            statuses += [(await load(other, arm.origin + "/b")).status_code for _ in range(2)]
        ended = (await direct.post(f"{proxy.control_url}/end")).json()
    assert statuses == [503, 200] * 2
    assert (ended["task"], ended["page_loads"]) == ("first", 2)
    assert [(e["task"], e["seed"]) for e in events_of(tmp_path, "task")][-2:] == [
        ("first", 4),
        ("own", 4),
    ]
    assert [(e["host"], e["method"]) for e in events_of(tmp_path, "refused")] == [
        ("update.example.com", "GET"),
        ("accounts.example.com", "CONNECT"),
    ]
