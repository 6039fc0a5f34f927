"""Pages in Chromium, and what they asked for or complained of."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Dialog, Page


def opened(browser: Browser, address: str, **context: Any) -> tuple[Page, list[str]]:
    """Open a page of a server; return it with every request to elsewhere and every complaint."""
    page = browser.new_context(**context).new_page()
    events: list[str] = []
    origin = "/".join(address.split("/")[:3]) + "/"
    page.on("request", lambda r: None if r.url.startswith(origin) else events.append(r.url))
    page.on("console", lambda message: events.append(message.text))
    page.on("pageerror", lambda error: events.append(str(error)))

    def note_dialog(dialog: Dialog) -> None:
        events.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", note_dialog)
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
    found = Axe().run(page)
    page.context.close()
    assert found.violations_count == 0, found.generate_report()
