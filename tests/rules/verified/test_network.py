"""Addresses, bodies, paths, sites, the order of requests, and the page that was shown last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.rules.recordings import shop
from tests.rules.verified.tasks import (
    HOSTS,
    answer,
    mutation,
    navigation,
    page,
    request,
    task,
    trace,
)
from tests.tables import table
from trajudge.rules.har import Body, Entry, Pair, Request, in_time_order
from trajudge.rules.limits import BadPattern
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import (
    DECLARATIONS,
    Binding,
    RequestKind,
    address,
    bound,
    canonical,
    declared,
    document,
    find,
    json_path,
    load_hosts,
    load_trace,
    parse_host,
    recorded_kind,
    same_base,
    start_of,
    trace_of_list,
    usual_kind,
)
from trajudge.rules.verified.tasks import Task, load_tasks
from trajudge.util.errors import UserError

DOCUMENT = {
    "a": [{"n": 1, "b": {"c": "x"}}, {"n": 2, "b": {"c": "y"}}],
    "a-b": {"d": None},
    "lists": [{"k": 1, "rows": [{"n": 1}]}, {"k": 2, "rows": [{"n": 1}, {}]}],
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$.a[0].b.c", ["x"]),
        ("$.a[-1].n", [2]),
        ("$.a[*].n", [1, 2]),
        ("$['a-b'].d", [None]),
        ("$.a-b.d", [None]),
        ("$.a[?(@.n == 2)].b.c", ["y"]),
        ("$.a[?(@.n >= 1)].n", [1, 2]),
        ("$.a[?(@.n > 'x')].n", []),
        ("$.a[?(@.n == 1 && @.n <= 2)].b.c", ["x"]),
        ("$.a[?( @.n >= 1 && @.n != 1 )].b.c", ["y"]),
        ("$.a[?(@.n == 1 && @.m == 'a && b')].n", []),
        ("$.a[?(@.b.c == 'y')].n", [2]),
        ("$.lists[?(@.rows[0].n == 1 && @.k == 2)].k", [2]),
        ("$.lists[?(@.rows[1].n != 0)].k", []),
        ("$.a[7].n", []),
        ("$.nothing", []),
        ("$", [DOCUMENT]),
    ],
)
def test_a_path_leads_to_values(path: str, found: list[Any]) -> None:
    assert find(path, DOCUMENT) == found
    assert json_path(path).several is ("*" in path or "?" in path)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("a.b", "does not begin with $"),
        ("$..a", "is not understood at '..a'"),
        ("$.a[?(@.n =~ /x/)]", "is not understood at '[?(@.n =~ /x/)]'"),
        ("$.a[0", "is not understood at '[0'"),
        ("$." + "a" * 80 + "[" + "b" * 80, "is not understood at '[" + "b" * 19 + "'"),
    ],
)
def test_a_path_that_is_not_understood_is_said(path: str, said: str) -> None:
    with pytest.raises(BadPattern) as raised:
        find(path, DOCUMENT)
    assert str(raised.value) == f"the path {path[:60]!r} {said}"


MULTIPART = (
    '--b\r\nContent-Disposition: form-data; name="title"\r\n\r\nTea\r\n'
    '--b\r\nContent-Disposition: form-data; filename="x"; name="file"\r\n\r\nline\r\n--b--\r\n'
)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (Body("application/x-www-form-urlencoded", "a=1&a=2&b[]=1&b[]=2&c="), "last"),
        (Body("application/json; charset=utf-8", '{"a": 1}'), {"a": 1}),
        (Body("text/plain", '{"a": 1}'), {"a": 1}),
        (Body("application/json", "{"), None),
        (Body("multipart/form-data; boundary=b", MULTIPART), {"title": "Tea", "file": "line"}),
        (Body("application/x-www-form-urlencoded", None, (Pair("a", "1"),)), {"a": "1"}),
        (Body("application/x-www-form-urlencoded", "a=2", (Pair("a", "1"),)), {"a": "2"}),
        (Body("application/json", None), None),
        (None, None),
    ],
)
def test_a_body_as_data(body: Body | None, found: Any) -> None:
    expected = {"a": "2", "b[]": ["1", "2"], "c": ""} if found == "last" else found
    assert document(body) == expected
    if found == "last":
        assert document(body, Mode.RELEASE) == {"a": "1", "b[]": "1", "c": ""}


GITLAB = Binding((("http://git.example:8023", "__GITLAB__"),))


@table(
    "specified sent",
    r"""
    __GITLAB__/a/b             | HTTP://Git.Example:8023/a/b/
    __GITLAB__//a              | http://git.example:8023/a
    __GITLAB__/a%2Fb           | http://git.example:8023/a%2fb
    __GITLAB__/A               | http://git.example:8023/a
    ^__GITLAB__/\d+$           | http://git.example:8023/77
    __GITLAB__/f/{{post_id}}/c | http://git.example:8023/f/12/c
    """,
)
def test_an_address_that_a_base_address_names(specified: str, sent: str) -> None:
    assert same_base(specified, address(sent, GITLAB))


@table(
    "specified sent",
    r"""
    __GITLAB__/a               | http://git.example:80230/a
    __GITLAB__/a               | http://evil.example/?http://git.example:8023/a
    ^__GITLAB__/\d+$           | http://git.example:8023/x77
    __GITLAB__/f/{{post_id}}/c | http://git.example:8023/f/1/2/c
    """,
)
def test_an_address_that_it_does_not_name(specified: str, sent: str) -> None:
    assert not same_base(specified, address(sent, GITLAB))


def test_addresses_in_texts_give_way_to_the_placeholder() -> None:
    text = "see [it](http://git.example:8023/x) or http://git.example:80231/y"
    assert GITLAB.bind_text(text) == "see [it](__GITLAB__/x) or http://git.example:80231/y"


def test_sites_are_found_by_configuration_or_by_port() -> None:
    pages = ["https://news.example", "http://box:9999", "http://box:1234"]
    found = bound(["__GITLAB__", "__REDDIT__"], {"__GITLAB__": ("http://g/",)}, pages)
    assert {name: base for base, name in found.bases} == {
        "__GITLAB__": "http://g",
        "__REDDIT__": "http://box:9999",
    }
    assert found.inferred == (("http://box:9999", "__REDDIT__"),)
    assert found.notes == (
        "reddit is taken to be http://box:9999, by its port: --site reddit=URL says it",
    )
    assert bound(["__SHOPPING_ADMIN__"], {}, ["http://a:7780"]).bases == (
        ("http://a:7780/admin", "__SHOPPING_ADMIN__"),
    )


@pytest.mark.parametrize(
    "pages",
    [[], ["https://news.example"], ["http://a:9999", "http://b:9999"], ["http://a:19999"]],
)
def test_a_site_that_nothing_tells_stays_unknown(pages: list[str]) -> None:
    found = bound(["__REDDIT__"], {}, pages)
    assert (found.bases, found.unknown) == ((), ("__REDDIT__",))


def test_a_trace_of_placeholders_needs_no_address() -> None:
    assert start_of("__REDDIT__/f/tea") == "__REDDIT__"
    assert bound(["__REDDIT__"], {}, ["__REDDIT__"]) == Binding(())


def test_an_origin_has_one_form() -> None:
    assert canonical("HTTP://A.example:80/X?y#z") == "http://a.example/X?y#z"
    assert canonical("https://[::1]:8443/x") == "https://[::1]:8443/x"
    assert canonical("about:blank") == "about:blank"
    assert canonical("http://a:99999999/") == "http://a:99999999/"


def test_hosts_are_given_by_file_or_by_option(tmp_path: Any) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"environments": {"__GITLAB__": {"urls": ["http://a", "http://b"]}}}')
    assert load_hosts(path) == {"__GITLAB__": ("http://a", "http://b")}
    assert parse_host("shopping_admin=http://x/admin") == ("__SHOPPING_ADMIN__", "http://x/admin")
    for text in ("gitlab", "gitlab=ftp://x", "a b=http://x"):
        with pytest.raises(UserError):
            parse_host(text)


CART = navigation({"expected": {"url": "__SHOPPING__/cart"}})
NAVIGATED = answer(task_type="navigate")


@pytest.mark.parametrize(
    ("base", "outcome"),
    [
        ("http://anywhere.example:7770", Outcome.PASS),
        ("http://foreign.example", Outcome.UNKNOWN),
        ("http://foreign.example:7780", Outcome.UNKNOWN),
        ("__SHOPPING__", Outcome.PASS),
    ],
)
def test_a_site_is_not_the_first_that_the_trace_holds(base: str, outcome: Outcome) -> None:
    found = VerifiedEvaluator().evaluate(CART, NAVIGATED, trace(page("/cart", base=base)))
    assert found.outcome is outcome
    if outcome is Outcome.UNKNOWN:
        assert "give --site shopping=URL" in found.reasons[0]
    assert bool(found.notes) is base.endswith(":7770")


def test_two_hosts_on_a_sites_port_are_no_evidence_of_it() -> None:
    both = trace(*(page("/cart", base=f"http://{name}.example:7770") for name in ("a", "b")))
    assert VerifiedEvaluator().evaluate(CART, NAVIGATED, both).outcome is Outcome.UNKNOWN
    given = VerifiedEvaluator(hosts={"__SHOPPING__": ("http://a.example:7770",)})
    assert given.evaluate(CART, NAVIGATED, both).outcome is Outcome.FAIL


def test_an_address_in_an_answer_is_unknown_with_its_site_and_the_rest_decides() -> None:
    what = task(
        ["__SHOPPING__/tea"], {"type": "array", "items": {"type": "string", "format": "url"}}
    )
    there = trace(page("/", base="http://foreign.example"))
    said = answer(["http://foreign.example/tea"])
    assert VerifiedEvaluator().evaluate(what, said, there).outcome is Outcome.UNKNOWN
    assert VerifiedEvaluator().evaluate(what, said, None).outcome is Outcome.UNKNOWN
    wrong = answer(["http://foreign.example/tea"], status="NOT_FOUND_ERROR")
    assert VerifiedEvaluator().evaluate(what, wrong, there).outcome is Outcome.FAIL
    known = VerifiedEvaluator(hosts={"__SHOPPING__": ("http://foreign.example",)})
    assert known.evaluate(what, said, None).outcome is Outcome.PASS


def test_activity_on_a_site_that_nobody_told_is_unknown() -> None:
    there = trace(page("/", base="http://foreign.example"))
    verdict = VerifiedEvaluator(activity=True).evaluate(task(["a"]), answer(["a"]), there)
    assert verdict.outcome is Outcome.UNKNOWN


DONE = answer(None, "navigate")
A, B = ({"expected": {"url": f"__SHOPPING__/{name}"}} for name in "ab")
Shown = list[tuple[str, str]]


def verdict(task: Task, entries: list[dict[str, Any]], mode: Mode = Mode.SOUND) -> Outcome:
    return VerifiedEvaluator(mode, HOSTS).evaluate(task, DONE, trace(*entries)).outcome


@pytest.mark.parametrize(
    ("times", "order"),
    [
        (["2026-01-01T00:00:02Z", "2026-01-01T00:00:01Z"], (1, 0)),
        (["2026-01-01T00:00:01Z", "2026-01-01T00:00:01.000Z"], (0, 1)),
        # 12:00 in Paris is before 11:30 in London.
        (["2026-01-01T11:30:00+00:00", "2026-01-01T12:00:00+01:00"], (1, 0)),
        (["2026-01-01T00:00:02", "2026-01-01T00:00:01Z"], (1, 0)),
        # An entry without a time stays behind the one before it.
        (["2026-01-01T00:00:02Z", None, "2026-01-01T00:00:01Z"], (2, 0, 1)),
        ([None, "2026-01-01T00:00:01Z"], (0, 1)),
        (["soon", 7, ""], (0, 1, 2)),
        ([], ()),
    ],
)
def test_entries_are_sorted_by_their_time(times: list[Any], order: tuple[int, ...]) -> None:
    entries = [Entry(request=Request(method="GET", url="x"), started=time) for time in times]
    assert in_time_order(entries) == order


@pytest.mark.parametrize("seconds", [(2, 1), (1, 2), (1, 1)])
def test_the_time_and_not_the_place_in_the_file_tells_the_last_page(
    seconds: tuple[int, int],
) -> None:
    """As case 11: the page that is asked for stands first in the file."""
    entries = [
        {**page(path), "startedDateTime": f"2026-01-01T00:00:0{second}.000Z"}
        for path, second in zip(("/a", "/home"), seconds, strict=True)
    ]
    sent_last = Outcome.PASS if seconds[0] > seconds[1] else Outcome.FAIL
    assert verdict(navigation(A), entries) is sent_last
    # The released package reads the order of the file.
    assert verdict(navigation(A), entries, Mode.RELEASE) is Outcome.FAIL


def test_the_last_request_is_the_one_that_was_sent_last() -> None:
    task = mutation(
        {"expected": {"url": "__SHOPPING__/cart", "http_method": "POST", "post_data": {"n": "2"}}}
    )
    for later, outcome in (("2", Outcome.PASS), ("1", Outcome.FAIL)):
        entries = [
            {
                **request("/cart", "POST", form=f"n={number}"),
                "startedDateTime": f"2026-01-01T00:00:0{2 if number == later else 1}Z",
            }
            for number in ("2", "1")
        ]
        made = VerifiedEvaluator(hosts=HOSTS).evaluate(
            task, answer(None, "mutate"), trace(*entries)
        )
        assert made.outcome is outcome


TABS: list[tuple[Shown, Outcome, Outcome]] = [
    # tab and page, in time order; verdicts where a and b, and where b alone is asked for.
    ([("1", "home"), ("1", "a"), ("2", "home"), ("2", "b")], Outcome.PASS, Outcome.PASS),
    ([("1", "a"), ("2", "b"), ("1", "home")], Outcome.FAIL, Outcome.FAIL),
    ([("1", "b"), ("2", "home"), ("2", "a")], Outcome.PASS, Outcome.FAIL),
    ([("1", "a"), ("2", "b"), ("3", "home")], Outcome.FAIL, Outcome.FAIL),
    ([("3", "home"), ("1", "a"), ("2", "b")], Outcome.PASS, Outcome.PASS),
    ([("1", "a"), ("1", "b")], Outcome.PASS, Outcome.PASS),
    ([("", "a"), ("", "b")], Outcome.PASS, Outcome.PASS),
    ([("1", "a"), ("", "b")], Outcome.PASS, Outcome.PASS),
    ([("1", "b"), ("", "home"), ("", "a")], Outcome.FAIL, Outcome.FAIL),
]


@pytest.mark.parametrize(("shown", "both", "single"), TABS)
def test_the_last_page_of_each_tab_counts(shown: Shown, both: Outcome, single: Outcome) -> None:
    entries = [page(f"/{name}") | ({"pageref": tab} if tab else {}) for tab, name in shown]
    assert verdict(navigation(A, B), entries) is both
    assert verdict(navigation(B, A), entries) is both
    assert verdict(navigation(B), entries) is single


def test_a_request_of_a_tab_that_was_left_shows_no_final_page() -> None:
    """A route on the map is asked for by a script of the page that is shown."""
    check = {"expected": {"url": "^.*/route/v1/.*/1,2;3,4$"}}
    route = request("/route/v1/driving/1,2;3,4")
    for tabs, outcome in (("112", Outcome.FAIL), ("211", Outcome.PASS), ("122", Outcome.FAIL)):
        loads = (
            [page("/map"), route, page("/home")]
            if tabs != "211"
            else [page("/home"), page("/map"), route]
        )
        entries = [{**entry, "pageref": tab} for entry, tab in zip(loads, tabs, strict=True)]
        assert verdict(navigation(check), entries) is outcome


@pytest.mark.browser
def test_two_tabs_of_a_real_browser_are_told_apart(chromium: Path, tmp_path: Path) -> None:
    """As case 10, recorded by Playwright: each tab opens the site's start page first."""
    from playwright.sync_api import sync_playwright

    file = tmp_path / "network.har"
    with shop() as (site, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(record_har_path=file)
        for name in "ab":
            tab = context.new_page()
            tab.goto(f"{site}/home")
            tab.goto(f"{site}/{name}")
        context.close()
        browser.close()
    evaluator = VerifiedEvaluator(hosts={"__SHOPPING__": (site,)})
    made = evaluator.evaluate(navigation(A, B), DONE, load_trace(file))
    assert made.outcome is Outcome.PASS, made.reasons


ADMIN = "http://shop.example:7780/admin"
MAP = "http://map.example:3000"
SCRIPT_HOSTS = {"__SHOPPING_ADMIN__": (ADMIN,), "__MAP__": (MAP,)}
# As the shop's administration and the map send them: seen in recorded traces.
SCRIPT = {"accept": "application/json, text/javascript, */*", "x-requested-with": "XMLHttpRequest"}
SIDE_BAR = {"accept": "text/html, */*; q=0.01", "x-requested-with": "XMLHttpRequest"}
ORDERS = page("/sales/order/", base=ADMIN)
Sent = dict[str, Any]


def rows(namespace: str = "sales_order_grid", status: str = "holded", **parts: Any) -> Sent:
    query = f"namespace={namespace}&filters[status]={status}&paging[pageSize]=20&isAjax=true"
    headers = parts.pop("headers", {**SCRIPT, "referer": f"{ADMIN}/sales/order/"})
    return request(f"/mui/index/render/?{query}", base=ADMIN, headers=headers, **parts)


GRID = navigation(
    {
        "expected": {
            "url": "__SHOPPING_ADMIN__/mui/index/render/",
            "headers": {"referer": "__SHOPPING_ADMIN__/sales/order/"},
            "query_params": {"namespace": ["sales_order_grid"], "filters[status]": ["holded"]},
        },
        "ignored_query_params_patterns": ["^paging", "isAjax"],
    },
    sites=["shopping_admin"],
)
WAY = navigation({"expected": {"url": "__MAP__/way/7"}}, sites=["map"])
ROUTE = navigation(
    {
        "expected": {"url": "^.*/route/v1/.*/-75.1,39.9;-79.9,40.4.*$"},
        "ignored_query_params": ["s"],
    },
    sites=["map"],
)


def side_bar(path: str) -> Sent:
    return request(path, base=MAP, headers=SIDE_BAR)


def route(**parts: Any) -> Sent:
    return request("/osrm/routed-car/route/v1/driving/-75.1,39.9;-79.9,40.4?s=1", base=MAP, **parts)


def outcome_of(what: Task, *entries: Sent) -> Outcome:
    told = answer(None, "navigate")
    return VerifiedEvaluator(hosts=SCRIPT_HOSTS).evaluate(what, told, trace(*entries)).outcome


@pytest.mark.parametrize(
    ("what", "entries"),
    [
        (GRID, [ORDERS, rows(status=""), rows()]),
        (GRID, [ORDERS, rows(), rows("notification_area", "")]),
        (
            WAY,
            [page("/", base=MAP), side_bar("/search?query=hall&xhr=1"), side_bar("/way/7?xhr=1")],
        ),
        (WAY, [page("/", base=MAP), page("/way/7", base=MAP)]),
        (ROUTE, [page("/", base=MAP), side_bar("/search?query=hall&xhr=1"), route()]),
    ],
)
def test_what_the_script_of_the_last_page_shows_is_the_final_page(
    what: Task, entries: list[Sent]
) -> None:
    assert outcome_of(what, *entries) is Outcome.PASS


@pytest.mark.parametrize(
    ("what", "entries"),
    [
        (GRID, [ORDERS, rows(), rows(status="")]),
        (GRID, [ORDERS, rows(), page("/customer/index/", base=ADMIN)]),
        (GRID, [ORDERS, page("/mui/index/render/?namespace=sales_order_grid", base=ADMIN)]),
        (GRID, [ORDERS]),
        (WAY, [page("/", base=MAP), side_bar("/way/7?xhr=1"), side_bar("/way/8?xhr=1")]),
        (WAY, [page("/", base=MAP), side_bar("/way/7?xhr=1"), page("/", base=MAP)]),
        (ROUTE, [page("/", base=MAP), route(), side_bar("/way/8?xhr=1")]),
        (ROUTE, [route(headers={"accept": "text/html", "sec-fetch-dest": "document"})]),
    ],
)
def test_what_was_left_or_never_shown_is_not(what: Task, entries: list[Sent]) -> None:
    assert outcome_of(what, *entries) is Outcome.FAIL


@table(
    "method url kind",
    r"""
    GET  | ^__SHOPPING_ADMIN__/mui/index/render/.*$                             | script
    POST | ^__SHOPPING_ADMIN__/catalog/product/save/id/126/set/\d+/back/edit$   | form
    POST | __GITLAB__//api/v4/projects/a%2Fb/repository/commits                 | script
    POST | __GITLAB__/users/vinta/follow.json                                   | form
    POST | __REDDIT__/sv/124260.json                                            | script
    POST | __REDDIT__/submit                                                    | form
    GET  | __SHOPPING__/checkout/onepage/success                                | document
    """,
)
def test_the_kind_of_an_address_is_declared_or_told_by_its_method(
    method: str, url: str, kind: str
) -> None:
    assert usual_kind(method, url) is RequestKind(kind)


def test_every_declaration_has_its_reason_and_stands_once() -> None:
    assert all(one.reason.endswith(".") for one in DECLARATIONS)
    assert len({(one.site, one.methods, one.path) for one in DECLARATIONS}) == len(DECLARATIONS)


@pytest.mark.real_data
def test_the_declarations_hold_for_the_recorded_demo(real_data: Path) -> None:
    recorded = load_trace(real_data / "webarena" / "demo" / "108" / "network.har")
    told = 0
    for event in recorded.relevant:
        base = event.url.replace("http://192.168.1.35:7780/admin", "__SHOPPING_ADMIN__")
        known, kind = declared(event.method, base), recorded_kind(event)
        kinds = known.kinds if known else (usual_kind(event.method, base),)
        assert kind is None or kind in kinds, event.url
        told += kind is not None
    assert told >= 50


@pytest.mark.real_data
def test_the_published_tasks_that_end_on_a_scripts_request(real_data: Path) -> None:
    tasks = load_tasks(real_data / "webarena" / "webarena-verified.json")
    scripted = {
        one.task_id
        for one in tasks
        for check in one.network_checks
        if one.answer_check
        and one.answer_check.expected.task_type == "navigate"
        and check.expected.http_method == "GET"
        and usual_kind("GET", check.expected.urls[0]) is RequestKind.SCRIPT
    }
    assert scripted == {*range(676, 681), *range(737, 742), 759, 760}


def test_cookies_are_read_from_their_headers_and_from_no_other() -> None:
    entry = request("/a")
    headers = {"Set-Cookie": "a=b%20c; Path=/\nd=e; Secure", "X-Other": "f=g"}
    pairs = [{"name": name, "value": value} for name, value in headers.items()]
    entry["response"] |= {"headers": pairs, "cookies": [{"name": "h", "value": "i%2F"}]}
    (event,) = trace_of_list([entry]).events
    assert event.cookies == {"a": "b c", "d": "e", "h": "i/"}
