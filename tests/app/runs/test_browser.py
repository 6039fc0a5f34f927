"""The pages of runs in Chromium: looks, keys, hostile text, and without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, expect

from tests.app.browsing import check_accessible, launched, opened, unfolded_goal
from tests.app.made_runs import Task, write_run
from tests.app.payloads import payloads
from tests.app.serving import Served, served
from tests.eval.cases import key as key_of
from trajudge.app.security import new_token
from trajudge.app.web import trajectory_link
from trajudge.app.workspace import open_workspace
from trajudge.eval.store.run_folder import (
    JUDGMENTS,
    judgment_line,
    read_judgments,
    read_labels,
    read_manifest,
    write_labels,
    write_manifest,
)
from trajudge.util.files import without_surrogates

pytestmark = pytest.mark.browser

TASKS = [
    Task(f"{n:03}", None if n == 9 else n % 3 == 0, n % 2 == 0, reasoning=f"Reason {n} " * 9)
    for n in range(60)
]
PAGES = (
    "/",
    "/run/judge",
    "/run/judge/judgments?limit=6",
    "/run/judge/judgments?f=wrong%3Aall",
)
TABLE = "/run/judge/judgments"


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Browser]:
    with launched(chromium) as browser:
        yield browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("pages")
    runs = [write_run(folder, TASKS), write_run(folder / "other", TASKS[:3], judge="other")]
    with served(open_workspace(runs)) as running:
        yield running


@pytest.mark.parametrize(("scheme", "width"), [("light", 320), ("dark", 1280)])
def test_axe_finds_nothing_and_nothing_scrolls_sideways(
    browser: Browser, site: Served, scheme: str, width: int
) -> None:
    for path in PAGES:
        check_accessible(browser, site.address + path, scheme, width)


def test_a_long_goal_can_be_read_whole(browser: Browser, tmp_path: Path) -> None:
    goal = "Buy a mug. " * 900 + "It must be green."
    task = Task("1", True, True, goal)
    with served(open_workspace([write_run(tmp_path, [task])])) as site:
        for path in ("/run/judge/judgment/0", trajectory_link(key_of(task.name))):
            page, events = opened(browser, site.address + path)
            assert unfolded_goal(page) == goal
            assert events == []
            page.context.close()


def of_agents(run: Path) -> Path:
    """Give each trajectory of a run an agent of its own, right and wrong ones in turn."""
    judgments, labels = read_judgments(run), read_labels(run)
    keys = {j.key: j.key.model_copy(update={"agent": f"agent-{j.key.task_id}"}) for j in judgments}
    moved = [judgment.model_copy(update={"key": keys[judgment.key]}) for judgment in judgments]
    (run / JUDGMENTS).write_bytes(b"".join(map(judgment_line, moved)))
    write_labels(run, [label.model_copy(update={"key": keys[k]}) for k, label in labels.items()])
    return run


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
def test_axe_finds_nothing_in_a_run_on_many_agents(
    browser: Browser, tmp_path: Path, scheme: str, width: int
) -> None:
    with served(open_workspace([of_agents(write_run(tmp_path, TASKS))])) as site:
        site.ask("/run/judge", Accept="application/json")  # waits for the scores
        shaded = site.ask("/run/judge").text
        assert all(f'class="heat-{shade}"' in shaded for shade in "04")
        check_accessible(browser, f"{site.address}/run/judge", scheme, width)


def test_the_list_of_runs_is_whole_on_a_common_screen(browser: Browser, tmp_path: Path) -> None:
    names = ("webvoyager-claude-sonnet-4-5", "simplified-gpt-4o-2024-11-20")
    runs = [write_run(tmp_path / name, TASKS[:2], judge=name) for name in names]
    for run in runs:
        settings = {"model": "claude-sonnet-4-5-20250929", "data": "trajudge:" + "/folder" * 12}
        write_manifest(run, {**read_manifest(run), **settings, "selection": {"split": "test"}})
    with served(open_workspace(runs)) as site:
        size = {"width": 1280, "height": 800}
        page, _ = opened(browser, site.address, viewport=size)
        table = page.locator(".scroll").first
        assert table.evaluate("one => one.scrollWidth <= one.clientWidth")
        page.context.close()


def test_axe_finds_nothing_where_one_signs_in(browser: Browser) -> None:
    with served(open_workspace([]), None, new_token()[1]) as site:
        check_accessible(browser, f"{site.address}/login", "dark", 320)


def test_a_person_signs_in_and_out(browser: Browser) -> None:
    token, people = new_token()
    with served(open_workspace([]), None, people) as site:
        page, events = opened(browser, site.address)
        page.get_by_label("Token").fill(token)
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Runs").wait_for()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("Token").wait_for()
        assert [event for event in events if not event.startswith("[DOM]")] == []


def test_pages_complain_of_nothing(browser: Browser, site: Served) -> None:
    for path in PAGES[:3]:
        page, events = opened(browser, site.address + path)
        page.wait_for_function("window.htmx !== undefined")
        assert events == [], path
        page.context.close()


def test_a_list_is_walked_with_keys(browser: Browser, site: Served) -> None:
    page, events = opened(browser, site.address + TABLE)
    for key in "jjk":
        page.keyboard.press(key)
    assert page.locator("tr.here input").get_attribute("value") == "0"
    page.keyboard.press("j")
    page.keyboard.press("x")
    assert page.locator("input:checked").get_attribute("value") == "1"
    page.keyboard.press("]")
    page.wait_for_url("**after=**")
    assert page.locator("tbody tr").count() == 10
    page.keyboard.press("[")
    page.wait_for_url("**before=**")
    assert page.locator("tbody tr").count() == 50
    page.keyboard.press("/")
    page.keyboard.type("wrong:fp j x")  # a letter in a text field is a letter
    assert page.locator("#f").input_value() == "wrong:fp j x"
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("i")
    page.wait_for_url(f"{site.address}/")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/run/judge")
    assert events == []


def test_the_help_names_every_key_and_turns_them_off(browser: Browser, site: Served) -> None:
    page, _ = opened(browser, site.address + TABLE)
    page.keyboard.press("?")
    keys = page.locator("#help-list kbd").all_inner_texts()
    assert {"g i", "g r", "/", "]", "j", "k", "x", "Enter"} <= {*keys}
    page.get_by_role("button", name="Turn keys off").click()
    page.keyboard.press("j")
    assert page.locator("tr.here").count() == 0
    page.reload()
    page.keyboard.press("]")
    assert "after" not in page.url


def test_a_filter_replaces_the_rows_alone(browser: Browser, site: Served) -> None:
    page, events = opened(browser, site.address + TABLE)
    page.evaluate("window.untouched = true")
    page.get_by_label("Filter", exact=True).fill("wrong:fn")
    page.keyboard.press("Enter")
    page.wait_for_url("**f=wrong%3Afn**")
    page.get_by_text("9 judgments").wait_for()
    assert page.evaluate("window.untouched") is True
    assert {*page.locator("tbody td .soft").all_inner_texts()} >= {"false negative"}
    page.get_by_label("Filter", exact=True).fill("wrong:all")
    page.keyboard.press("Enter")
    page.get_by_text("use one of fp, fn, any").wait_for()
    expect(page.locator("tbody tr")).to_have_count(0)
    assert [event for event in events if "422" not in event] == []


def test_words_deep_in_the_reasoning_are_found(browser: Browser, tmp_path: Path) -> None:
    far = "Looked at the page. " * 20
    tasks = [Task(str(n), True, True, reasoning=f"{far}Parcel {n} came.") for n in range(3)]
    with served(open_workspace([write_run(tmp_path, tasks)])) as site:
        page, events = opened(browser, site.address + TABLE)
        page.wait_for_function(
            "async () => !(await (await fetch('')).text()).includes('free text knows')"
        )
        page.keyboard.press("/")
        page.keyboard.type('"parcel 1"')
        page.keyboard.press("Enter")
        page.get_by_text("1 judgment", exact=True).wait_for()
        assert page.locator("tbody th .soft").last.inner_text() == "webarena.1"
        assert events == []
        page.context.close()


def test_everything_works_without_scripts(browser: Browser, site: Served) -> None:
    page, events = opened(browser, site.address, java_script_enabled=False)
    page.locator("tbody").get_by_role("link", name="judge", exact=True).click()
    page.get_by_role("link", name="False positives").click()
    assert page.get_by_label("Filter", exact=True).input_value() == "wrong:fp"
    expect(page.locator("tbody tr")).to_have_count(20)
    expect(page.locator("tr.false-positive")).to_have_count(20)
    page.get_by_label("Filter", exact=True).fill("")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("link", name="Next page").click()
    expect(page.locator("tbody tr")).to_have_count(10)
    page.get_by_role("link", name="score").click()
    expect(page.locator("th[aria-sort=descending]")).to_have_count(1)
    page.get_by_role("link", name="score").click()
    expect(page.locator("th[aria-sort=ascending]")).to_have_count(1)
    assert events == []


def test_hostile_text_stays_text(browser: Browser, tmp_path: Path) -> None:
    texts = [*map(without_surrogates, payloads())]
    assert len(texts) >= 200
    tasks = [
        Task(f"{at}{str(text)[:80]}", False, True, reasoning=str(text))
        for at, text in enumerate(texts)
    ]
    run = write_run(tmp_path, tasks)
    every = " ".join(map(str, texts))[:20_000]
    write_manifest(run, {"judge": every, "model": every, "data": every, "protocol": "default"})
    (run / "results.json").write_text('{"scores": [{"judge": "<img src=x onerror=alert(1)>"}]}')
    with served(open_workspace([run])) as site:
        page, events = opened(browser, site.address)
        paths = ["/run/judge", *(f"{TABLE}?limit=200{more}" for more in ("", "&sort=-task"))]
        filters = [urlencode({"f": str(text)[:300]}) for text in texts[::12]]
        for path in (*paths, *(f"{TABLE}?limit=5&{one}" for one in filters)):
            page.goto(site.address + path)
            page.keyboard.press("Tab")
            page.mouse.move(300, 400)
            assert page.evaluate("window.pwned") is None
            assert page.locator("main iframe, main script, main [onload], main object").count() == 0
        page.wait_for_timeout(200)
        assert [event for event in events if "422" not in event] == []
