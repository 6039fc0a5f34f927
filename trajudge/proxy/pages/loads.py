"""Which request loads a page: a top-level document that the user of the browser would see.

Browsers say so in ``Sec-Fetch-Dest`` where the address is trustworthy (https, loopback,
``*.localhost``). Elsewhere it is guessed, and a frame looks like a page: such loads are marked. A
browser that is watched says it everywhere, in a field that its watcher adds.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from trajudge.proxy.http.messages import RequestHead, field, fields_by_name, without
from trajudge.proxy.plans.faults import AssetKind

DOCUMENT_FIELD = "Trajudge-Document"
"""Set by the watcher of a browser on requests for documents: its token, ``page`` or ``frame``."""

_ASSETS: dict[str, AssetKind] = {
    "style": "style",
    "script": "script",
    "image": "image",
    "font": "font",
}
# As browsers' tools name the initiator of a request.
_TYPES = {
    **{"document": "document", "iframe": "document", "frame": "document", "style": "stylesheet"},
    **{"script": "script", "image": "image", "font": "font", "audio": "media", "video": "media"},
    **{"manifest": "manifest", "empty": "fetch", "websocket": "websocket"},
}


class RequestPurpose(NamedTuple):
    """``page``: it loads a page; ``certain``: the browser said so itself; ``asset``: the kind of
    asset, if it is one; ``resource_type`` as in browsers' traces."""

    page: bool
    certain: bool
    asset: AssetKind | None
    resource_type: str


def watched_kind(
    head: RequestHead, token: str, *, watched: bool
) -> tuple[RequestHead, RequestPurpose]:
    """Return a request as the browser sent it, and what it is for. Of a browser that is watched
    little is guessed: what was not marked loads no page, unless it is a navigation, as the first
    one of a window that the watcher did not reach in time."""
    words = field(head.headers, DOCUMENT_FIELD.lower()).split()
    if len(words) != 2 or words[0] != token:
        kind = request_kind(head)
        navigates = field(head.headers, "upgrade-insecure-requests") == "1"
        guessed = watched and not kind.certain and not navigates
        return head, RequestPurpose(False, True, None, "other") if guessed else kind
    own = head._replace(headers=without(head.headers, DOCUMENT_FIELD.lower()))
    page = words[1] == "page" and head.method in ("GET", "POST")
    return own, RequestPurpose(page, True, None, "document")


def request_kind(head: RequestHead) -> RequestPurpose:
    """Tell what a request is for."""
    named = fields_by_name(head.headers)
    destination = named.get("sec-fetch-dest")
    if not destination:
        return _guessed(head)
    purpose = named.get("sec-purpose") or named.get("purpose", "")
    page = (
        destination == "document"
        and head.method in ("GET", "POST")
        and "prefetch" not in purpose.lower()
    )
    return RequestPurpose(page, True, _ASSETS.get(destination), _TYPES.get(destination, "other"))


def _guessed(head: RequestHead) -> RequestPurpose:
    """Guess by the fields that browsers send with documents, pages and frames alike."""
    wants_html = "text/html" in field(head.headers, "accept").lower()
    scripted = field(head.headers, "x-requested-with") or field(head.headers, "purpose")
    page = wants_html and not scripted and head.method in ("GET", "POST")
    kind: Literal["document", "other"] = "document" if page else "other"
    return RequestPurpose(page, False, None, kind)
