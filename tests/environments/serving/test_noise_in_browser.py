"""Noise on a real server in a real browser: it disturbs, it is dismissed, nothing of it stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from trajudge.environments.model.config import Config
from trajudge.environments.serving.noise import EVERY
from trajudge.environments.serving.run import ServedRun
from trajudge.environments.serving.server import Server, serve

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
TYPED = "line one\nline two \x07 <b>é"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve(b"secret") as server:
        yield server


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])


def look_around(tab: Page, home: str, run: ServedRun) -> None:
    """Open a product until its promotion came, and close it."""
    product = run.state.value("SELECT id FROM product")
    for _ in range(8):
        tab.goto(f"{home}/product?id={product}")
        dialog = tab.get_by_role("dialog")
        if dialog.count():
            dialog.get_by_role("button", name=run.words["dismiss"], exact=True).click()
            break
    else:
        raise AssertionError("no promotion in eight documents")
    tab.get_by_role("button", name=run.words["accept_cookies"], exact=True).click()


def write_review(tab: Page, run: ServedRun) -> None:
    tab.locator("summary", has_text=run.words["write_review"]).click()
    tab.get_by_role("textbox", name=run.words["review"], exact=True).fill(TYPED)
    tab.get_by_role("radio", name="4", exact=True).click()
    tab.get_by_role("button", name=run.words["send_review"], exact=True).click()
    tab.wait_for_load_state()


@pytest.mark.parametrize("index", [0, 7])
def test_a_disturbed_run_reaches_the_same_state(
    server: Server, browser: Browser, index: int
) -> None:
    run = server.open(Config(app="shop", scenario="price", theme=index, noise=EVERY))
    tab = browser.new_page(viewport={"width": 390, "height": 844})
    tab.set_default_timeout(4000)
    complaints: list[str] = []
    tab.on("console", lambda message: complaints.append(message.text))
    look_around(tab, f"{run.origin}:{server.port}", run)
    assert tab.get_by_role("dialog").count() == 0
    assert run.state.dump() == run.before

    write_review(tab, run)
    assert tab.get_by_role("alert").count() == 1
    assert run.state.dump() == run.before
    write_review(tab, run)
    assert tab.get_by_role("alert").count() == 0
    assert run.state.value("SELECT count(*) FROM review WHERE body = :body", body=TYPED) == 1

    kinds = [event.kind for event in run.events]
    assert kinds.count("dismissed") == 2
    assert kinds.count("refused") == kinds.count("operation") == 1
    assert not {"tamper", "fault", "missing"} & {*kinds}, "no stray request, for an icon say"
    assert complaints == []
    tab.close()
    server.close(run)
