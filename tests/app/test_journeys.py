"""What people come for, in Chromium: presses are counted, and what they look for is in view."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.app.browsing import launched, opened
from tests.app.labelling.sites import Site, queue_site, visited
from tests.app.made_runs import Task, write_run
from tests.app.serving import served
from tests.eval.cases import failed
from trajudge.annotations.queue_files import queue_annotations
from trajudge.app.workspace import open_workspace
from trajudge.eval.cli import main as trajudge
from trajudge.eval.store.run_folder import JUDGMENTS, judgment_line
from trajudge.judges.model import Status

pytestmark = pytest.mark.browser

COMMON = {"width": 1280, "height": 720}
TELEPHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Browser]:
    with launched(chromium) as browser:
        yield browser


@pytest.fixture(autouse=True)
def closed(browser: Browser) -> Iterator[None]:
    yield
    for context in browser.contexts:
        context.close()


def is_in_view(page: Page, element: Locator) -> bool:
    """Whether all of an element is seen without scrolling."""
    box, screen = element.bounding_box(), page.viewport_size
    assert box is not None
    assert screen is not None
    return (
        box["x"] >= 0
        and box["y"] >= 0
        and box["x"] + box["width"] <= screen["width"]
        and box["y"] + box["height"] <= screen["height"]
    )


def press(page: Page, *keys: str) -> int:
    """Press keys one after the other; how many they were."""
    for key in keys:
        page.keyboard.press(key)
    return len(keys)


# Both judges accept task 3, and so does the rule; task 1 is accepted by one of them alone.
FIRST = [
    Task("1", False, True, "Buy a mug"),
    Task("2", True, True, "Buy a plate"),
    Task("3", False, True, "Buy a spoon"),
]
SECOND = [
    Task("1", False, False, "Buy a mug"),
    Task("2", True, True, "Buy a plate"),
    Task("3", False, True, "Buy a spoon"),
]


def test_a_researcher_reaches_the_worst_false_positive_in_five_presses(
    browser: Browser, tmp_path: Path
) -> None:
    runs = [write_run(tmp_path / "a", FIRST), write_run(tmp_path / "b", SECOND, judge="other")]
    with served(open_workspace(runs)) as site:
        site.ask("/run/judge", Accept="application/json")  # waits for the scores
        page, events = opened(browser, site.address, viewport=COMMON)
        pressed = press(page, "j", "Enter")
        page.wait_for_url("**/run/judge")
        pressed += press(page, "w")
        page.wait_for_url("**/judgments?*")
        rows = page.locator("table[data-rows] tbody tr")
        assert [rows.nth(at).locator("th a").first.inner_text() for at in range(2)] == [
            "Buy a spoon",
            "Buy a mug",
        ]
        # The judges and the rule: all say yes of the spoon, one judge and the rule of the mug.
        assert [rows.nth(at).locator("td").nth(5).inner_text() for at in range(2)] == [
            "3 of 3",
            "2 of 3",
        ]
        pressed += press(page, "j", "Enter")
        page.wait_for_url("**/judgment/2?*")
        assert pressed == 5
        assert "Buy a spoon" in page.inner_text(".goal")
        assert page.locator("#verdict + dl dd").nth(0).inner_text().startswith("✓ yes")
        assert page.locator("#verdict + dl dd").nth(1).inner_text() == "✗ no"
        assert events == []


def test_verdict_and_expert_are_in_view_on_a_telephone(browser: Browser, tmp_path: Path) -> None:
    goal = "Buy the green mug with the long handle and send it to the summer house by the lake"
    runs = [write_run(tmp_path, [Task("1", False, True, goal)])]
    with served(open_workspace(runs)) as site:
        page, _ = opened(browser, f"{site.address}/run/judge/judgments", viewport=TELEPHONE)
        cells = page.locator("table[data-rows] tbody td")
        expect(cells.nth(1)).to_have_text("✓ yes false positive", use_inner_text=True)
        expect(cells.nth(2)).to_have_text("✗ no")
        for cell in (cells.nth(1), cells.nth(2)):
            cell.scroll_into_view_if_needed()
            assert is_in_view(page, cell)
        assert page.evaluate("document.querySelector('.scroll').scrollLeft") == 0


def test_every_row_shows_the_last_page_of_its_trajectory(browser: Browser, tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "a", FIRST), write_run(tmp_path / "b", SECOND, judge="other")]
    with served(open_workspace(runs)) as site:
        for path in ("/run/judge/judgments", "/compare"):
            page, events = opened(browser, site.address + path, viewport=COMMON)
            page.wait_for_load_state("networkidle")
            sizes = page.locator(".last img").evaluate_all("all => all.map(i => i.naturalWidth)")
            assert sizes == [256, 256, 256]
            assert events == []


def test_the_page_of_a_run_says_what_the_command_says_and_has_no_empty_section(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path, [Task("1", True, True), Task("2", False, None)])
    without_calls = [failed("1", Status.REFUSED), failed("2", Status.REFUSED)]
    (run / JUDGMENTS).write_bytes(b"".join(map(judgment_line, without_calls)))
    assert trajudge(["score", str(run)]) == 0
    screen = " ".join(capsys.readouterr().out.split())
    with served(open_workspace([run])) as site:
        site.ask("/run/judge", Accept="application/json")
        page, _ = opened(browser, f"{site.address}/run/judge")
        sentences = page.locator("h1 ~ p:not(.facts):not(#scoring)").all_inner_texts()
        assert "Every judgment of judge failed: no rate is known" in sentences
        assert all(" ".join(each.split()) in screen for each in sentences)
        sections = page.locator("h2").all_inner_texts()
        assert "Coverage" in sections
        absent = {"Most wrong groups", "Most expensive groups", "Seconds per judgment"}
        assert not absent & {*sections}


def test_a_judge_of_which_every_judgment_failed_is_not_compared(
    browser: Browser, tmp_path: Path
) -> None:
    dead = write_run(tmp_path / "b", SECOND, judge="dead")
    lines = [failed(task.name, Status.REFUSED, judge="dead") for task in SECOND]
    (dead / JUDGMENTS).write_bytes(b"".join(map(judgment_line, lines)))
    runs = [write_run(tmp_path / "a", FIRST), dead, write_run(tmp_path / "c", SECOND, judge="z")]
    with served(open_workspace(runs)) as site:
        page, _ = opened(browser, f"{site.address}/compare")
        assert page.locator("#a").input_value() == "judge"
        assert page.locator("#b").input_value() == "z"
        page.locator("#b").select_option("dead")
        page.get_by_role("button", name="Show").click()
        told = "Every judgment of dead failed: no rate is known, and nothing is compared."
        assert page.get_by_role("status").first.inner_text() == told
        assert page.locator("#pair").count() == 0


def begun(browser: Browser, site: Site) -> Page:
    """The page of Ann's next item on a common screen."""
    if site.store.person("Ann") is None:
        site.store.add_person("Ann")
    page, _ = visited(browser, site, "Ann", viewport=COMMON)
    page.goto(site.served.address + "/queue/next")
    page.wait_for_load_state()
    return page


