"""Every fault over loopback: where it fires, what the client sees, what the origin saw."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.proxy.arms import Arm
from tests.proxy.client import client, load
from tests.proxy.site import Site, events_of, median_wait, page_headers, proxied
from trajudge.proxy.addon import amended_metas, amended_policy, unpacked
from trajudge.proxy.process import running

pytestmark = pytest.mark.anyio


def fault(kind: str, at: int = 1, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "policy": {"at": at}, **fields}


async def statuses(site: Site, out: Path, planned: dict[str, Any], n: int = 3) -> list[int]:
    async with proxied(planned, out=out) as proxy, client(proxy) as http:
        return [(await load(http, site.origin + "/b")).status_code for _ in range(n)]


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
async def test_a_status_comes_at_k_alone(site: Site, tmp_path: Path, status: int) -> None:
    planned = fault("status", at=2, status=status)
    assert await statuses(site, tmp_path, planned) == [200, status, 200]
    assert site.paths() == ["/b", "/b"]
    pages = events_of(tmp_path, "page")
    assert [(page["k"], page["faults"]) for page in pages] == [(1, []), (2, ["status"]), (3, [])]
    (end,) = events_of(tmp_path, "task_end")
    assert end["exposure"][0]["planned"] == end["exposure"][0]["fired"] == [2]


async def test_after_means_that_the_origin_processed_the_request(site: Site) -> None:
    for stage, processed in (("before", []), ("after", ["/save"])):
        site.seen.clear()
        planned = fault("status", status=503, stage=stage)
        async with proxied(planned) as proxy, client(proxy) as http:
            answer = await http.post(site.origin + "/save", headers=page_headers())
        assert answer.status_code == 503
        assert site.paths() == processed


async def test_a_redirect_belongs_to_the_page_load_that_it_leads_to(
    site: Site, tmp_path: Path
) -> None:
    planned = fault("popup", at=2)
    async with proxied(planned, out=tmp_path) as proxy, client(proxy) as http:
        http.follow_redirects = True
        texts = [(await load(http, site.origin + path)).text for path in ("/b", "/moved", "/b")]
        saved = await http.post(site.origin + "/save", headers=page_headers())
    assert ["No, thanks" in text for text in texts] == [False, True, False]
    assert saved.status_code == 200
    pages = [(page["k"], page["url"].rpartition("/")[2]) for page in events_of(tmp_path, "page")]
    assert pages == [
        (1, "b"),
        (2, "moved"),
        (2, "b?from=moved"),
        (3, "b"),
        (4, "save"),
        (4, "saved"),
    ]


async def test_a_delay_holds_back_its_own_request_alone(arm: Arm, tmp_path: Path) -> None:
    loop, planned = asyncio.get_running_loop(), fault("delay", seconds=1.0)
    async with running(arm.settings(planned, out=tmp_path)) as proxy, arm.client(proxy) as http:
        await http.get(arm.origin + "/plain")
        start = loop.time()
        page = asyncio.create_task(load(http, arm.origin + "/b"))
        await asyncio.sleep(0.1)
        usual = await median_wait(http, arm.origin + "/plain", page)
        assert (await page).status_code == 200
    assert loop.time() - start >= 1.0
    assert usual < 0.5
    (event,) = events_of(tmp_path, "page")
    assert event["injected_ms"] >= 1000


async def test_a_reset_is_no_answer_and_one_page_load(site: Site, tmp_path: Path) -> None:
    async with proxied(fault("reset", at=2), out=tmp_path) as proxy, client(proxy) as http:
        assert (await load(http, site.origin + "/a")).status_code == 200
        for _ in range(2):  # the second time at once, as a browser does by itself
            with pytest.raises(httpx.TransportError):
                await load(http, site.origin + "/b")
        await asyncio.sleep(0.6)
        assert (await load(http, site.origin + "/b")).status_code == 200
    assert [page["k"] for page in events_of(tmp_path, "page")] == [1, 2, 2, 3]
    (end,) = events_of(tmp_path, "task_end")
    assert (end["page_loads"], end["exposure"][0]["fired"]) == (3, [2])


async def cut_short(arm: Arm, http: httpx.AsyncClient) -> None:
    raw = b""
    with pytest.raises(httpx.RemoteProtocolError):
        async with http.stream("GET", arm.origin + "/plain", headers=page_headers()) as response:
            assert response.headers["content-length"] == "1000"
            async for piece in response.aiter_raw():
                raw += piece
    assert len(raw) == 250


async def test_a_truncated_body_ends_early(arm: Arm, tmp_path: Path) -> None:
    planned = fault("truncate", share=0.25)
    async with running(arm.settings(planned, out=tmp_path)) as proxy, arm.client(proxy) as http:
        await cut_short(arm, http)
    (event,) = events_of(tmp_path, "fault")
    assert (event["outcome"], event["kept"], event["size"]) == ("fired", 250, 1000)


async def test_an_expired_session_leads_to_the_login(site: Site, tmp_path: Path) -> None:
    planned = fault("session", at=2, location="/login")
    async with proxied(planned, out=tmp_path) as proxy, client(proxy) as http:
        http.follow_redirects = True
        await load(http, site.origin + "/login")
        assert "session" in http.cookies
        answer = await load(http, site.origin + "/b")
        assert (answer.url.path, [r.status_code for r in answer.history]) == ("/login", [303])
        cookie = {h["cookie"] for _, _, h, _ in site.seen if "cookie" in h}
    assert cookie == set()
    assert [page["k"] for page in events_of(tmp_path, "page")] == [1, 2, 2]


async def test_an_offline_page_tries_again(site: Site, tmp_path: Path) -> None:
    planned = fault("offline", retry_seconds=3)
    async with proxied(planned, out=tmp_path) as proxy, client(proxy) as http:
        answer = await load(http, site.origin + "/b")
    assert (answer.status_code, site.paths()) == (503, [])
    assert '<meta http-equiv="refresh" content="3">' in answer.text


async def test_assets_of_a_page_fail(site: Site, tmp_path: Path) -> None:
    planned = fault("assets", at=2, assets=["style", "image"], status=404)
    async with proxied(planned, out=tmp_path) as proxy, client(proxy) as http:
        seen = []
        for _ in range(3):
            await load(http, site.origin + "/b")
            for path, kind in (("/style.css", "style"), ("/i.png", "image"), ("/plain", "script")):
                answer = await http.get(site.origin + path, headers=page_headers(kind))
                seen.append(answer.status_code)
                assert answer.headers["cache-control"] == "no-store"
    assert seen == [200, 200, 200, 404, 404, 200, 200, 200, 200]
    (end,) = events_of(tmp_path, "task_end")
    assert end["exposure"][0]["fired"] == [2]


@pytest.mark.parametrize("path", ["/b", "/strict", "/meta"])
@pytest.mark.parametrize("accessibility", ["full", "none"])
async def test_a_popup_is_in_the_page(site: Site, path: str, accessibility: str) -> None:
    planned = fault("popup", at=2, accessibility=accessibility)
    async with proxied(planned) as proxy, client(proxy) as http:
        http.headers["If-None-Match"] = '"1"'
        pages = [await load(http, site.origin + path) for _ in range(3)]
    html = [page.text for page in pages]
    assert ["Get our weekly offers" in text for text in html] == [False, True, False]
    assert ('role="dialog"' in html[1], "<button" in html[1]) == (accessibility == "full",) * 2
    assert {page.headers["cache-control"] for page in pages} == {"no-store"}
    assert "etag" not in pages[1].headers
    assert ["if-none-match" in h for _, _, h, _ in site.seen] == [True, False, True]
    without = html[1].partition("<style nonce=")[0].replace(" 'nonce-", "'nonce-")
    assert html[0].startswith(without.partition("'nonce-")[0])


async def test_a_popup_that_cannot_be_is_said(site: Site, tmp_path: Path) -> None:
    async with proxied(fault("popup"), out=tmp_path) as proxy, client(proxy) as http:
        assert (await load(http, site.origin + "/plain")).text == "x" * 1000
    (event,) = events_of(tmp_path, "fault")
    assert event["outcome"] == "impossible"
    assert event["reason"] == "the content type is text/plain, not text/html"


async def test_of_two_answers_one_fires_and_masks_the_rest(site: Site, tmp_path: Path) -> None:
    planned = [
        fault("delay", seconds=0.1),
        fault("popup"),
        fault("status", status=500),
        fault("reset"),
    ]
    async with proxied(*planned, out=tmp_path) as proxy, client(proxy) as http:
        assert (await load(http, site.origin + "/b")).status_code == 500
    outcomes = {e["fault"]: (e["outcome"], e["reason"]) for e in events_of(tmp_path, "fault")}
    assert outcomes == {
        "delay": ("fired", ""),
        "status": ("fired", ""),
        "popup": ("masked", "by status"),
        "reset": ("masked", "by status"),
    }


@pytest.mark.parametrize(
    ("policy", "amended"),
    [
        ("script-src 'self'; style-src 'self'", "script-src 'self' N; style-src 'self' N"),
        ("default-src 'none'", "default-src 'none'; script-src-elem N; style-src-elem N"),
        ("script-src 'unsafe-inline'; style-src x", "script-src 'unsafe-inline'; style-src x N"),
        ("script-src 'unsafe-inline' 'nonce-a'", "script-src 'unsafe-inline' 'nonce-a' N"),
        ("script-src a; script-src-elem b", "script-src a; script-src-elem b N"),
        ("img-src 'self'", "img-src 'self'"),
        ("script-src a, style-src b", "script-src a N, style-src b N"),
    ],
)
def test_a_policy_allows_one_nonce_more(policy: str, amended: str) -> None:
    assert amended_policy(policy, "z") == amended.replace("N", "'nonce-z'")


@pytest.mark.parametrize(
    ("policy", "requests"),
    [
        ("default-src 'none'", "connect-src shop.localhost/b/"),
        ("connect-src https://api.test", "connect-src https://api.test shop.localhost/b/"),
        ("connect-src 'self'", "connect-src 'self'"),
        ("default-src *", None),
        ("img-src 'none'", None),
    ],
)
def test_a_policy_lets_a_closed_overlay_report(policy: str, requests: str | None) -> None:
    """Else a popup that was closed would count as one that was not."""
    amended = amended_policy(policy, "z", "shop.localhost/b/").split("; ")
    assert [part for part in amended if part.startswith("connect-src")] == [requests or ""][
        : bool(requests)
    ]


def test_a_policy_in_a_document_allows_one_nonce_more_and_others_stay() -> None:
    policy = b"<META http-equiv = 'Content-Security-Policy' content='script-src &#39;self&#39;'>"
    others = b'<meta name=a content="script-src b"><meta http-equiv=content-security-policy'
    amended = b"<META http-equiv = 'Content-Security-Policy' content=\"script-src 'self' N\">"
    assert amended_metas(policy + others, "z") == amended.replace(b"N", b"'nonce-z'") + others


@pytest.mark.parametrize(
    "text", [b"<meta ", b"<meta http-equiv=content-security-policy ", b"<meta content='\""]
)
@pytest.mark.parametrize("end", [b"", b">"])
@pytest.mark.timeout(10)
def test_a_document_of_unfinished_elements_holds_no_other_request_up(
    text: bytes, end: bytes
) -> None:
    document = text * 50_000 + end
    assert amended_metas(document, "z") == document


PACKED = gzip.compress(b"<p>packed</p>", mtime=0)


@pytest.mark.parametrize(("body", "encoding"), [(b"<p>packed</p>", ""), (PACKED, " GZIP")])
def test_a_document_is_unpacked(body: bytes, encoding: str) -> None:
    assert unpacked(body, encoding) == b"<p>packed</p>"


@pytest.mark.parametrize(
    ("body", "encoding", "reason"),
    [
        (PACKED, "br", "the content encoding is br, not gzip"),
        (b"<p>", "gzip", "the content encoding gzip is damaged"),
        (PACKED[:-9], "gzip", "it ends early"),
    ],
)
def test_a_document_that_cannot_be_unpacked_says_why(
    body: bytes, encoding: str, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        unpacked(body, encoding)


def test_few_bytes_that_hold_many_are_not_unpacked() -> None:
    assert len(unpacked(gzip.compress(bytes(64 * 2**20), 1), "gzip")) == 64 * 2**20
    with pytest.raises(ValueError, match="more than 67,108,864 bytes"):
        unpacked(gzip.compress(bytes(64 * 2**20 + 1), 1), "gzip")


async def test_what_does_not_load_a_page_does_not_count(site: Site, tmp_path: Path) -> None:
    others = [
        ("GET", page_headers("iframe")),
        ("GET", page_headers("empty")),
        ("HEAD", page_headers()),
        ("GET", page_headers(**{"Sec-Purpose": "prefetch"})),
        ("GET", page_headers(**{"Sec-Purpose": "prefetch;prerender"})),
        ("GET", {"Accept": "*/*"}),
    ]
    planned = fault("status", status=503)
    async with proxied(planned, out=tmp_path) as proxy, client(proxy) as http:
        for method, headers in others:
            answer = await http.request(method, site.origin + "/b", headers=headers)
            assert answer.status_code == 200
        assert (await load(http, site.origin + "/b")).status_code == 503
        guessed = await http.get(site.origin + "/b", headers={"Accept": "text/html"})
        assert guessed.status_code == 200
    pages = events_of(tmp_path, "page")
    assert [(page["k"], page["certain"]) for page in pages] == [(1, True), (2, False)]
    (end,) = events_of(tmp_path, "task_end")
    assert (end["page_loads"], end["uncertain_page_loads"]) == (2, 1)


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
        await cut_short(arm, http)
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
