"""The proxy over loopback, with httpx on its one side and a real server on the other."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.proxy.client import client, load
from tests.proxy.site import Site, events_of, open_site, page_headers, proxied
from tests.proxy.tls import own_certificate
from trajudge.proxy.commands import open_sites
from trajudge.proxy.process import VARIABLE
from trajudge.util.errors import UserError

pytestmark = pytest.mark.anyio


async def test_what_is_not_planned_passes_unchanged(site: Site) -> None:
    async with proxied() as proxy, client(proxy) as http, httpx.AsyncClient() as direct:
        for path in ("/i.png", "/plain", "/slow", "/b"):
            mine = await http.get(site.origin + path)
            theirs = await direct.get(f"http://127.0.0.1:{site.port}{path}")
            assert mine.content == theirs.content
            names = {"content-type", "cache-control", "etag", "content-encoding"}
            assert {n: mine.headers.get(n) for n in names} == {
                n: theirs.headers.get(n) for n in names
            }


async def test_requests_reach_the_origin_whole(site: Site) -> None:
    async def chunks() -> Any:
        yield b"a=1&"
        yield b"b=2"

    async with proxied() as proxy, client(proxy) as http:
        echoes = [
            await http.post(site.origin + "/echo?x=1%202", data={"q": "é"}),
            await http.put(site.origin + "/echo", content=chunks()),
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


async def test_streams_come_piece_by_piece(site: Site) -> None:
    loop = asyncio.get_running_loop()
    async with proxied() as proxy, client(proxy) as http:
        start = loop.time()
        async with http.stream("GET", site.origin + "/slow", headers=page_headers()) as response:
            times = [loop.time() - start async for _ in response.aiter_raw()]
    assert times[-1] - times[0] > 0.2


async def test_kept_connections_survive_an_origin_that_closes_them(site: Site) -> None:
    async with proxied() as proxy, client(proxy) as http:
        for _ in range(5):
            assert (await http.get(site.origin + "/closes")).text == "last"
            assert (await http.get(site.origin + "/plain")).status_code == 200
            assert (await http.post(site.origin + "/echo")).status_code == 200


async def test_a_body_that_the_origin_cuts_off_is_cut_off(site: Site) -> None:
    async with proxied() as proxy, client(proxy) as http:
        with pytest.raises(httpx.HTTPError):
            await http.get(site.origin + "/cut")


async def test_hosts_that_are_not_the_sites_are_answered_at_once(tmp_path: Path) -> None:
    async with proxied(out=tmp_path) as proxy, client(proxy) as http:
        for _ in range(2):
            answer = await http.get("http://update.example.com/check")
            assert (answer.status_code, "--site" in answer.text) == (403, True)
        with pytest.raises(httpx.ProxyError, match="403"):
            await http.get("https://accounts.example.com/")
    assert [e["host"] for e in events_of(tmp_path, "refused")] == [
        "update.example.com",
        "accounts.example.com",
    ]
    (end,) = events_of(tmp_path, "task_end")
    assert (end["refused"], end["requests"]) == (3, 0)


async def test_a_site_that_is_down_is_said(tmp_path: Path) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    async with proxied(out=tmp_path) as proxy, client(proxy) as http:
        answer = await load(http, f"http://shop.localhost:{port}/")
    assert (answer.status_code, "is the site up?" in answer.text) == (502, True)
    (page,) = events_of(tmp_path, "page")
    assert (page["status"], page["error"][:22]) == (502, "no answer from the sit")


async def test_a_task_begins_by_control_by_signature_and_by_port(
    site: Site, tmp_path: Path
) -> None:
    fault = {"kind": "status", "status": 503, "policy": "at(1)"}
    async with proxied(fault, out=tmp_path, seed=4) as proxy, client(proxy) as http:
        direct = httpx.AsyncClient(trust_env=False)
        health = (await direct.get(f"{proxy.control_url}/health")).json()
        assert health["nonce"] == proxy.settings.nonce
        await direct.post(f"{proxy.control_url}/task", json={"id": "first"})
        statuses = [(await load(http, site.origin + "/b")).status_code for _ in range(2)]
        await direct.post(f"{proxy.control_url}/task", json={"id": "second", "seed": 9})
        statuses += [(await load(http, site.origin + "/b")).status_code for _ in range(2)]
        opened = (await direct.post(f"{proxy.control_url}/port", json={"id": "third"})).json()
        async with client(proxy, opened["port"]) as other:
            statuses += [(await load(other, site.origin + "/b")).status_code for _ in range(2)]
        ended = (await direct.post(f"{proxy.control_url}/end")).json()
        wrong = await direct.post(f"{proxy.control_url}/task", json={"id": 3})
        guessed = proxy.control_url.replace(proxy.settings.token, "guess")
        stranger = await direct.post(f"{guessed}/task", json={"id": "x"})
        await direct.aclose()
    assert statuses == [503, 200] * 3
    assert (wrong.status_code, stranger.status_code) == (400, 403)
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
