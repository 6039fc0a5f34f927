"""The whole job in a real browser: by keyboard alone, in both themes, on a telephone, hostile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.app.browsing import WITH_TARGETS, complaints, launched, unfolded_goal
from tests.app.labelling.sites import Site, queue_site, visited
from tests.app.made_runs import Task
from tests.app.payloads import payloads
from trajudge.annotations.model import EvidenceMark
from trajudge.annotations.queue import FormAnswers
from trajudge.annotations.queue_files import queue_annotations
from trajudge.app.audit_pages import RuleText
from trajudge.util.files import without_surrogates

pytestmark = pytest.mark.browser
TASKS = [Task(str(number), number % 2 == 0, number % 3 == 0) for number in range(10)]
TEXT = str(without_surrogates("\n".join(payloads()))).replace("\0", " ")[:19_000]


@pytest.fixture(autouse=True)
def closed(browser: Browser) -> Iterator[None]:
    yield
    for context in browser.contexts:
        context.close()


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Browser]:
    with launched(chromium) as browser:
        yield browser


class Crowd(NamedTuple):
    """A queue on which Ann and Bob differ, with every payload in their labels where it is hostile;
    Cat has its last item open, Joe adjudicates. ``cat`` is the number of her item."""

    site: Site
    cat: int


@contextmanager
def crowd(folder: Path, text: str) -> Iterator[Crowd]:
    tasks = [
        Task(str(at), True, bool(at), text, text, text, f"fill('1', {text[:99]!r})", text[:900])
        for at in range(3)
    ]
    rules = {"webarena.0": RuleText(text, text)}
    with queue_site(folder, tasks, rules, double=1.0, informed=True) as site:
        store = site.store
        (store.folder / "guidelines.md").write_text(f"# {text[:99]}\n\n- {text}", "utf-8")
        ann, bob, cat = (store.add_person(name)[0].id for name in ("Ann", "Bob", "Cat"))
        store.add_person("Joe", "adjudicator")
        mark = EvidenceMark(step=0, kind="answer", note=text[:2000])
        for person, success in ((ann, "yes"), (ann, "no"), (ann, "yes"), (bob, "no"), (bob, "yes")):
            offer = store.claim_next(person)
            assert offer is not None
            answers = FormAnswers.model_validate(
                {
                    **{"success": success, "side_effect": "unsure", "repetition": "no"},
                    **{"optimality": 2, "comment": text, "evidence": (mark,)},
                    "unsure_why": {"side_effect": text[:2000]},
                }
            )
            store.submit(person, offer.item, answers, 0, "x")
        last = store.claim_next(cat)
        assert last is not None
        store.save_draft(cat, last.item, answers, 0)
        yield Crowd(site, last.item)


def opened(browser: Browser, site: Site, name: str, **context: object) -> tuple[Page, list[str]]:
    """The page of the queue after a name was given by keyboard, and what was complained of."""
    page = browser.new_context(**context).new_page()  # type: ignore[arg-type]
    page.set_default_timeout(30_000)
    events = complaints(page, site.served.address, accept=True)
    page.goto(site.served.address)
    page.get_by_label("Name", exact=True).focus()
    page.keyboard.type(name)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("progress")
    return page, events


def ready(page: Page) -> None:
    """The page's scripts ran."""
    page.wait_for_load_state()


def test_ten_items_by_keyboard_alone(browser: Browser, tmp_path: Path) -> None:
    with queue_site(tmp_path, TASKS) as site:
        page, events = opened(browser, site, "Ann")
        page.get_by_role("link", name="Begin to label").press("Enter")
        page.wait_for_url("**/queue/item/*")
        loads: list[str] = []
        page.on("request", lambda r: loads.append(r.url) if r.is_navigation_request() else None)
        pressed = 0
        for number in range(10):
            page.wait_for_url("**/queue/item/*")
            ready(page)
            if number == 0:  # evidence, a reason, a comment, a step back and forth
                page.keyboard.press("ArrowRight")
                page.wait_for_url("**step=2*")
                ready(page)
                page.keyboard.press("e")
                page.wait_for_selector(".marks li")
                ready(page)
                page.keyboard.press("f")
                page.keyboard.press("u")
                page.keyboard.type("the end is not shown")
                page.keyboard.press("Escape")
                page.keyboard.press("c")
                page.keyboard.type("a remark with s, f and 1")
                expect(page.locator("#saved")).to_have_text("Draft saved")
                page.keyboard.press("ArrowLeft")  # in a text: no step
                page.keyboard.press("Escape")
                for key in ("n", "o", "2"):
                    page.keyboard.press(key)
            else:
                for key in ("s", "n", "n", "4"):
                    page.keyboard.press(key)
                    pressed += 1
            before = page.url
            with page.expect_navigation():
                page.keyboard.press("Control+Enter")
            pressed += number > 0
            assert page.url != before
        assert "Nothing is left for you" in page.inner_text("main")
        assert loads == [], "every next item takes the place of the last"
        labels = queue_annotations(site.store)
        assert len(labels) == 10
        first = next(label for label in labels if not label.success)
        assert (first.success, first.side_effect, first.optimality) == (False, None, 2)
        assert first.unsure_why == {"side_effect": "the end is not shown"}
        assert first.comment == "a remark with s, f and 1"
        assert [mark.step for mark in first.evidence] == [1]
        assert all(label.seconds is not None for label in labels)
        assert pressed == 9 * 5
        assert events == []
        page.context.close()


