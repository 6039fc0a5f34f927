"""What the events say of a fault's recovery, by page loads as agents make them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.proxy.client import client, load
from tests.proxy.site import Site, events_of, page_headers, plan_of, proxied
from trajudge.proxy.addon import BEACON
from trajudge.proxy.results import recoveries

pytestmark = pytest.mark.anyio

STATUS = {"kind": "status", "status": 503}


async def visited(site: Site, out: Path, fault: dict[str, Any], *paths: str) -> list[Any]:
    """The recoveries of a task that loads these pages, as (k, means, at)."""
    async with proxied(fault, out=out) as proxy, client(proxy) as http:
        for path in paths:
            await load(http, site.origin + path)
    (end,) = events_of(out, "task_end")
    recoveries = events_of(out, "recovery")
    assert end["exposure"][0]["recovered"] == [r["k"] for r in recoveries if r["recovered"]]
    assert {r["expected"] for r in recoveries} <= {"dismiss", "reload", "wait", "none"}
    return [(r["k"], r["means"], r["at"]) for r in recoveries]


@pytest.mark.parametrize(
    ("policy", "paths", "expected"),
    [
        ("at(1)", ("/a", "/a"), [(1, "reloaded", 2)]),
        ("at(1)", ("/a", "/b", "/a"), [(1, "reloaded", 3)]),
        ("at(1)", ("/a", "/b"), [(1, "left", None)]),
        ("at(2)", ("/a", "/b"), [(2, "none", None)]),
        ("random(2, 2)", ("/a", "/a", "/a"), [(1, "reloaded", 3), (2, "reloaded", 3)]),
        ("random(2, 2)", ("/a", "/a"), [(1, "none", None), (2, "none", None)]),
        ("at(3)", ("/a", "/b"), []),
    ],
)
async def test_an_error_is_recovered_from_by_the_same_page(
    site: Site, tmp_path: Path, policy: str, paths: tuple[str, ...], expected: list[Any]
) -> None:
    assert await visited(site, tmp_path, {**STATUS, "policy": policy}, *paths) == expected


@pytest.mark.parametrize(
    ("status", "means"),
    [
        (199, "none"),
        (200, "reloaded"),
        (399, "reloaded"),
        (400, "none"),
        (404, "none"),
        (500, "none"),
    ],
)
def test_an_error_of_the_site_is_no_page_that_came_back(status: int, means: str) -> None:
    """Nor one that the agent went on to."""
    event = {"t": 1.0, "k": 1, "method": "GET", "url": "http://a/1", "outcome": "fired"}
    page = {"t": 2.0, "method": "GET", "url": "http://a/1", "faults": [], "error": None}
    plan = plan_of({**STATUS, "policy": "at(1)"})

    def came(url: str) -> tuple[str, bool]:
        events: list[dict[str, Any]] = [
            {**event, "type": "fault", "fault": "status"},
            {**page, "type": "page", "k": 2, "url": url, "status": status, "replaced": False},
            {"type": "ended", "t": 3.0},
        ]
        (found,) = recoveries(plan, events)
        return found["means"], found["recovered"]

    assert came("http://a/1") == (means, means == "reloaded")
    assert came("http://a/2") == ("left" if means == "reloaded" else "none", False)


async def test_a_redirect_is_a_page_but_for_an_expired_session(site: Site, tmp_path: Path) -> None:
    for kind, fault in (("status", STATUS), ("session", {"kind": "session", "location": "/b"})):
        means = await visited(
            site, tmp_path / kind, {**fault, "policy": "at(1)"}, "/moved", "/moved", "/a"
        )
        assert means == [(1, "reloaded", 2) if kind == "status" else (1, "left", None)]


async def test_an_expired_session_is_recovered_from_after_the_login(
    site: Site, tmp_path: Path
) -> None:
    fault = {"kind": "session", "location": "/login", "policy": "at(1)"}
    assert await visited(site, tmp_path, fault, "/a", "/login", "/a") == [(1, "reloaded", 2)]


async def test_a_form_is_sent_again_by_its_own_method(site: Site, tmp_path: Path) -> None:
    async with (
        proxied({**STATUS, "policy": "at(1)"}, out=tmp_path) as proxy,
        client(proxy) as http,
    ):
        await http.post(site.origin + "/save", headers=page_headers())
        await load(http, site.origin + "/save")
        await http.post(site.origin + "/save", headers=page_headers())
    (event,) = events_of(tmp_path, "recovery")
    assert (event["means"], event["at"]) == ("reloaded", 3)


@pytest.mark.parametrize("kind", ["delay"])
async def test_a_page_that_is_held_back_is_waited_for(
    site: Site, tmp_path: Path, kind: str
) -> None:
    fault = {"kind": kind, "seconds": 0.5, "policy": "at(1)"}
    assert await visited(site, tmp_path, fault, "/plain") == [(1, "waited", 1)]


@pytest.mark.parametrize("kind", ["delay"])
async def test_a_page_that_is_held_back_is_loaded_again(
    site: Site, tmp_path: Path, kind: str
) -> None:
    fault = {"kind": kind, "seconds": 5.0, "policy": "at(1)"}
    async with proxied(fault, out=tmp_path) as proxy, client(proxy) as http:
        impatient = asyncio.create_task(load(http, site.origin + "/plain"))
        async with asyncio.timeout(30):
            while not events_of(tmp_path, "fault"):
                await asyncio.sleep(0.02)
        impatient.cancel()
        await load(http, site.origin + "/plain")
    (event,) = events_of(tmp_path, "recovery")
    assert (event["means"], event["at"]) == ("reloaded", 2)
    assert event["seconds"] >= 0


@pytest.mark.parametrize(("wait", "means"), [(0.0, "reloaded"), (1.0, "waited")])
async def test_an_offline_page_comes_back_in_time(
    site: Site, tmp_path: Path, wait: float, means: str
) -> None:
    fault = {"kind": "offline", "retry_seconds": 1, "policy": "at(1)"}
    async with proxied(fault, out=tmp_path) as proxy, client(proxy) as http:
        await load(http, site.origin + "/b")
        await asyncio.sleep(wait)
        await load(http, site.origin + "/b")
    (event,) = events_of(tmp_path, "recovery")
    assert (event["means"], event["expected"], event["at"]) == (means, "wait", 2)


async def test_truncated_reset_and_bare_pages_are_loaded_again(site: Site, tmp_path: Path) -> None:
    for fault in (
        {"kind": "truncate", "policy": "at(1)"},
        {"kind": "reset", "policy": "at(1)"},
        {"kind": "assets", "assets": ["style"], "policy": "at(1)"},
    ):
        out = tmp_path / str(fault["kind"])
        async with proxied(fault, out=out) as proxy, client(proxy) as http:
            if fault["kind"] == "assets":
                await load(http, site.origin + "/b")
                await http.get(site.origin + "/style.css", headers=page_headers("style"))
            else:
                with pytest.raises(httpx.TransportError):
                    await load(http, site.origin + "/b")
                await asyncio.sleep(0.6)  # by then no browser would ask by itself
            await load(http, site.origin + "/b")
        (event,) = events_of(out, "recovery")
        assert (event["means"], event["k"], event["at"]) == ("reloaded", 1, 2), fault


@pytest.mark.parametrize(
    ("closes", "paths", "expected"),
    [
        (True, ("/b",), ("dismissed", 1)),
        (False, ("/b",), ("reloaded", 2)),
        (False, ("/a",), ("left", None)),
        (False, (), ("none", None)),
    ],
)
async def test_a_popup_is_closed_left_or_loaded_away(
    site: Site, tmp_path: Path, closes: bool, paths: tuple[str, ...], expected: Any
) -> None:
    fault = {"kind": "popup", "policy": "at(1)"}
    async with proxied(fault, out=tmp_path) as proxy, client(proxy) as http:
        await load(http, site.origin + "/b")
        if closes:
            (fired,) = events_of(tmp_path, "fault")
            await http.post(f"{site.origin}{BEACON}{fired['overlay']}")
        for path in paths:
            await load(http, site.origin + path)
    (event,) = events_of(tmp_path, "recovery")
    assert (event["means"], event["at"]) == expected
    assert (event["model_calls"], event["usage"]["output"]) == (0, None)
