"""HAR 1.2 leaves the order of entries open, and names the tab of each by ``pageref``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.rules.har.recordings import shop
from tests.rules.verified.tasks import HOSTS, answer, mutation, navigation, page, request, trace
from trajudge.rules.har import Entry, Request, in_time_order
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import load_trace
from trajudge.rules.verified.tasks import Task

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
