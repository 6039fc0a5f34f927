"""The toolbox: each tool against figures that were reckoned by hand, and against the queries that
say what the right answers are."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.environments.apps.desk import state_fixture
from tests.tables import table
from trajudge.environments.apps import load_app
from trajudge.environments.apps.toolbox.tools import (
    TOOLS,
    ToolResult,
    hundredths,
    later,
    payment,
    read,
    whole,
)
from trajudge.environments.kit.reading import forms, texts
from trajudge.environments.model.axes import open_state, ui
from trajudge.environments.model.config import Config
from trajudge.environments.model.page import Page
from trajudge.environments.model.site import Redirect, Site
from trajudge.environments.model.spec import Derive, Rejected
from trajudge.environments.model.state import AppState

APP = load_app("toolbox")
ANY_DAY = st.dates(date(1990, 1, 1), date(2090, 12, 31))


@pytest.fixture(scope="module")
def shared() -> Iterator[AppState]:
    """For what only reads. Profile 3 knows every unit."""
    opened = open_state(APP, Config(app="toolbox", scenario="convert", profile=3))
    yield opened
    opened.close()


state = state_fixture(APP, profile=3, scenario="convert")


@pytest.fixture
def site(state: AppState) -> Site:
    return Site(APP, state, ui(APP, 0, 0), lambda table, key: f"code of {table} {key}")


def reckoned(state: AppState, tool: str, **given: str) -> ToolResult:
    outcome = TOOLS[tool](state, given)
    assert outcome is not None
    return outcome


def truth(scenario: str, state: AppState, **values: Any) -> Any:
    """What the scenario's (last) query gives."""
    return state.value(APP.scenario(scenario).answers[-1].sql, **values)


# --- units ---


def test_a_saved_result_is_what_its_inputs_give(shared: AppState) -> None:
    rows = shared.rows("SELECT inputs, outcome, value FROM result")
    for row in rows:
        outcome = reckoned(shared, "converter", **read(row["inputs"]))
        assert (outcome.rows[0][1], outcome.value) == (row["outcome"], row["value"])
    assert len(rows) == 10


@table(
    "amount source target shown",
    """
    10   | inches           | centimetres | 25.40 centimetres
    6    | feet             | metres      | 1.83 metres
    11   | stones           | kilograms   | 69.85 kilograms
    2.5  | imperial gallons | litres      | 11.37 litres
    12.5 | carats           | grams       | 2.50 grams
    3    | US cups          | millilitres | 709.76 millilitres
    5    | kilograms        | grams       | 5,000.00 grams
    """,
)
def test_known_conversions(
    shared: AppState, amount: str, source: str, target: str, shown: str
) -> None:
    outcome = reckoned(shared, "converter", amount=amount, source=source, target=target)
    assert outcome.rows[0][1] == shown


def test_a_conversion_is_the_one_that_the_scenario_asks_for(shared: AppState) -> None:
    units = [dict(row) for row in shared.rows("SELECT * FROM unit ORDER BY id")]
    for one in units:
        for other in units:
            if one["measures"] != other["measures"]:
                continue
            asked = {"amount": "137", "source": one["name"], "target": other["name"]}
            sizes = {"pair_large": one["size"], "pair_small": other["size"]}
            wanted = truth("convert", shared, amount=137, **sizes)
            assert reckoned(shared, "converter", **asked).value == pytest.approx(100 * wanted)


@pytest.mark.parametrize(
    "given",
    [
        {"amount": "1", "source": "feet", "target": "grams"},
        {"amount": "-1", "source": "feet", "target": "metres"},
        {"amount": "1e5", "source": "feet", "target": "metres"},
        {"amount": "", "source": "feet", "target": "metres"},
        {"amount": "1", "source": "cubits", "target": "metres"},
        {},
    ],
)
def test_what_cannot_be_converted_is_said_so(shared: AppState, given: dict[str, str]) -> None:
    assert TOOLS["converter"](shared, given) is None


# --- loans ---


@pytest.mark.parametrize(
    ("dollars", "rate", "years", "cents"),
    [
        (10_000, 600, 5, 19_333),  # the textbook's 193.33 a month
        (200_000, 450, 30, 101_337),
        (1_200, 0, 1, 10_000),
        (12_000, 1_200, 1, 106_619),
    ],
)
def test_known_monthly_payments(dollars: int, rate: int, years: int, cents: int) -> None:
    assert payment(100 * dollars, rate, 12 * years) == cents


