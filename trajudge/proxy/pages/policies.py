"""Content security policies amended so that one style and one script of ours may run, and report.

Only elements with a nonce and one path of the proxy's own are allowed in addition; what the page
itself may do stays as it was.
"""

from __future__ import annotations

import re

_META = re.compile(
    rb"<meta\b[^>]*http-equiv\s*=\s*[\"']?content-security-policy[\"']?[^>]*>", re.IGNORECASE
)
_CONTENT = re.compile(rb"(\bcontent\s*=\s*)(\"[^\"]*\"|'[^']*')", re.IGNORECASE)


def amended_policy(policy: str, nonce: str, beacon: str = "") -> str:
    """Return a policy that also allows script and style elements with ``nonce``, and requests to
    ``beacon``, an address without its scheme.

    A policy that already allows all inline elements stays as it is: beside a nonce, browsers would
    ignore its 'unsafe-inline' and stop the page's own scripts.
    """
    return ", ".join(_amended_one(one, nonce, beacon) for one in policy.split(",") if one.strip())


def _amended_one(policy: str, nonce: str, beacon: str) -> str:
    directives: dict[str, list[str]] = {}
    for directive in policy.split(";"):
        name, *values = directive.split() or [""]
        if name:
            directives.setdefault(name.lower(), values)
    for kind in ("script", "style"):
        names = (f"{kind}-src-elem", f"{kind}-src", "default-src")
        governing = next((name for name in names if name in directives), None)
        if governing is None or _allows_inline(directives[governing]):
            continue
        # Of default-src other kinds of content depend: the elements get a directive of their own.
        target = governing if governing != "default-src" else f"{kind}-src-elem"
        kept = [value for value in directives[governing] if value.lower() != "'none'"]
        directives[target] = [*kept, f"'nonce-{nonce}'"]
    if beacon:
        _allow_requests(directives, beacon)
    return "; ".join(" ".join([name, *values]) for name, values in directives.items())


def _allow_requests(directives: dict[str, list[str]], address: str) -> None:
    names = ("connect-src", "default-src")
    governing = next((name for name in names if name in directives), None)
    if governing is None or {"'self'", "*"} & {value.lower() for value in directives[governing]}:
        return
    kept = [value for value in directives[governing] if value.lower() != "'none'"]
    directives["connect-src"] = [*kept, address]


def _allows_inline(values: list[str]) -> bool:
    lower = [value.lower() for value in values]
    restricted = any(v.startswith(("'nonce-", "'sha")) or v == "'strict-dynamic'" for v in lower)
    return "'unsafe-inline'" in lower and not restricted


def amended_metas(html: bytes, nonce: str, beacon: str = "") -> bytes:
    """Amend the policies that a document states in ``meta`` elements."""

    def amend(element: re.Match[bytes]) -> bytes:
        return _CONTENT.sub(_amend_content, element[0], count=1)

    def _amend_content(found: re.Match[bytes]) -> bytes:
        value = found[2][1:-1].decode("latin-1").replace("&#39;", "'").replace("&quot;", '"')
        policy = amended_policy(value, nonce, beacon).replace('"', "&quot;")
        return found[1] + b'"' + policy.encode("latin-1") + b'"'

    return _META.sub(amend, html)
