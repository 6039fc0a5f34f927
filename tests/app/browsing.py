"""Pages in Chromium, and what they asked for or complained of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Dialog, Page, expect, sync_playwright

WITH_TARGETS = {"rules": {"target-size": {"enabled": True}}}
"""All of axe's rules that are on by default, and the size of targets (WCAG 2.2, 2.5.8)."""


@contextmanager
def launched(chromium: Path) -> Iterator[Browser]:
    """Start Chromium for the block."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


def complaints(page: Page, own: str, *, accept: bool = False) -> list[str]:
    """Collect every request of a page to addresses that do not begin with ``own``, and everything
    that it complains of. Dialogs are dismissed, or accepted."""
    events: list[str] = []
    page.on("request", lambda r: None if r.url.startswith(own) else events.append(r.url))
    page.on("console", lambda message: events.append(message.text))
    page.on("pageerror", lambda error: events.append(str(error)))

    def answer(dialog: Dialog) -> None:
        events.append(dialog.message)
        dialog.accept() if accept else dialog.dismiss()

    page.on("dialog", answer)
    return events


def opened(browser: Browser, address: str, **context: Any) -> tuple[Page, list[str]]:
    """Open a page of a server; return it with every request to elsewhere and every complaint."""
    page = browser.new_context(**context).new_page()
    events = complaints(page, "/".join(address.split("/")[:3]) + "/")
    page.goto(address)
    return page, events


def check_accessible(browser: Browser, address: str, scheme: str, width: int = 1280) -> None:
    """Let axe look at a page with everything unfolded, in ``light`` or ``dark``, and see that it
    needs no scrolling sideways."""
    # The policy of the pages would keep the checker out.
    screen = {"width": width, "height": 800}
    page, _ = opened(browser, address, color_scheme=scheme, bypass_csp=True, viewport=screen)
    assert page.evaluate("document.documentElement.scrollWidth") <= width, address
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    found = Axe().run(page, options=WITH_TARGETS)
    page.context.close()
    assert found.violations_count == 0, found.generate_report()


def unfolded_goal(page: Page) -> str:
    """Unfold the goal of a page by keyboard, see its end and the page as wide as the window, and
    return the goal."""
    end = page.locator(".goal bdi").last
    assert not end.is_visible()
    page.locator(".goal summary").press("Enter")
    expect(end).to_be_visible()
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert page.evaluate(wide)
    return "".join(page.locator(".goal bdi").all_text_contents())
