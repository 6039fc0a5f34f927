"""A person's pages of a label room."""

from __future__ import annotations

from playwright.sync_api import Browser, Page

from tests.app.browsing import complaints
from tests.app.labelling.sites import Site
from trajudge.app.label_forms import cookie_of


def visited(browser: Browser, site: Site, name: str, **context: object) -> tuple[Page, list[str]]:
    """A page of the person's, and what it asked of others or complained of."""
    person = site.store.person(name)
    assert person is not None
    made = browser.new_context(**context)  # type: ignore[arg-type]
    made.add_cookies(
        [{"name": cookie_of(site.store), "value": str(person.id), "url": site.served.address}]
    )
    page = made.new_page()
    page.set_default_timeout(30_000)
    return page, complaints(page, site.served.address, accept=True)
