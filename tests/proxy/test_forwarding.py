"""The proxy over loopback, with httpx on its one side and a real server on the other."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.proxy.arms import Arm
from tests.proxy.client import client, load
from tests.proxy.site import BROTLI, Site, events_of, open_site, page_headers, proxied
from tests.proxy.tls import own_certificate
from trajudge.proxy.commands import open_sites
from trajudge.proxy.process import VARIABLE, running
from trajudge.util.errors import UserError

pytestmark = pytest.mark.anyio


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


async def test_requests_reach_the_origin_whole(site: Site) -> None:
    async with proxied() as proxy, client(proxy) as http:
        echoes = [
            await http.post(site.origin + "/echo?x=1%202", data={"q": "é"}),
            await http.put(site.origin + "/echo", content=_chunks()),
            await http.post(site.origin + "/echo", headers={"Expect": "100-continue"}, content="z"),
        ]
    first, second, third = (echo.json() for echo in echoes)
    assert (first["path"], first["body"]) == ("/echo?x=1%202", "q=%C3%A9")
    assert first["headers"]["host"] == f"shop.localhost:{site.port}"
    assert (second["method"], second["body"]) == ("PUT", "a=1&b=2")
    assert third["body"] == "z"


LONG = 5 * 2**20  # bytes: more than the records keep
KEPT = 2**20


@pytest.mark.parametrize("stated", [True, False], ids=["length", "chunks"])
async def test_a_long_body_passes_while_it_comes(site: Site, tmp_path: Path, stated: bool) -> None:
    """The second half is sent once the origin has the request: a proxy that waits for the whole
    would wait for ever."""
    loop = asyncio.get_running_loop()
    site.asked.clear()

    async def halves() -> Any:
        yield b"a" * (LONG // 2)
        assert await loop.run_in_executor(None, site.asked.wait, 20)
        yield b"b" * (LONG // 2)

    length = {"Content-Length": str(LONG)} if stated else {}
    async with proxied(out=tmp_path) as proxy, client(proxy) as http:
        answer = await http.post(site.origin + "/plain", headers=length, content=halves())
    assert answer.status_code == 200
    ((_, _, headers, body),) = site.seen
    assert body == b"a" * (LONG // 2) + b"b" * (LONG // 2)
    assert headers.get("content-length") == (str(LONG) if stated else None)
    (entry,) = json.loads((tmp_path / "traces/task.har").read_text())["log"]["entries"]
    assert entry["request"]["bodySize"] == LONG
    assert entry["request"]["postData"]["text"] == "a" * KEPT


async def test_a_long_body_meets_the_faults_of_its_page(site: Site, tmp_path: Path) -> None:
    busy = {"kind": "status", "status": 503, "policy": "at(1)"}
    late = {"id": "late", "kind": "status", "status": 504, "stage": "after", "policy": "at(2)"}
    form, sent = page_headers(), b"x" * LONG
    async with proxied(busy, late, out=tmp_path) as proxy, client(proxy) as http:
        refused = await http.post("http://other.example.com/", content=sent)
        answers = [
            await http.post(site.origin + "/plain", headers=form, content=sent) for _ in range(3)
        ]
    assert [one.status_code for one in (refused, *answers)] == [403, 503, 504, 200]
    assert [len(body) for _, _, _, body in site.seen] == [LONG, LONG]
    (end,) = events_of(tmp_path, "task_end")
    assert [one["fired"] for one in end["exposure"]] == [[1], [2]]
    assert (end["page_loads"], end["requests"], end["refused"]) == (3, 3, 1)
    entries = json.loads((tmp_path / "traces/task.har").read_text())["log"]["entries"]
    assert [one["request"]["bodySize"] for one in entries] == [LONG] * 3


async def test_hop_by_hop_fields_end_at_the_proxy(site: Site) -> None:
    fields = {"Connection": "keep-alive, X-Mine", "X-Mine": "1", "Proxy-Authorization": "Basic x"}
    async with proxied() as proxy, client(proxy) as http:
        echo = (await http.get(site.origin + "/echo", headers=fields)).json()["headers"]
    assert not {"x-mine", "proxy-authorization", "connection"} & echo.keys()


@pytest.mark.slow
async def test_many_slow_answers_are_waited_for_at_once(arm: Arm) -> None:
    """Nobody queues in the proxy: over one connection with HTTP/2, as many as come by HTTP/1.1."""
    count = 24
    arm.site.gathering = threading.Barrier(count)
    async with running(arm.settings()) as proxy, arm.client(proxy) as http:
        await http.get(arm.origin + "/plain")
        answers = await asyncio.gather(*(http.get(arm.origin + "/gathered") for _ in range(count)))
    assert [answer.status_code for answer in answers] == [200] * count


async def test_kept_connections_survive_an_origin_that_closes_them(site: Site) -> None:
    async with proxied() as proxy, client(proxy) as http:
        for _ in range(5):
            assert (await http.get(site.origin + "/closes")).text == "last"
            assert (await http.get(site.origin + "/plain")).status_code == 200
            assert (await http.post(site.origin + "/echo")).status_code == 200


async def test_hosts_that_are_not_the_sites_are_answered_at_once(arm: Arm, tmp_path: Path) -> None:
    async with running(arm.settings(out=tmp_path)) as proxy, arm.client(proxy) as http:
        for _ in range(2):
            answer = await http.get("http://update.example.com/check")
            assert (answer.status_code, "--site" in answer.text) == (403, True)
            with pytest.raises(httpx.ProxyError, match="403"):
                await http.get("https://accounts.example.com/")
    assert [(e["host"], e["method"]) for e in events_of(tmp_path, "refused")] == [
        ("update.example.com", "GET"),
        ("accounts.example.com", "CONNECT"),
    ]
    (end,) = events_of(tmp_path, "task_end")
    assert (end["refused"], end["requests"]) == (4, 0)


async def test_a_site_that_is_down_is_said(tmp_path: Path) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    async with proxied(out=tmp_path) as proxy, client(proxy) as http:
        answer = await load(http, f"http://shop.localhost:{port}/")
    assert (answer.status_code, "is the site up?" in answer.text) == (502, True)
    (page,) = events_of(tmp_path, "page")
    assert (page["status"], page["error"][:22]) == (502, "no answer from the sit")


async def test_a_task_begins_by_control_and_by_port(arm: Arm, tmp_path: Path) -> None:
    fault, page = {"kind": "status", "status": 503, "policy": "at(1)"}, arm.origin + "/b"
    async with (
        running(arm.settings(fault, out=tmp_path, seed=4)) as proxy,
        arm.client(proxy) as http,
        httpx.AsyncClient(trust_env=False) as direct,
    ):
        health = (await direct.get(f"{proxy.control_url}/health")).json()
        assert health["nonce"] == proxy.settings.nonce
        await direct.post(f"{proxy.control_url}/task", json={"id": "first"})
        statuses = [(await load(http, page)).status_code for _ in range(2)]
        await direct.post(f"{proxy.control_url}/task", json={"id": "second", "seed": 9})
        statuses += [(await load(http, page)).status_code for _ in range(2)]
        opened = (await direct.post(f"{proxy.control_url}/port", json={"id": "third"})).json()
        async with arm.client(proxy, opened["port"]) as other:
            statuses += [(await load(other, page)).status_code for _ in range(2)]
        ended = (await direct.post(f"{proxy.control_url}/end")).json()
        wrong = await direct.post(f"{proxy.control_url}/task", json={"id": 3})
        guessed = proxy.control_url.replace(proxy.settings.token, "guess")
        unknown = await direct.post(f"{guessed}/task", json={"id": "x"})
    assert statuses == [503, 200] * 3
    assert (wrong.status_code, unknown.status_code) == (400, 403)
    assert (ended["task"], ended["page_loads"]) == ("second", 2)
    assert [(e["task"], e["seed"]) for e in events_of(tmp_path, "task")] == [
        ("first", 4),
        ("second", 9),
        ("third", 4),
    ]


async def test_a_task_that_mitmproxy_cannot_begin_any_more_is_refused(tmp_path: Path) -> None:
    program, pid = tmp_path / "mitmdump", tmp_path / "pid"
    program.write_text(f'#!/bin/sh\necho $$ >{pid}\nexec {os.environ[VARIABLE]} "$@"\n')
    program.chmod(0o755)
    out = tmp_path / "run"
    with pytest.raises(UserError, match="mitmproxy ended by itself"):
        async with proxied(out=out, mitmdump=program) as proxy, httpx.AsyncClient() as direct:
            os.kill(int(pid.read_text()), signal.SIGKILL)
            statuses = list[int]()
            while 503 not in statuses and len(statuses) < 100:  # it may still answer
                answer = await direct.post(f"{proxy.control_url}/task", json={"id": "late"})
                statuses.append(answer.status_code)
    assert statuses[-1] == 503
    ended = "mitmproxy ended by itself: the run's figures end there"
    assert answer.json() == {"error": ended}


async def test_a_damaged_record_costs_the_figures_of_its_task_alone(
    site: Site, tmp_path: Path
) -> None:
    """It was told as an end of mitmproxy."""
    out = tmp_path / "run"
    sentence = f"{out / 'events.jsonl'}: a record is damaged"
    with pytest.raises(UserError, match=sentence):
        async with proxied(out=out) as proxy, client(proxy) as http, httpx.AsyncClient() as direct:
            ended = []
            for name in ("one", "two"):
                await direct.post(f"{proxy.control_url}/task", json={"id": name})
                await load(http, site.origin + "/b")
                if name == "one":
                    with (out / "events.jsonl").open("ab") as file:
                        file.write(b'{"type": "pa\n')
                ended.append(await direct.post(f"{proxy.control_url}/end"))
    assert [one.status_code for one in ended] == [503, 200]
    assert ended[0].json()["error"].startswith(sentence)
    assert (ended[1].json()["task"], ended[1].json()["page_loads"]) == ("two", 1)


async def test_only_servers_on_loopback_may_sign_their_own_certificates(tmp_path: Path) -> None:
    """Side by side, so that what holds for one connection holds for no other."""
    with open_site(own_certificate()) as near, open_site(own_certificate(), "127.0.0.2") as far:
        here = f"near.localhost={near.address}"
        there = f"far.localhost=https://127.0.0.2:{far.port}"
        async with (
            proxied(out=tmp_path, sites=open_sites((here, there))) as proxy,
            client(proxy) as http,
        ):
            names = ["near", "far"] * 8
            answers = await asyncio.gather(
                *(http.get(f"http://{name}.localhost/plain?{n}") for n, name in enumerate(names))
            )
    assert [one.status_code for one in answers] == [200, 502] * 8
    assert (len(near.seen), far.seen) == (8, [])


async def test_a_port_that_another_program_took_meanwhile_is_exchanged(
    site: Site, tmp_path: Path
) -> None:
    program, began = tmp_path / "mitmdump", tmp_path / "began"
    taken = "[Errno 98] error while attempting to bind on address: address already in use"
    lost = f'echo >>{began}; if [ $(wc -l <{began}) -lt 3 ]; then echo "{taken}"; exit 1; fi'
    program.write_text(f'#!/bin/sh\n{lost}\nexec {os.environ[VARIABLE]} "$@"\n')
    program.chmod(0o755)
    async with proxied(out=tmp_path / "run", mitmdump=program) as proxy, client(proxy) as http:
        assert (await load(http, site.origin + "/b")).status_code == 200
    assert len(events_of(tmp_path / "run", "proxy")) == 1
    program.write_text(f"#!/bin/sh\necho '{taken}'\nexit 1\n")
    with pytest.raises(UserError, match=r"mitmproxy did not start .*address already in use"):
        async with proxied(out=tmp_path / "other", mitmdump=program):
            pass


async def test_a_signature_tells_where_a_task_begins(site: Site, tmp_path: Path) -> None:
    fault = {"kind": "status", "status": 429, "retry_after": 7, "policy": "at(2)"}
    signature = r"^GET \S+/start\?task=(\w+)$"
    async with proxied(fault, out=tmp_path, signature=signature) as proxy, client(proxy) as http:
        answers = []
        for task in ("a", "b"):
            answers.append(await load(http, f"{site.origin}/start?task={task}"))
            answers.append(await load(http, f"{site.origin}/b"))
    assert [one.status_code for one in answers] == [200, 429, 200, 429]
    assert answers[1].headers["retry-after"] == "7"
    assert [e["task"] for e in events_of(tmp_path, "task")] == ["a", "b"]
    assert json.loads((tmp_path / "traces/a.har").read_text())["log"]["entries"]