@given(
    hundreds=st.integers(30, 400),
    rate=st.sampled_from(["3.1", "4.25", "5.5", "6.75", "7.9"]),
    years=st.integers(3, 15),
)
def test_a_payment_is_the_one_that_the_scenario_asks_for(
    shared: AppState, hundreds: int, rate: str, years: int
) -> None:
    outcome = reckoned(shared, "loan", amount=f"{hundreds}00", rate=rate, years=str(years))
    asked = {"principal": hundreds, "rate": rate, "years": years}
    assert outcome.value == truth("monthly", shared, **asked)


def test_the_lowest_total_is_found_by_trying_every_lender(shared: AppState) -> None:
    totals = []
    for lender in shared.rows("SELECT * FROM lender WHERE longest >= 12"):
        monthly = payment(1_860_000, lender["rate"], 144)
        totals.append(144 * monthly + lender["fee"])
    assert truth("lowest-total", shared, term=12, principal=186) == min(totals)


def test_the_payments_pay_the_loan_back_to_the_cent_or_so() -> None:
    left, monthly = 1_500_000.0, payment(1_500_000, 725, 84)
    for _ in range(84):
        left = left * (1 + 725 / 120_000) - monthly
    assert abs(left) < 84


# --- dates ---


@pytest.mark.parametrize(
    ("start", "days", "working", "end"),
    [
        ("2026-03-02", 5, True, "2026-03-09"),  # Monday to Monday
        ("2026-03-06", 1, True, "2026-03-09"),  # Friday to Monday
        ("2026-03-07", 1, True, "2026-03-09"),  # Saturday to Monday
        ("2026-03-08", 5, True, "2026-03-13"),  # Sunday to Friday
        ("2026-03-08", 0, True, "2026-03-08"),
        ("2028-02-28", 1, False, "2028-02-29"),
        ("2026-12-31", 1, False, "2027-01-01"),
        ("2026-03-02", 365, False, "2027-03-02"),
    ],
)
def test_known_dates(start: str, days: int, working: bool, end: str) -> None:
    assert later(date.fromisoformat(start), days, working).isoformat() == end


@given(start=ANY_DAY, days=st.integers(0, 400))
def test_working_days_are_those_that_one_counts_a_day_at_a_time(start: date, days: int) -> None:
    day, left = start, days
    while left:
        day += timedelta(days=1)
        left -= day.weekday() < 5
    assert later(start, days, working=True) == day


@given(start=ANY_DAY, days=st.integers(1, 90))
def test_a_date_is_the_one_that_the_scenario_asks_for(
    shared: AppState, start: date, days: int
) -> None:
    asked = {"start": start.isoformat(), "days": days}
    assert later(start, days, working=True).isoformat() == truth("working-days", shared, **asked)


# --- paint ---


def test_paint_is_reckoned_in_whole_tins(state: AppState) -> None:
    state.add("paint", id="p", name="Test", covers=10, tin=2, price=1999, drying=50)
    room = {"length": "400", "width": "300", "height": "250", "openings": "3"}
    outcome = reckoned(state, "estimator", **room, coats="2", paint="Test")
    # 2 x (4 + 3) x 2.5 - 3 = 32 m², twice, at 20 m² a tin: 3.2 tins.
    assert dict(outcome.rows) == {
        "tins": "4",
        "cost": "$79.96",
        "walls": "32.00 m²",
        "dry_after": "1 h 40 min",
    }
    assert reckoned(state, "estimator", **room, coats="5", paint="Test").value == 8  # exactly 8


def test_the_tins_are_those_that_the_scenario_orders(shared: AppState) -> None:
    need = APP.scenario("order-tins").slots["need"]
    assert isinstance(need, Derive)
    for room in shared.rows("SELECT * FROM room"):
        for paint in shared.rows("SELECT * FROM paint"):
            sides = {side: str(room[side]) for side in ("length", "width", "height", "openings")}
            outcome = reckoned(shared, "estimator", **sides, coats="3", paint=paint["name"])
            wanted = shared.one(need.sql, room=room["id"], paint=paint["id"], coats=3)
            assert wanted is not None
            assert outcome.value == wanted["tins"]


def test_walls_that_are_all_windows_need_no_tool(shared: AppState) -> None:
    paint = str(shared.value("SELECT name FROM paint"))
    room = {"length": "100", "width": "100", "height": "100", "openings": "4"}
    assert TOOLS["estimator"](shared, {**room, "coats": "1", "paint": paint}) is None


# --- whole results ---


def test_a_result_says_all_that_it_comes_to(shared: AppState) -> None:
    loan = {"amount": "10000", "rate": "6.00", "years": "5"}
    assert TOOLS["loan"](shared, loan) == ToolResult(
        {"amount": "10000", "rate": "6", "years": "5"},
        (("monthly", "$193.33"), ("payments", "$11,599.80"), ("interest", "$1,599.80")),
        19_333,
    )
    days = {"start": "2026-03-06", "days": "1", "counting": "working days"}
    assert TOOLS["dates"](shared, days) == ToolResult(
        days, (("falls_on", "2026-03-09"), ("apart", "3 days")), 3
    )