def answered_by_key(
    browser: Browser, site: Site, keys: str, *, checked: int
) -> tuple[Page, list[str]]:
    """Answer an item with each key, which checks so many questions, and submit it."""
    site.store.add_person("Ann")
    page, events = visited(browser, site, "Ann")
    page.goto(site.served.address + "/queue/next")
    for key in keys:
        ready(page)
        page.keyboard.press(key)
        assert page.locator("fieldset :checked").count() == checked
        with page.expect_navigation():
            page.keyboard.press("Control+Enter")
    return page, events


def test_a_clear_item_takes_two_keys_where_one_question_is_asked(
    browser: Browser, tmp_path: Path
) -> None:
    with queue_site(tmp_path, TASKS[:2], questions=("success",)) as site:
        page, events = answered_by_key(browser, site, "sf", checked=1)
        assert {label.success for label in queue_annotations(site.store)} == {True, False}
        page.goto(site.served.address + "/queue/next")
        page.get_by_role("button", name="Open my last submission again").press("Enter")
        page.wait_for_url("**/queue/item/*")
        assert page.locator("input[value=no]").is_checked()
        assert events == []
        page.context.close()


def test_a_clear_item_of_four_questions_takes_two_keys(browser: Browser, tmp_path: Path) -> None:
    with queue_site(tmp_path, TASKS[:2]) as site:
        page, events = answered_by_key(browser, site, "SF", checked=4)
        labels = {
            (label.success, label.side_effect, label.repetition, label.optimality)
            for label in queue_annotations(site.store)
        }
        assert labels == {(True, False, False, 4), (False, False, False, 1)}
        assert events == []
        page.context.close()


def test_back_and_forth_lead_to_the_pages_as_they_are_now(browser: Browser, tmp_path: Path) -> None:
    with queue_site(tmp_path, TASKS[:3], questions=("success",)) as site:
        page, _ = answered_by_key(browser, site, "s", checked=1)
        following = page.url
        page.go_back()
        expect(page.locator("main")).to_contain_text("This item is not open for you")
        page.go_forward()
        expect(page.locator("#label-form")).to_be_visible()
        assert page.url == following
        page.keyboard.press("Control+z")
        page.wait_for_url(lambda url: url != following)
        expect(page.locator("input[value=yes]")).to_be_checked()
        page.keyboard.press("f")
        page.go_back()
        expect(page.locator("#label-form")).to_be_visible()
        page.go_forward()
        expect(page.locator("input[value=no]")).to_be_checked()
        page.context.close()


def test_answers_to_the_verdicts_lead_on_without_a_page_load(
    browser: Browser, tmp_path: Path
) -> None:
    with queue_site(tmp_path, TASKS[:2], questions=("success",), informed=True) as site:
        page, events = answered_by_key(browser, site, "s", checked=1)
        loads: list[str] = []
        page.on("request", lambda r: loads.append(r.url) if r.is_navigation_request() else None)
        expect(page.locator("h1")).to_have_text("What others say of it")
        page.keyboard.press("k")
        expect(page.locator("#label-form")).to_be_visible()
        assert (loads, events) == ([], [])
        page.context.close()


def test_the_form_is_complete_without_scripts(browser: Browser, tmp_path: Path) -> None:
    with queue_site(tmp_path, TASKS[:1]) as site:
        site.store.add_person("Ann")
        page, events = visited(browser, site, "Ann", java_script_enabled=False)
        page.goto(site.served.address + "/queue/next")
        page.locator("input[name=success][value=yes]").check()
        page.get_by_role("button", name="Save draft").click()
        assert page.locator("input[name=success][value=yes]").is_checked()
        for question in ("side_effect", "repetition"):
            page.locator(f"input[name={question}][value=no]").check()
        page.locator("input[name=optimality][value='4']").check()
        page.get_by_role("button", name=re.compile("Submit")).click()
        assert len(queue_annotations(site.store)) == 1
        assert events == []
        page.context.close()


