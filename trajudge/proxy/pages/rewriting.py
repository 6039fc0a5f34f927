"""Documents with an overlay: decoded, the policy amended, the overlay put before their end."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from trajudge.proxy.http.messages import HeaderFields, ResponseHead, field, replaced, without
from trajudge.proxy.pages.policies import amended_metas, amended_policy
from trajudge.proxy.pages.popup import BEACON, PopupOverlay

MAX_DOCUMENT = 64 * 2**20  # bytes, decoded
_POLICIES = ("content-security-policy", "content-security-policy-report-only")
# What is said of the bytes of the original.
_OF_THE_BYTES = ("content-encoding", "content-length", "content-md5", "digest", "etag")
_WIDE = ("utf-16", "utf-32", "ucs-2")


class CannotRewrite(Exception):
    """A response that an overlay cannot be put into, with the reason."""


def check_rewritable(head: ResponseHead) -> None:
    """Raise CannotRewrite for a response that is no HTML page."""
    content_type = field(head.headers, "content-type").lower()
    kind = content_type.partition(";")[0].strip()
    if kind not in ("text/html", "application/xhtml+xml"):
        raise CannotRewrite(f"the content type is {kind or 'not given'}, not text/html")
    if any(name in content_type for name in _WIDE):
        raise CannotRewrite(f"the charset in {content_type!r:.80} does not extend ASCII")
    if field(head.headers, "content-disposition").lower().startswith("attachment"):
        raise CannotRewrite("it is a download")


def decoded_body(body: bytes, encoding: str) -> bytes:
    """Undo a content encoding. Raises CannotRewrite for an unknown or damaged one."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return body
    if name not in ("gzip", "x-gzip", "deflate"):
        raise CannotRewrite(f"the content encoding is {name}")
    try:
        unpacking = zlib.decompressobj(wbits=47 if name != "deflate" else zlib.MAX_WBITS)
        text = unpacking.decompress(body, MAX_DOCUMENT)
    except zlib.error as error:
        raise CannotRewrite(f"the content encoding {name} is damaged ({error})") from None
    if unpacking.unconsumed_tail:
        raise CannotRewrite(f"the document has more than {MAX_DOCUMENT} bytes")
    return text


def plain_response(head: ResponseHead, body: bytes) -> tuple[HeaderFields, bytes]:
    """Return fields and bytes of a response without content encoding. Raises CannotRewrite."""
    text = decoded_body(body, field(head.headers, "content-encoding"))
    return without(head.headers, *_OF_THE_BYTES), text


def with_overlays(
    headers: HeaderFields, html: bytes, overlays: Sequence[PopupOverlay], host: str
) -> tuple[HeaderFields, bytes]:
    """Return fields and document with the overlays in them, which share one nonce and report to
    the page's own ``host``."""
    nonce, beacon = overlays[0].nonce, f"{host}{BEACON}"
    amended = tuple(
        (name, amended_policy(value, nonce, beacon) if name.lower() in _POLICIES else value)
        for name, value in headers
    )
    html = amended_metas(html, nonce, beacon)
    inserted = b"".join(overlay.html() for overlay in overlays)
    place = html.lower().rfind(b"</body")
    place = len(html) if place < 0 else place
    return amended, html[:place] + inserted + html[place:]


def no_store(headers: HeaderFields) -> HeaderFields:
    """Return fields that forbid to store the response: a page shown again is loaded again."""
    return replaced(without(headers, "expires", "pragma"), "Cache-Control", "no-store")
