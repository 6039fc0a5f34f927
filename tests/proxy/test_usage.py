"""Usage as the providers' own types hold it, and the split of time."""

from __future__ import annotations

import ast
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.proxy.site import plan_of
from trajudge.judges.adapters.wire import read_usage
from trajudge.proxy import addon
from trajudge.proxy.results import split, task_results

CHAT = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
    "completion_tokens_details": {"reasoning_tokens": 8},
}


def test_the_addon_imports_the_standard_library_and_mitmproxy_alone() -> None:
    """It runs under whichever mitmproxy the user has."""
    tree = ast.parse(Path(addon.__file__).read_text(encoding="utf-8"))
    names = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""] if isinstance(node, ast.ImportFrom) else map(_name, node.names)
        )
    }
    assert names - sys.stdlib_module_names == {"mitmproxy"}


def _name(alias: ast.alias) -> str:
    return alias.name


def test_chat_usage_is_what_the_adapters_read() -> None:
    ours = addon.parse_usage(CHAT)
    read = read_usage(CHAT)
    assert read is not None
    theirs = read.model_dump()
    assert ours == {name: theirs[name] for name in addon.USAGE_FIELDS}


def test_usage_of_the_responses_api() -> None:
    from openai.types.responses.response_usage import ResponseUsage

    written = ResponseUsage.model_validate(
        {
            "input_tokens": 50,
            "output_tokens": 9,
            "total_tokens": 59,
            "input_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 4},
        }
    )
    ours = addon.parse_usage(written.model_dump())
    assert ours == {"input": 20, "cache_read": 30, "cache_write": None, "output": 9, "reasoning": 4}


