"""What each tab showed last, by the kind of request that shows an address (``network.kinds``).

An address that is a document is shown by the load of a page; one that a script may fetch into the
page in its place, by either; and what only a script asks for, such as the rows of a list or a
route on the map, by the requests that the last page made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

from trajudge.rules.verified.dataset import NetworkCheck
from trajudge.rules.verified.network.addresses import (
    address,
    differing,
    expected_query,
    same_base,
)
from trajudge.rules.verified.network.events import Event
from trajudge.rules.verified.network.kinds import (
    Declaration,
    RequestKind,
    declared,
    recorded_kind,
)
from trajudge.rules.verified.network.run import Run


class ShownBy(StrEnum):
    """How the tab comes to show what a check names."""

    LOAD = "page load"
    PLACE = "page load, or fetch in its place,"
    SCRIPT = "request by the last page's script"


def shown_by(check: NetworkCheck) -> ShownBy:
    """Return how the tab comes to show what a check names."""
    known = _declared(check)
    if known is None:
        return ShownBy.LOAD
    if known.in_place:
        return ShownBy.PLACE
    return ShownBy.SCRIPT if known.scripted else ShownBy.LOAD


def _declared(check: NetworkCheck) -> Declaration | None:
    return declared(check.expected.http_method, check.expected.urls[0])


def final_events(run: Run, check: NetworkCheck, count: int) -> list[Event]:
    """Return the requests that showed a page, so that the last ``count`` show the final pages.

    These are looked for in as many tabs, those in which a page was shown last. The last of each tab
    stand behind all others; both parts are in the order in which they were sent. Raises Undecided.
    """
    if len(run.trace.tabs) == 1:
        return list(_shown_in(run.trace.tabs[0], run, check))
    order = {id(event): at for at, event in enumerate(run.trace.relevant)}

    def last_view(tab: tuple[Event, ...]) -> int:
        return max((order[id(event)] for event in tab if _shows_page(run, event)), default=-1)

    tabs = sorted(run.trace.tabs, key=last_view)[-count:]
    shown = [list(_shown_in(tab, run, check)) for tab in tabs]
    earlier = [event for events in shown for event in events[:-1]]
    last = [event for events in shown for event in events[-1:]]
    return [
        event for part in (earlier, last) for event in sorted(part, key=lambda one: order[id(one)])
    ]


def _shown_in(made: tuple[Event, ...], run: Run, check: NetworkCheck) -> Iterator[Event]:
    """Yield the requests of one tab that showed a page, first to last. Raises Undecided."""
    way = shown_by(check)
    if way is ShownBy.LOAD:
        yield from (event for event in made if event.is_document())
        return
    views = [event for event in made if _shows_page(run, event)]
    if way is ShownBy.PLACE:
        yield from views
        return
    if views:
        made = made[_position(made, views[-1]) + 1 :]
    for event in fitting(run, check, made):
        if recorded_kind(event) is not RequestKind.DOCUMENT and _same_part(run, check, event):
            yield event


def _shows_page(run: Run, event: Event) -> bool:
    """Tell whether a request changed the page that the tab shows."""
    if event.is_document():
        return True
    if event.method != "GET":
        return False
    place = run.address(event, base64_path=False)
    known = declared(event.method, place.base) if place else None
    return known is not None and known.in_place and recorded_kind(event) is RequestKind.SCRIPT


def _position(events: tuple[Event, ...], wanted: Event) -> int:
    return next(at for at, event in enumerate(events) if event is wanted)


def _same_part(run: Run, check: NetworkCheck, event: Event) -> bool:
    """Tell whether a request is about the part of the page that the check is about. Raises
    Undecided."""
    known = _declared(check)
    place = run.address(event, base64_path=check.decode_base64_query)
    if known is None or not known.part or place is None:
        return True
    wanted = expected_query(check.expected.urls[0], check).get(known.part)
    if wanted is None:
        return True
    found = place.query.get(known.part, ())
    return not differing({known.part: wanted}, {known.part: found}, check)


def fitting(run: Run, check: NetworkCheck, events: Iterable[Event]) -> Iterator[Event]:
    """Yield those with the method, the base address and the referring page of a check. Raises
    Undecided."""
    method = check.expected.http_method.upper()
    for event in events:
        if event.method == method and _fits(run, check, event):
            yield event


def _fits(run: Run, check: NetworkCheck, event: Event) -> bool:
    place = run.address(event, base64_path=check.decode_base64_query)
    if place is None or not any(same_base(url, place) for url in check.expected.urls):
        return False
    referer = (check.expected.headers or {}).get("referer")
    came_from = event.headers.get("referer")
    if not referer or not came_from:
        return True
    wanted = (referer,) if isinstance(referer, str) else referer
    page = address(came_from, run.binding)
    return any(same_base(url, page) for url in wanted)


def wanted_view(check: NetworkCheck) -> str:
    """Return in words what a run must have for a check of the final page."""
    return shown_by(check).value
