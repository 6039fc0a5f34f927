"""The almanac: what its pages give away and where, and what its operations reckon."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.environments.apps.desk import state_fixture
from trajudge.environments.apps import load_app
from trajudge.environments.kit.reading import blocks, texts
from trajudge.environments.model.axes import ui
from trajudge.environments.model.page import Chart, Page
from trajudge.environments.model.site import Redirect, Site
from trajudge.environments.model.spec import Rejected
from trajudge.environments.model.state import AppState

APP = load_app("almanac")


state = state_fixture(APP, profile=3, scenario="book")


@pytest.fixture
def site(state: AppState) -> Site:
    return Site(APP, state, ui(APP, 0, 0), lambda table, key: f"code of {table} {key}")


def said(page: Page) -> str:
    return "\n".join(texts(page))


def request(state: AppState, site: Site, **form: str) -> Redirect | Rejected | Page:
    known = {
        "indicator": str(state.value("SELECT id FROM indicator")),
        "district": str(state.value("SELECT id FROM district")),
        "_confirmed": "yes",
    }
    return site.post("request-export", known | form)


@pytest.mark.parametrize(
    ("form", "first", "last", "ready"),
    [
        ("spreadsheet", "2025", "2025", "2026-03-04"),  # two days from 2 March
        ("typeset tables", "2018", "2025", "2026-03-14"),  # five, and one for every year more
        ("printed volume", "2020", "2022", "2026-03-13"),
    ],
)
def test_an_export_is_ready_after_the_days_of_its_format_and_one_for_every_further_year(
    state: AppState, site: Site, form: str, first: str, last: str, ready: str
) -> None:
    landing = request(state, site, first=first, last=last, format=form)
    assert isinstance(landing, Redirect)
    export = state.row("export", landing.args["id"])
    assert (export["ready"], export["status"]) == (ready, "requested")
    page = site.get(landing.page, landing.args)
    assert ready in said(page)
    assert f"code of export {export['id']}" in said(page)


def test_an_export_asks_first_and_refuses_years_in_the_wrong_order(
    state: AppState, site: Site
) -> None:
    before = state.dump()
    wrong = request(state, site, first="2022", last="2019", format="spreadsheet")
    asks = site.post("request-export", {})
    assert isinstance(wrong, Rejected)
    assert isinstance(asks, Page)
    assert state.dump() == before


def test_a_request_is_withdrawn_once(state: AppState, site: Site) -> None:
    export = str(state.value("SELECT id FROM export WHERE status = 'requested'"))
    form = {"export": export, "_confirmed": "yes"}
    assert isinstance(site.post("withdraw-export", form), Redirect)
    assert state.row("export", export)["status"] == "withdrawn"
    assert isinstance(site.post("withdraw-export", form), Rejected)


def test_booked_seats_are_paid_for_and_no_longer_free(state: AppState, site: Site) -> None:
    event = dict(state.rows("SELECT * FROM event ORDER BY seats")[0])
    landing = site.post("book", {"event": event["id"], "seats": "4"})
    assert isinstance(landing, Redirect)
    booking = state.row("booking", landing.args["id"])
    assert (booking["seats"], booking["total"]) == (4, 4 * event["fee"])
    assert state.row("event", event["id"])["seats"] == event["seats"] - 4
    state.change("event", event["id"], seats=3)
    for seats in ("4", "0", "7", "-1", "two", ""):
        assert isinstance(site.post("book", {"event": event["id"], "seats": seats}), Rejected)


def test_a_report_is_on_the_research_list_once(state: AppState, site: Site) -> None:
    report = str(state.value("SELECT report FROM bookmark"))
    count = state.value("SELECT count(*) FROM bookmark")
    site.post("keep", {"report": report, "shelf": "Sources", "remark": "again"})
    held = state.one("SELECT * FROM bookmark WHERE report = :report", report=report)
    assert held is not None
    assert (held["shelf"], held["remark"]) == ("Sources", "again")
    assert state.value("SELECT count(*) FROM bookmark") == count


def test_what_a_report_cost_and_who_led_it_is_in_its_text_and_not_in_the_list(
    state: AppState, site: Site
) -> None:
    listed = said(site.get("reports", {}))
    for row in state.rows("SELECT * FROM report"):
        page = said(site.get("report", {"id": row["id"]}))
        cost = f"printing included, cost ${row['cost'] // 100:,}.{row['cost'] % 100:02}"
        assert row["leader"] in page
        assert row["leader"] not in listed
        assert cost in page


def test_the_visitors_are_in_the_chart_alone_and_far_enough_apart_to_be_read(
    state: AppState, site: Site
) -> None:
    for row in state.rows("SELECT * FROM district"):
        page = site.get("district", {"id": row["id"]})
        (chart,) = [block for block in blocks(page.blocks) if isinstance(block, Chart)]
        levels = sorted(chart.values)
        assert min(b - a for a, b in pairwise(levels)) >= 240
        assert not any(str(int(value)) in said(page) for value in chart.values)


def test_a_table_is_that_of_the_year_and_region_that_were_asked(
    state: AppState, site: Site
) -> None:
    indicator = state.rows("SELECT * FROM indicator ORDER BY id")[0]
    region = str(state.value("SELECT region FROM district"))
    page = site.get("figures", {"indicator": indicator["id"], "year": "2021", "region": region})
    shown = texts(page)
    wanted = state.rows(
        "SELECT f.amount FROM figure f JOIN district d ON d.id = f.district WHERE f.year = 2021 "
        "AND f.indicator = :indicator AND d.region = :region",
        indicator=indicator["id"],
        region=region,
    )
    amounts = [text for text in shown if text.replace(",", "").isdigit() and text != "2021"]
    years = [str(year) for year in range(2018, 2026)]
    assert sorted(a for a in amounts if a not in years) == sorted(f"{row[0]:,}" for row in wanted)


def test_what_a_reader_wrote_reaches_the_page_as_it_is(site: Site) -> None:
    site.post("write-note", {"heading": "<b>x</b>", "label": "Idea", "body": "<script>1</script>"})
    page = said(site.get("research", {}))
    assert "<b>x</b>" in page
    assert "<script>1</script>" in page