def test_the_draft_is_kept_and_the_clock_stands_while_the_page_is_hidden(
    browser: Browser, tmp_path: Path
) -> None:
    with queue_site(tmp_path, TASKS[:1]) as site:
        site.store.add_person("Ann")
        page, _ = visited(browser, site, "Ann")
        page.goto(site.served.address + "/queue/next")
        ready(page)
        page.evaluate(
            "Object.defineProperty(document, 'visibilityState', {get: () => 'hidden'});"
            "document.dispatchEvent(new Event('visibilitychange'))"
        )
        page.wait_for_timeout(700)
        page.get_by_label("Comment").fill("half a thought")
        expect(page.locator("#saved")).to_have_text("Draft saved")
        person = site.store.person("Ann")
        assert person is not None
        draft = site.store.own_reading(person.id, 1).answers
        assert draft.comment == "half a thought"
        assert (draft.seconds or 0) < 0.7
        page.reload()
        assert page.get_by_label("Comment").input_value() == "half a thought"
        page.context.close()


def test_a_rule_is_audited_by_keyboard_beside_what_it_demands(
    browser: Browser, tmp_path: Path
) -> None:
    tasks = [Task(str(number), True, number != 2) for number in range(4)]
    rules = {
        f"webarena.{n}": RuleText(f"intent {n}", f'"must_include": "mug {n}"') for n in range(4)
    }
    with queue_site(tmp_path, tasks, rules) as site:
        site.store.add_person("Joe", "adjudicator")
        page, events = visited(browser, site, "Joe")
        page.goto(site.served.address + "/queue/audit")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url("**/queue/audit/*")
        number = page.url.rpartition("/")[2]
        drawn = site.store.item(int(number))
        assert drawn is not None
        task = drawn.key.task_id.rpartition(".")[2]
        assert f'"must_include": "mug {task}"' in page.inner_text("pre.rule")
        assert page.locator(".film a").count() == 2
        page.keyboard.press("c")
        page.keyboard.type("w is no key here")
        page.keyboard.press("Escape")
        page.keyboard.press("w")
        page.get_by_text("rule wrong (Joe): w is no key here").wait_for()
        with page.expect_navigation():
            page.keyboard.press("n")
        assert page.url.rpartition("/")[2] != number
        assert events == []
        page.context.close()


def test_a_long_goal_is_read_whole_by_who_labels(browser: Browser, tmp_path: Path) -> None:
    goal = "Buy a mug. " * 900 + "It must be green."
    with queue_site(tmp_path, [TASKS[0]._replace(goal=goal)]) as site:
        site.store.add_person("Ann")
        page, events = visited(browser, site, "Ann", viewport={"width": 390, "height": 800})
        page.goto(site.served.address + "/queue/next")
        assert unfolded_goal(page) == goal
        assert events == []
        page.context.close()


PAGES = {
    "Ann": ("/", "/people", "/queue/verdicts/1", "/queue/next"),
    "Cat": ("/queue/item/{0}", "/queue/item/{0}?tab=answer"),
    "Joe": (
        *("/", "/queue/adjudicate", "/queue/adjudicate/{1}", "/queue/agreement"),
        *("/queue/audit", "/queue/audit/1", "/queue/audit/2", "/queue/audit/3?tab=state"),
    ),
}


def pages(crowded: Crowd, name: str) -> Iterator[str]:
    joe = crowded.site.store.person("Joe")
    assert joe is not None
    disputed = crowded.site.store.disputes(joe.id)[0].item
    for path in PAGES[name]:
        yield crowded.site.served.address + path.format(crowded.cat, disputed)


def test_axe_finds_nothing_in_light_and_dark(browser: Browser, tmp_path: Path) -> None:
    """Between the themes only colours differ: the second look is at contrasts alone."""
    from axe_playwright_python.sync_playwright import Axe

    contrasts = {"runOnly": ["color-contrast"]}
    with crowd(tmp_path, "Buy a mug") as crowded:
        for name in PAGES:
            page, events = visited(browser, crowded.site, name, bypass_csp=True)
            for address in pages(crowded, name):
                page.emulate_media(color_scheme="light")
                page.goto(address)
                page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
                light = Axe().run(page, options=WITH_TARGETS)
                assert light.violations_count == 0, f"{address}: {light.generate_report()}"
                page.emulate_media(color_scheme="dark")
                dark = Axe().run(page, options=contrasts)
                assert dark.violations_count == 0, f"{address}: {dark.generate_report()}"
            assert events == []
            page.context.close()


def test_hostile_text_stays_text_on_a_telephone(browser: Browser, tmp_path: Path) -> None:
    telephone = {"width": 320, "height": 640}
    with crowd(tmp_path, TEXT) as crowded:
        for name in PAGES:
            page, events = visited(browser, crowded.site, name, viewport=telephone)
            for address in pages(crowded, name):
                page.goto(address, wait_until="domcontentloaded")
                page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
                assert page.evaluate("window.pwned") is None
                bad = page.locator("main iframe, main script, main [onload], main object")
                assert bad.count() == 0
                assert page.evaluate("document.documentElement.scrollWidth") <= 320, address
            assert events == []
            page.context.close()