@pytest.mark.parametrize("usage", [None, [], {}, {"prompt_tokens": "many"}])
def test_what_is_not_stated_is_none(usage: Any) -> None:
    assert addon.parse_usage(usage) is None
    assert (addon.parse_usage({"prompt_tokens": 3}) or {})["output"] is None
    assert (addon.parse_usage({"completion_tokens": 3}) or {})["output"] == 3
    details = {"output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 2}}
    assert (addon.parse_usage(details) or {})["reasoning"] == 2


def test_events_break_anywhere() -> None:
    text = b': hello\ndata: {"a": 1}\n\nevent: x\r\ndata: {"b":\r\ndata: 2}\r\n\r\ndata: [DONE]\n\n'
    for size in range(1, len(text)):
        stream, events = addon.StreamedAnswer(), list[object]()
        for start in range(0, len(text), size):
            events += stream.events(text[start : start + size])
        assert events == [
            {"a": 1},
            {"b": 2},
        ] or events == [{"a": 1}, {"b": 2}, ["DONE"]]


def test_a_moment_counts_once() -> None:
    spans = [
        ("proxy", 0, 10),
        ("site", 1, 4),
        ("site", 2, 5),
        ("injected", 4.5, 7),
        ("model", 6, 8),
        ("model", 20, 30),
    ]
    assert split(spans, 0, 12) == {
        "model": 2.0,
        "injected": 1.5,
        "site": 3.5,
        "proxy": 3.0,
        "agent": 2.0,
    }


def test_an_event_of_more_than_8_mib_is_passed_over() -> None:
    stream = addon.StreamedAnswer()
    longest = b'data: "' + b"x" * (8 * 2**20 - 8) + b'"'
    assert len(longest) == 8 * 2**20
    pieces = (longest, b"\n\n", longest + b" ", b"\n\n", b'data: "next"\n\n')
    assert [len(str(event)) for piece in pieces for event in stream.events(piece)] == [
        8 * 2**20 - 8, 4,
    ]  # fmt: skip


def test_the_figures_of_a_task() -> None:
    """Reckoned by hand; gpt-4o costs $2.50 and $10 for a million tokens."""
    plan = plan_of(
        {"kind": "popup", "policy": "at(1)"},
        {"kind": "status", "status": 503, "policy": "at(2)"},
        {"kind": "reset", "policy": "at(3)"},
        {"kind": "delay", "seconds": 1, "policy": "bernoulli(1)"},
    )
    page: dict[str, Any] = {
        "type": "page",
        "method": "GET",
        "error": None,
        "status": 200,
        "faults": [],
    }
    call = {"type": "model", "duration_ms": 1000, "proxy_ms": 250, "error": None}
    usage = {"input": 1000, "output": 100, "cache_read": 0, "cache_write": None, "reasoning": None}
    fault = {"type": "fault", "method": "GET", "kind": "of no use here"}
    events: list[dict[str, Any]] = [
        {"type": "task", "task": "shop.1", "seed": 5, "horizon": None},
        {
            **fault,
            "t": 101,
            "k": 1,
            "fault": "popup",
            "overlay": "p1",
            "outcome": "fired",
            "url": "/1",
        },
        {**fault, "t": 101, "k": 1, "fault": "delay", "outcome": "masked", "url": "/1"},
        {**page, "t": 101, "k": 1, "url": "/1", "replaced": False, "certain": True, "began": 100.5},
        {**call, "t": 103, "model": "gpt-4o", "usage": usage},
        {"type": "popup_closed", "t": 103.5, "k": 1, "overlay": "another"},
        {"type": "popup_closed", "t": 104, "k": 1, "overlay": "p1"},
        {**fault, "t": 105, "k": 2, "fault": "status", "outcome": "fired", "url": "/2"},
        {**page, "t": 105, "k": 2, "url": "/2", "replaced": True, "certain": False, "began": 105},
        {**call, "t": 107, "model": "gpt-4o", "usage": {**usage, "input": None}},
        {**call, "t": 108, "model": None, "usage": None, "error": "status 500"},
    ]
    requests = [{"spans": [("site", 100.5, 101), ("proxy", 100.5, 101.25)]}]
    ended = {"started": 100, "ended": 110, "refused": 1, "tunnels": 2}
    recovered, figures = task_results(plan, events, requests, ended)
    nothing = dict.fromkeys(addon.USAGE_FIELDS)
    assert recovered == [
        {
            **{"k": 1, "fault": "popup", "kind": "popup", "means": "dismissed", "recovered": True},
            **{"expected": "dismiss", "at": 1, "seconds": 3, "model_calls": 1, "usage": usage},
        },
        {
            **{"k": 2, "fault": "status", "kind": "status", "means": "none", "recovered": False},
            **{"expected": "reload", "at": None, "seconds": 5, "model_calls": 2},
            "usage": {**nothing, "output": 100, "cache_read": 0},
        },
    ]
    none: dict[str, list[int]] = {name: [] for name in ("fired", "masked", "impossible")}
    none |= {"unreached": [], "open": [], "recovered": []}
    assert figures == {
        **{"task": "shop.1", "seed": 5, "seconds": 10, "page_loads": 2, "requests": 1},
        **{"uncertain_page_loads": 1, "refused": 1, "tunnels": 2, "model_calls": 3},
        **{"failed_calls": 1, "calls_of_unknown_usage": 1, "calls_of_unknown_cost": 2},
        "dollars": pytest.approx(0.0035),
        "usage": {**nothing, "input": 1000, "output": 200, "cache_read": 0},
        "latency": {"model": 2.25, "injected": 0, "site": 0.5, "proxy": 1, "agent": 6.25},
        "exposure": [
            {
                **none,
                "fault": "popup",
                "kind": "popup",
                "planned": [1],
                "fired": [1],
                "recovered": [1],
            },
            {**none, "fault": "status", "kind": "status", "planned": [2], "fired": [2]},
            {**none, "fault": "reset", "kind": "reset", "planned": [3], "unreached": [3]},
            {
                **none,
                "fault": "delay",
                "kind": "delay",
                "planned": [1, 2],
                "masked": [1],
                "open": [2],
            },
        ],
    }


LOADS = ("GET", "POST", "PUT")


@pytest.mark.parametrize(
    ("headers", "page", "rest"),
    [
        ({"sec-fetch-dest": "document"}, LOADS[:2], (True, "", "document")),
        ({"sec-fetch-dest": "document", "sec-purpose": "prefetch"}, (), (True, "", "document")),
        ({"sec-fetch-dest": "iframe"}, (), (True, "", "document")),
        ({"sec-fetch-dest": "style"}, (), (True, "style", "stylesheet")),
        ({"sec-fetch-dest": "audio"}, (), (True, "", "media")),
        ({"sec-fetch-dest": "report"}, (), (True, "", "other")),
        ({"accept": "text/html,*/*"}, LOADS[:2], (False, "", "document")),
        ({"accept": "text/html", "purpose": "prefetch"}, (), (False, "", "other")),
        ({"accept": "text/html", "x-requested-with": "XMLHttpRequest"}, (), (False, "", "other")),
        ({"accept": "image/png"}, (), (False, "", "other")),
        ({}, (), (False, "", "other")),
    ],
)
def test_what_a_request_is_for(
    headers: dict[str, str], page: tuple[str, ...], rest: tuple[bool, str, str]
) -> None:
    for method in LOADS:
        purpose = addon.purpose_of(method, headers)
        assert purpose.page is (method in page)
        if purpose.page or "accept" not in headers:
            assert purpose[1:] == rest


@pytest.mark.parametrize(
    ("kind", "disposition", "reason"),
    [
        ("text/html; charset=utf-8", "inline", ""),
        ("application/xhtml+xml", "", ""),
        ("", "", "the content type is not given, not text/html"),
        ("text/plain", "", "the content type is text/plain, not text/html"),
        ("text/html;charset=UTF-16", "", "the charset in 'text/html;charset=UTF-16' does not"),
        ("text/html", "attachment; filename=a", "it is a download"),
    ],
)
def test_why_nothing_can_be_laid_over_an_answer(kind: str, disposition: str, reason: str) -> None:
    unfit = addon.unfit_for_overlay(kind, disposition)
    assert unfit.startswith(reason)
    assert bool(unfit) is bool(reason)


def test_an_asset_fails_on_the_page_on_which_it_is_planned() -> None:
    faults = [
        {"id": "late", "kind": "delay", "policy": {"at": 1}},
        {"id": "bare", "kind": "assets", "policy": {"at": 1}, "assets": ["style", "font"]},
    ]
    task = addon.Task(1, "shop.1", 0, {"late": (1,), "bare": (1,)}, faults)
    found: list[str | None] = []
    for _ in range(3):
        for kind in ("style", "image", ""):
            fault = task.failing_asset(kind)
            found.append(fault["id"] if fault else None)
        load = task.load("GET", "/")
    assert found == [None, None, None, "bare", None, None, None, None, None]
    assert (load.k, load.method, load.url, task.loads) == (3, "GET", "/", 3)


def test_of_a_request_a_mebibyte_is_kept() -> None:
    task = addon.Task(1, "shop.1", 0, {}, [])
    exchange = addon.SiteExchange(task, addon.purpose_of("POST", {}), "POST", "/", 0, ())
    for _ in range(3):
        assert exchange.take(b"x" * 2**19) == b"x" * 2**19
    assert (len(exchange.body), exchange.body_size) == (2**20, 3 * 2**19)
    exchange.spans += [("site", 1, 3), ("proxy", 0, 9), ("site", 5, 6)]
    assert exchange.seconds("site") == 3


def test_what_is_recorded_of_a_model_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of "asked" that began at 100 s, was sent a quarter later, and ends at 110."""
    monkeypatch.setattr(addon, "time", SimpleNamespace(time=lambda: 110.0))
    recorded: list[dict[str, Any]] = []
    proxy: Any = SimpleNamespace(note=lambda task, kind, **fields: recorded.append(fields))

    def ended(status: int, error: str | None = None, **changes: object) -> dict[str, Any]:
        task = addon.Task(1, "shop.1", 0, {}, [], loads=2)
        call = addon.ModelCall(task, "openai", "/chat", 100.0)
        call.asked, call.sent = bytearray(b'{"model": "asked", "stream": 1}'), 100.25
        for name, value in changes.items():
            setattr(call, name, value)
        for _ in range(2):  # the second time it has ended
            addon.FaultAddon.end_call(proxy, call, status, error)
        (event,) = recorded
        recorded.clear()
        return event

    def stream(**fields: object) -> addon.StreamedAnswer:
        answer = addon.StreamedAnswer()
        for name, value in fields.items():
            setattr(answer, name, value)
        return answer

    whole = bytearray(b'{"model": "gpt", "usage": {"completion_tokens": 3}}')
    usage = {**dict.fromkeys(addon.USAGE_FIELDS), "output": 3}
    assert ended(200, whole=whole, first=101.0) == {
        **{"k": 2, "api": "openai", "path": "/chat", "model": "gpt", "stream": True},
        **{"status": 200, "usage": usage, "error": None},
        **{"ttft_ms": 1000, "duration_ms": 10_000, "proxy_ms": 250},
    }
    errors = [ended(*outcome)["error"] for outcome in ((399,), (400,), (500, "it broke off"))]
    assert errors == [None, "status 400", "it broke off"]
    unread = ended(-1, "gone", asked=bytearray(), sent=0.0)
    assert (unread["model"], unread["ttft_ms"], unread["proxy_ms"]) == (None, None, 10_000)
    assert ended(200)["model"] == "asked"
    for answer, error, told in (
        (stream(ended=True), None, ("asked", None)),
        (stream(model="said"), None, ("said", "the stream ended early")),
        (stream(), "it broke off", ("asked", "it broke off")),
        (stream(ended=True, error="overloaded"), None, ("asked", "overloaded")),
    ):
        event = ended(200, error, answer=answer)
        assert (event["model"], event["error"]) == told


@pytest.mark.parametrize("first_byte", [104.0, None])
def test_what_is_recorded_of_a_page(
    monkeypatch: pytest.MonkeyPatch, first_byte: float | None
) -> None:
    """From 100 to 110 s; the site took two of them, a fault three."""
    monkeypatch.setattr(addon, "time", SimpleNamespace(time=lambda: 110.0))
    recorded: list[dict[str, Any]] = []
    proxy: Any = SimpleNamespace(
        note=lambda task, kind, **fields: recorded.append(fields),
        **{"under_way": set(), "finished": ["one before"], "requests": io.StringIO()},
    )
    task, purpose = addon.Task(7, "shop.1", 0, {}, []), addon.Purpose(True, True, "", "document")
    exchange = addon.SiteExchange(task, purpose, "GET", "http://a/", 100.0, ((b"A", b"b"),))
    exchange.load, exchange.first_byte = addon.PageLoad(3, []), first_byte
    spans = [("site", 101.0, 103.0), ("injected", 103.0, 106.0)]
    exchange.spans = list(spans)
    for _ in range(2):  # the second time it has ended
        addon.FaultAddon.finish(proxy, exchange, 200, "OK", ((b"C", b"d"),), None)
    plain = {"method": "GET", "url": "http://a/", "status": 200, "faults": [], "error": None}
    assert recorded == [
        {
            **plain,
            **{"k": 3, "certain": True, "replaced": False, "size": 0, "began": 100},
            **{"site_ms": 2000, "injected_ms": 3000, "proxy_ms": 5000},
        }
    ]
    proxy.finished = proxy.finished[1:]
    addon.FaultAddon.write_requests(proxy)
    (line,) = map(json.loads, proxy.requests.getvalue().splitlines())
    assert line == {
        **plain,
        **{"number": 7, "began": 100, "seconds": 10, "wait": 4 if first_byte else 10},
        **{"headers": [["A", "b"]], "body": "", "body_size": 0, "reason": "OK"},
        **{"response_headers": [["C", "d"]], "size": 0, "type": "document", "k": 3},
        "spans": [*map(list, spans), ["proxy", 100, 110]],
    }


def test_a_host_has_a_server_and_an_address_an_api() -> None:
    sites: list[dict[str, Any]] = [
        {"host": "shop.test", "server": {"host": "10.0.0.1", "port": 1, "tls": False}},
        {"host": "*.localhost", "server": None},
        {"host": "plain.test", "server": None},
    ]
    apis = [
        {"host": "api.test", "port": 443, "path": "/v1"},
        {"host": "api.test", "port": 443, "path": "/v2"},
    ]
    proxy: Any = SimpleNamespace(settings={"sites": sites, "apis": apis})

    def server(host: str) -> dict[str, Any] | None:
        return addon.FaultAddon.server_of(proxy, host, 80, tls=True)

    assert server("shop.test") == sites[0]["server"]
    assert server("a.localhost") == {"host": "127.0.0.1", "port": 80, "tls": True}
    assert server("plain.test") == {"host": "plain.test", "port": 80, "tls": True}
    assert server("localhost") is server("other.test") is server("a.shop.test") is None
    found = [
        addon.FaultAddon.api_at(proxy, *address)
        for address in (
            *(("api.test", 443), ("api.test", 443, "/v2/chat"), ("api.test", 443, "/v3")),
            *(("api.test", 80), ("other.test", 443, "/v1")),
        )
    ]
    assert found == [apis[0], apis[1], None, None, None]
