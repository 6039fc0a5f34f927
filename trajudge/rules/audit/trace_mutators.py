"""Change the trace of a correct run: near misses must fail, equivalent mutants must pass.

Two traces are known: network events in HAR's form (a list of entries with ``request`` and
``response``), and WebArena's last url with stored pages. Other traces yield nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from trajudge.rules.audit.mutation import MutationCase, Mutator, Variant
from trajudge.rules.webarena.model import Trace

OTHER_HOST = "elsewhere.invalid"
_ASSET = {
    "request": {"method": "GET", "url": f"http://{OTHER_HOST}/logo.png", "headers": []},
    "response": {"status": 200, "headers": []},
}
Entry = Mapping[str, Any]


def _at_other_host(url: str) -> str:
    parts = urlsplit(url)
    if not parts.netloc:
        # An address that starts with a site's placeholder.
        return f"http://{OTHER_HOST}/" + url.partition("/")[2]
    return urlunsplit(parts._replace(netloc=OTHER_HOST))


def _at_root(url: str) -> str:
    parts = urlsplit(url)
    if not parts.netloc:
        return url.partition("/")[0] + "/"
    return urlunsplit(parts._replace(path="/", query="", fragment=""))


def _slashed(url: str) -> str:
    return url if url.endswith("/") else f"{url}/"


def _events(case: MutationCase) -> list[Entry] | None:
    trace = case.trace
    listed = isinstance(trace, list) and trace and all(isinstance(one, dict) for one in trace)
    within = all(-len(trace) <= at < len(trace) for at in case.decisive) if listed else False
    return list(trace) if within else None


def _changed_event(change: Callable[[Entry], Entry]) -> Mutator:
    """Return a mutator that changes a decisive event."""

    def mutate(case: MutationCase) -> Iterator[Variant]:
        for at in case.decisive:
            events = _events(case)
            if events is not None:
                events[at] = change(events[at])
                yield Variant(case.answer, events)

    return mutate


def _request(**changes: Callable[[Any], Any]) -> Callable[[Entry], Entry]:
    def change(event: Entry) -> Entry:
        request = {**event.get("request", {})}
        for field, new in changes.items():
            request[field] = new(request.get(field, ""))
        return {**event, "request": request}

    return change


def _failed(event: Entry) -> Entry:
    return {**event, "response": {**event.get("response", {}), "status": 500}}


def _wrong_host(case: MutationCase) -> Iterator[Variant]:
    # Where a run need not end on a page, to end elsewhere is no mistake.
    if isinstance(case.trace, Trace) and case.trace.url is not None and case.ends_there:
        url = _at_other_host(case.trace.url)
        yield Variant(case.answer, msgspec.structs.replace(case.trace, url=url))
    yield from _changed_event(_request(url=_at_other_host))(case)


def _stale(case: MutationCase) -> Iterator[Variant]:
    """Yield the right page was seen earlier, and the run went on from it to the site's first
    page."""
    if not case.ends_there:
        return
    if isinstance(case.trace, Trace) and case.trace.url is not None:
        url = _at_root(case.trace.url)
        if url != _slashed(case.trace.url):
            yield Variant(case.answer, msgspec.structs.replace(case.trace, url=url))
    events = _events(case)
    if events is not None and case.decisive:
        last = events[case.decisive[-1]]
        root = _at_root(last["request"]["url"])
        if root != _slashed(last["request"]["url"]):
            yield Variant(case.answer, [*events, _page_load(root)])


def _page_load(url: str) -> Entry:
    """Return the load of a page, whoever sent the request that it comes after."""
    headers = {"accept": "text/html,application/xhtml+xml", "sec-fetch-dest": "document"}
    headers |= {"sec-fetch-mode": "navigate", "sec-fetch-user": "?1"}
    pairs = [{"name": name, "value": value} for name, value in headers.items()]
    request = {"method": "GET", "url": url, "headers": pairs}
    return {"request": request, "response": {"status": 200, "headers": []}}


def _dropped(case: MutationCase) -> Iterator[Variant]:
    for at in case.decisive:
        events = _events(case)
        if events is not None:
            del events[at]
            yield Variant(case.answer, events)


def _before_change(case: MutationCase) -> Iterator[Variant]:
    """Show stored pages as if the run had changed nothing: blank."""
    if isinstance(case.trace, Trace) and case.trace.pages:
        blank = tuple(
            msgspec.structs.replace(
                page, html=None if page.html is None else "", values=dict.fromkeys(page.values, "")
            )
            for page in case.trace.pages
        )
        yield Variant(case.answer, msgspec.structs.replace(case.trace, pages=blank))


def _asset_first(case: MutationCase) -> Iterator[Variant]:
    events = _events(case)
    if events is not None:
        yield Variant(case.answer, [_ASSET, *events])


def _asset_last(case: MutationCase) -> Iterator[Variant]:
    events = _events(case)
    if events is not None:
        yield Variant(case.answer, [*events, _ASSET])


def _other_method(method: str) -> str:
    return "GET" if method.upper() == "POST" else "POST"


TRACE_NEAR_MISSES: Mapping[str, Mutator] = {
    "wrong_host": _wrong_host,
    "stale_event": _stale,
    "dropped_event": _dropped,
    "wrong_method": _changed_event(_request(method=_other_method)),
    "failed_request": _changed_event(_failed),
    "unchanged_page": _before_change,
}
TRACE_EQUIVALENT: Mapping[str, Mutator] = {"asset_first": _asset_first, "asset_last": _asset_last}
