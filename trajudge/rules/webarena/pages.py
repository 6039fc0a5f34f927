"""Page checks (``program_html``) on stored pages: nothing is fetched and no script is run.

A blank locator reads the stored html; any other reads the value that was recorded for it at the
end of the run. What was not recorded makes the check unknown.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec import UNSET

from trajudge.rules.verdict import Assertion, Outcome
from trajudge.rules.webarena.model import PageCheck, RequiredContents, StoredPage, Trace
from trajudge.rules.webarena.strings import OR, clean, exact_match, must_include, text_assertion
from trajudge.rules.webarena.urls import post_address, render, unresolved

_POST_ADDRESS = re.compile(r"func:reddit_get_post_url\('__last_url__'\)")
LAST = "last"


class Missing(NamedTuple):
    """Why a page, or a part of it, cannot be read."""

    reason: str


def page_assertions(
    checks: Iterable[PageCheck], trace: Trace, sites: Mapping[str, str]
) -> Iterator[Assertion]:
    """Yield one assertion for each required content of each check, or one unknown for the check."""
    current = trace.url
    for index, check in enumerate(checks):
        name = f"page.{index}"
        # As in the harness, a check that opens a page leaves it open for the next "last".
        address = _address(check.url, current, trace, sites)
        found = address if isinstance(address, Missing) else _found(check, address, trace, sites)
        current = None if isinstance(address, Missing) else address
        if isinstance(found, Missing):
            yield Assertion(name=name, outcome=Outcome.UNKNOWN, reason=found.reason)
        else:
            yield from _compared(name, check.required_contents, html.unescape(found), sites)


def _address(
    url: str, current: str | None, trace: Trace, sites: Mapping[str, str]
) -> str | Missing:
    """Return the address of the page that a check reads."""
    if url == LAST or "__last_url__" in url:
        if current is None:
            return Missing("the run's last url was not recorded")
        if url == LAST:
            return current
    if url.startswith("func"):
        if url.removeprefix("func:") in trace.results:
            return trace.results[url.removeprefix("func:")]
        if current is not None and _POST_ADDRESS.fullmatch(url):
            return post_address(current)
        return Missing(f"the result of {url!r} was not recorded")
    return render(url, sites)


def _found(check: PageCheck, address: str, trace: Trace, sites: Mapping[str, str]) -> str | Missing:
    """Return the text that a check reads: a helper's result, a page's html, or a locator's
    value."""
    locator = check.locator.strip()
    if locator.startswith("func:"):
        result = trace.results.get(locator.removeprefix("func:"))
        return Missing(f"the result of {locator!r} was not recorded") if result is None else result
    page = _stored(trace.pages, address, sites)
    if page is None:
        return Missing(f"no page was stored for {address[:200]!r}")
    if not locator:
        return Missing(f"no html was stored for {address!r}") if page.html is None else page.html
    value = page.values.get(check.locator)
    return Missing(f"no value was recorded for {locator!r}") if value is None else value


def _stored(
    pages: Iterable[StoredPage], address: str, sites: Mapping[str, str]
) -> StoredPage | None:
    wanted = address.rstrip("/")
    for page in pages:
        if render(page.url, sites).rstrip("/") == wanted:
            return page
    return None


def _compared(
    name: str, required: RequiredContents, found: str, sites: Mapping[str, str]
) -> Iterator[Assertion]:
    """As in the harness, ``exact_match`` hides ``must_include``, and only the latter knows OR."""
    text = clean(found)
    if required.exact_match is not UNSET:
        reference = render(required.exact_match, sites)
        passed = exact_match(reference, text)
        yield _assertion(f"{name}.exact_match", passed, reference, text)
        return
    if required.must_include is UNSET:
        yield Assertion(name=name, outcome=Outcome.UNKNOWN, reason="nothing is required of it")
        return
    for index, content in enumerate(required.must_include):
        reference = render(content, sites)
        passed = any(must_include(option, text) for option in reference.split(OR))
        yield _assertion(f"{name}.must_include.{index}", passed, reference, text)


def _assertion(name: str, passed: bool, reference: str, text: str) -> Assertion:
    outcome, reason = Outcome.PASS, ""
    if not passed:
        placeholder = unresolved(reference, text)
        outcome = Outcome.UNKNOWN if placeholder else Outcome.FAIL
        reason = (
            f"{placeholder} has no address: give it in sites"
            if placeholder
            else f"{reference[:200]!r} is not there"
        )
    return text_assertion(name, outcome, reason, reference, text)
