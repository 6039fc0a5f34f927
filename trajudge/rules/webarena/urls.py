"""How the original harness compares the last page's url with the reference ("GOLD in PRED")."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qs, urlparse, urlsplit

from trajudge.rules.webarena.strings import OR

_PLACEHOLDER = re.compile(r"__[A-Z][A-Z_]*__")


def render(text: str, sites: Mapping[str, str]) -> str:
    """Return the text with each placeholder such as ``__REDDIT__`` replaced by that site's
    address."""
    return _PLACEHOLDER.sub(lambda found: sites.get(found[0], found[0]), text)


def unresolved(reference: str, found: str) -> str | None:
    """Return a placeholder that makes the two incomparable: in the reference, and no part of the
    other."""
    for placeholder in _PLACEHOLDER.findall(reference):
        if placeholder not in found:
            return str(placeholder)
    return None


def base_and_query(url: str) -> tuple[str, dict[str, list[str]]]:
    """Host and path, and the query's values by name.

    As in the harness, slashes at the very end do not count, and those before a query do: what asks
    for ``/issues/?state=opened`` does not accept ``/issues?state=opened``. A url that cannot be
    parsed is its own base.
    """
    try:
        # Not urlsplit: as in the harness, ";parameters" are no part of the path.
        parts = urlparse(url.rstrip("/"))
        query = parse_qs(parts.query)
    except ValueError:
        return url.rstrip("/"), {}
    return parts.netloc + parts.path, query


def alternatives(reference_url: str) -> list[str]:
    """Return the reference urls that " |OR| " joins."""
    return reference_url.split(OR)


def url_match(references: Iterable[str], found: str) -> tuple[bool, str]:
    """Tell whether one reference's base is part of the url's, and every query name has a wanted
    value.

    The references' queries are pooled: a name asks for any value that any reference gives it.
    Returns the result and, if it is False, what differs.
    """
    base, query = base_and_query(found)
    parsed = [base_and_query(reference) for reference in references]
    if not any(wanted in base for wanted, _ in parsed):
        return False, f"none of the reference addresses is part of {base[:200]!r}"
    pooled: dict[str, set[str]] = {}
    for _, wanted_query in parsed:
        for name, values in wanted_query.items():
            pooled.setdefault(name, set()).update(values)
    for name, wanted_values in pooled.items():
        if not wanted_values & set(query.get(name, [])):
            return False, f"the query's {name!r} is none of {sorted(wanted_values)}"
    return True, ""


def post_address(url: str) -> str:
    """Return the address of the Reddit post that a url such as ``/f/forum/12/title`` belongs to.

    A url of another form is returned as it is (the harness's helper ``reddit_get_post_url``).
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    site, _, path = f"{parts.netloc}{parts.path}".partition("/")
    segments = path.split("/")
    if len(segments) < 3 or segments[0] != "f":
        return url
    scheme = f"{parts.scheme}://" if parts.scheme else ""
    return f"{scheme}{site}/f/{segments[1]}/{segments[2]}/"
