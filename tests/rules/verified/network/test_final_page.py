"""What the tab showed last, where a page's script asks for it, and what kind a request is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.rules.verified.tasks import answer, navigation, page, request, trace
from tests.tables import table
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import (
    DECLARATIONS,
    RequestKind,
    declared,
    load_trace,
    recorded_kind,
    usual_kind,
)
from trajudge.rules.verified.tasks import Task, load_tasks

ADMIN = "http://shop.example:7780/admin"
MAP = "http://map.example:3000"
HOSTS = {"__SHOPPING_ADMIN__": (ADMIN,), "__MAP__": (MAP,)}
# As the shop's administration and the map send them: seen in recorded traces.
SCRIPT = {"accept": "application/json, text/javascript, */*", "x-requested-with": "XMLHttpRequest"}
SIDE_BAR = {"accept": "text/html, */*; q=0.01", "x-requested-with": "XMLHttpRequest"}
ORDERS = page("/sales/order/", base=ADMIN)
Entry = dict[str, Any]


def rows(namespace: str = "sales_order_grid", status: str = "holded", **parts: Any) -> Entry:
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


def side_bar(path: str) -> Entry:
    return request(path, base=MAP, headers=SIDE_BAR)


def route(**parts: Any) -> Entry:
    return request("/osrm/routed-car/route/v1/driving/-75.1,39.9;-79.9,40.4?s=1", base=MAP, **parts)


def outcome(what: Task, *entries: Entry) -> Outcome:
    told = answer(None, "navigate")
    return VerifiedEvaluator(hosts=HOSTS).evaluate(what, told, trace(*entries)).outcome


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
    what: Task, entries: list[Entry]
) -> None:
    assert outcome(what, *entries) is Outcome.PASS


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
def test_what_was_left_or_never_shown_is_not(what: Task, entries: list[Entry]) -> None:
    assert outcome(what, *entries) is Outcome.FAIL


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