def test_submit_is_in_view_and_saves_without_a_page_load(browser: Browser, tmp_path: Path) -> None:
    with queue_site(tmp_path, FIRST) as site:
        page = begun(browser, site)
        assert is_in_view(page, page.locator("#submit"))
        sent: list[str] = []
        page.on("request", lambda r: sent.append(r.resource_type) if r.method == "POST" else None)
        pressed = press(page, "S", "Control+Enter")
        page.wait_for_url("**/queue/item/*", wait_until="load")
        expect(page.locator("#label-form fieldset :checked")).to_have_count(0)
        assert (pressed, sent) == (2, ["fetch"])
        assert len(queue_annotations(site.store)) == 1


def test_what_was_typed_stays_when_the_server_is_gone(browser: Browser, tmp_path: Path) -> None:
    with queue_site(tmp_path, FIRST) as site:
        page = begun(browser, site)
        press(page, "S")
        page.get_by_label("Comment").fill("The mug is blue.")
        page.context.set_offline(True)
        address = page.url
        press(page, "Control+Enter")
        expect(page.locator("#problem")).to_have_text(
            "Not saved: the server does not answer. What you wrote stays here: try again."
        )
        assert page.url == address
        assert page.get_by_label("Comment").input_value() == "The mug is blue."
        assert queue_annotations(site.store) == []
        page.context.set_offline(False)
        press(page, "Control+Enter")
        page.wait_for_url(lambda url: url != address)
        (label,) = queue_annotations(site.store)
        assert (label.success, label.comment) == (True, "The mug is blue.")


def test_whoever_types_a_name_that_is_there_is_that_person(
    browser: Browser, tmp_path: Path
) -> None:
    with queue_site(tmp_path, FIRST) as site:
        site.store.add_person("Ann")
        page, events = opened(browser, site.served.address)
        page.get_by_label("Name", exact=True).fill("Ann")
        page.keyboard.press("Enter")
        page.wait_for_selector("progress")
        assert "You are Ann (annotator)." in page.inner_text("main")
        assert [person.name for person in site.store.people()] == ["Ann"]
        assert events == []


def test_several_people_are_added_in_one_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with queue_site(tmp_path, FIRST) as site:
        words = ["label", "people", str(site.store.folder)]
        assert trajudge([*words, "--add", "Ann", "--add", "Bob"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.partition(": token ")[0] for line in lines] == ["Ann", "Bob"]
        assert trajudge([*words, "--add", "Cat", "--add", "Bob"]) == 2
        assert "there is a person 'Bob' already" in capsys.readouterr().err
        assert [person.name for person in site.store.people()] == ["Ann", "Bob"]