def test_a_rate_is_at_most_a_hundred_per_cent(shared: AppState) -> None:
    for rate, amount, is_reckoned in (("100", "1", True), ("100.01", "1", False), ("1", "", False)):
        outcome = TOOLS["loan"](shared, {"amount": amount, "rate": rate, "years": "1"})
        assert (outcome is not None) is is_reckoned


@pytest.mark.parametrize("absent", ["length", "width", "height", "openings", "coats", "paint"])
def test_paint_is_reckoned_of_what_is_all_given(shared: AppState, absent: str) -> None:
    paint = str(shared.value("SELECT name FROM paint"))
    room = {"length": "400", "width": "300", "height": "250", "openings": "3"}
    assert TOOLS["estimator"](shared, {**room, "coats": "2", "paint": paint, absent: ""}) is None


# --- what is read and kept ---


@pytest.mark.parametrize(
    ("text", "number"),
    [("12", 1200), (" 12.5 ", 1250), ("0.05", 5), ("1,000", None), ("12.345", None), ("", None)],
)
def test_decimals(text: str, number: int | None) -> None:
    assert hundredths(text) == number


@given(text=st.text(max_size=12))
def test_a_whole_number_is_within_its_bounds_or_none(text: str) -> None:
    number = whole(text, 1, 40)
    assert number is None or 1 <= number <= 40


def test_every_saved_job_runs_and_keeps_what_it_was_run_with(state: AppState, site: Site) -> None:
    for job in state.rows("SELECT * FROM job"):
        landing = site.post("run-job", {"job": job["id"]})
        assert isinstance(landing, Redirect)
        result = state.row("result", landing.args["id"])
        assert (result["name"], result["inputs"]) == (job["name"], job["inputs"])
        assert reckoned(state, job["tool"], **read(job["inputs"])).written == job["inputs"]
        assert f"code of result {result['id']}" in "\n".join(
            texts(site.get("result", landing.args))
        )


def test_a_saved_result_does_not_depend_on_how_its_inputs_were_typed(
    state: AppState, site: Site
) -> None:
    given = {"tool": "loan", "rate": "4.50", "years": "010", "result_name": " Van "}
    landing = site.post("save-result", {**given, "amount": "12000.00"})
    assert isinstance(landing, Redirect)
    result = state.row("result", landing.args["id"])
    assert (result["name"], result["inputs"]) == ("Van", "amount=12000; rate=4.5; years=10")


def test_nothing_is_kept_without_a_name_or_a_result(state: AppState, site: Site) -> None:
    before = state.dump()
    loan = {"tool": "loan", "amount": "100", "rate": "1", "years": "1"}
    for operation, name in (("save-result", "result_name"), ("save-job", "job_name")):
        assert isinstance(site.post(operation, loan), Rejected)
        assert isinstance(site.post(operation, {**loan, name: "x", "years": "0"}), Rejected)
        assert isinstance(site.post(operation, {**loan, name: "x", "tool": "abacus"}), Rejected)
    assert state.dump() == before


def test_a_tool_offers_to_keep_only_what_it_has_reckoned(site: Site) -> None:
    def operations(page: Page) -> set[str]:
        return {form.operation for form in forms(page) if form.operation}

    asked = {"amount": "100", "rate": "5", "years": "2"}
    assert operations(site.get("loan", {})) == set()
    assert operations(site.get("loan", {**asked, "years": "many"})) == set()
    assert operations(site.get("loan", asked)) == {"save-result", "save-job"}


def test_a_lender_takes_no_enquiry_beyond_its_longest_term(state: AppState, site: Site) -> None:
    lender = state.rows("SELECT * FROM lender ORDER BY longest")[0]
    form = {"lender": lender["id"], "principal": "5000"}
    beyond = site.post("enquire", {**form, "term": str(lender["longest"] + 1)})
    within = site.post("enquire", {**form, "term": str(lender["longest"])})
    assert isinstance(beyond, Rejected)
    assert isinstance(within, Redirect)
    assert state.row("enquiry", within.args["id"])["principal"] == 500_000


def test_deleting_a_job_asks_first(state: AppState, site: Site) -> None:
    job = str(state.value("SELECT id FROM job"))
    assert isinstance(site.post("delete-job", {"job": job}), Page)
    assert state.get("job", job) is not None
    assert isinstance(site.post("delete-job", {"job": job, "_confirmed": "yes"}), Redirect)
    assert state.get("job", job) is None
