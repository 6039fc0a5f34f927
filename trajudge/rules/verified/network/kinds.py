"""What kind of request the addresses of the benchmark's sites are, declared site by site.

A page can be shown by loading a document, or by a script of the page that is shown already; a
change can be sent by a form or by a script. Which it is depends on the site's program, not on the
method: the rows of a list in the shop's administration come by a script's GET, which no load of a
page ever is. Each declaration has its reason, and ``python -m benchmarks.request_kinds`` holds them
to recorded traces. An address that is not declared is a document for GET, else a form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from trajudge.rules.verified.network.events import Event

SLASHES = re.compile(r"(?<!:)/{2,}")


class RequestKind(StrEnum):
    """``document`` loads a page, ``form`` submits one, ``script`` is sent by a page's script."""

    DOCUMENT = "document"
    FORM = "form"
    SCRIPT = "script"


class Declaration(NamedTuple):
    """The kinds of the requests with a method to a site's addresses that begin with ``path``.

    ``path`` is a pattern; without a ``site`` it may stand anywhere in an address: the service has a
    host of its own. The first kind is the usual one. Requests that differ in ``part`` are about
    different parts of a page. ``carrier`` parameters say how a page was fetched, not which.
    """

    site: str
    methods: tuple[str, ...]
    path: str
    kinds: tuple[RequestKind, ...]
    reason: str
    part: str = ""
    carrier: str = ""

    @property
    def in_place(self) -> bool:
        """Whether a script may show the address as the tab's page, as a load of it would."""
        return {RequestKind.DOCUMENT, RequestKind.SCRIPT} <= {*self.kinds}

    @property
    def scripted(self) -> bool:
        """Whether only a script asks for the address."""
        return self.kinds == (RequestKind.SCRIPT,)


_GET, _POST, _ANY = ("GET",), ("POST",), ("GET", "POST", "PUT", "PATCH", "DELETE")
_SCRIPT, _FORM = (RequestKind.SCRIPT,), (RequestKind.FORM,)
_VIEW = (RequestKind.DOCUMENT, RequestKind.SCRIPT)

DECLARATIONS = (
    Declaration(
        "__SHOPPING_ADMIN__",
        _GET,
        r"/mui/index/render",
        _SCRIPT,
        "A list asks for its rows when its page has been loaded and whenever a filter changes; the "
        "page stays. One page holds several lists, of different namespaces.",
        part="namespace",
    ),
    Declaration(
        "__SHOPPING_ADMIN__",
        _POST,
        r"/mui/bookmark/save",
        _SCRIPT,
        "A list stores its filters when they have been applied.",
    ),
    Declaration(
        "__SHOPPING_ADMIN__",
        _POST,
        r"/sales/order/addComment/",
        _SCRIPT,
        "The comments of an order are sent and shown anew in their place: the reply is 200.",
    ),
    Declaration(
        "__SHOPPING_ADMIN__",
        _POST,
        r"/(?:catalog|sales|cms|review|admin|customer|catalog_rule|sales_rule)/",
        _FORM,
        "The pages that edit a record post their form and are sent on by a 302.",
    ),
    Declaration(
        "__SHOPPING__",
        _ANY,
        r"/rest/",
        _SCRIPT,
        "The checkout runs in one page, which calls the shop's interface for programs.",
    ),
    Declaration(
        "__SHOPPING__",
        _GET,
        r"/customer/section/load",
        _SCRIPT,
        "Pages are the same for all customers; cart, name and messages are fetched into them.",
    ),
    Declaration(
        "__SHOPPING__",
        _POST,
        r"/checkout/cart/add/",
        (RequestKind.SCRIPT, RequestKind.FORM),
        "Product pages add to the cart by a script (200), and by their form where it fails (302).",
    ),
    Declaration(
        "",
        _POST,
        r"/dummy_bin\$?$",
        _FORM,
        "A form that is filled in but not to be sent goes to an address that nothing answers.",
    ),
    Declaration(
        "",
        _GET,
        r"/static/version\d+/.*\.(?:html|json)$",
        _SCRIPT,
        "The shop's pages fetch the templates and the translations of their parts.",
    ),
    Declaration(
        "__GITLAB__",
        _ANY,
        r"/api/(?:v4/|graphql)",
        _SCRIPT,
        "Lists, dialogues and the editor call the interface for programs; the page stays.",
    ),
    Declaration(
        "__GITLAB__",
        _POST,
        r"/users/[^/]+/(?:un)?follow",
        _FORM,
        "The button is a link that is sent as a form, whatever its name ends in: the reply is 302.",
    ),
    Declaration(
        "__GITLAB__",
        _ANY,
        r"/.*(?:\.json|/notes)$",
        _SCRIPT,
        "Stars, comments and the fields beside an issue are sent by the page's scripts.",
    ),
    Declaration(
        "__REDDIT__",
        _POST,
        r"/.*\.json$",
        _SCRIPT,
        "Votes and subscriptions are sent in place; without scripts the same forms have no .json.",
    ),
    Declaration(
        "",
        _GET,
        r"/route/v1/",
        _SCRIPT,
        "The map asks the routing service, then draws the route; the service shows no page.",
    ),
    Declaration(
        "__MAP__",
        _ANY,
        r"/(?:api/0\.6|geocoder|nominatim|osrm)/",
        _SCRIPT,
        "Search results, outlines and routes are fetched into the page that is shown.",
    ),
    Declaration(
        "__MAP__",
        _GET,
        r"/(?:search|query|export|directions|history|(?:node|way|relation|note|changeset)/[^/]+)",
        _VIEW,
        "Links within the map are followed by a script that fetches the side bar and sets the "
        "address; the same addresses are documents when they are opened as such.",
        carrier="xhr",
    ),
)


@lru_cache(maxsize=16_384)
def declared(method: str, url: str) -> Declaration | None:
    """Return the declaration of an address that begins with its site's placeholder, or of a pattern
    of addresses; None for an address that is not declared."""
    text = url.partition("?")[0] if not url.startswith("^") else url[1:].removesuffix("$")
    text = SLASHES.sub("/", text.replace("\\.", "."))
    return next((one for one in _of_method(method) if _covers(one, text)), None)


def _of_method(method: str) -> Iterator[Declaration]:
    return (one for one in DECLARATIONS if method.upper() in one.methods)


def _covers(declaration: Declaration, text: str) -> bool:
    if not declaration.site:
        return re.search(declaration.path, text) is not None
    rest = text.removeprefix(declaration.site)
    return rest != text and re.match(declaration.path, rest) is not None


def usual_kind(method: str, url: str) -> RequestKind:
    """Return the kind that a request to an address usually is."""
    known = declared(method, url)
    if known is not None:
        return known.kinds[0]
    return RequestKind.DOCUMENT if method.upper() == "GET" else RequestKind.FORM


def recorded_kind(event: Event) -> RequestKind | None:
    """Return the kind that a recorder saw a request to be; None where the trace does not tell.

    Told by ``Sec-Fetch-Dest``, the recorder's resource type, ``X-Requested-With``, and the text
    that a navigation asks for first.
    """
    sent = RequestKind.DOCUMENT if event.method == "GET" else RequestKind.FORM
    headers = event.headers
    if destination := headers.get("sec-fetch-dest", "").strip().lower():
        return _named(destination, sent, {"document": True, "empty": False})
    if resource := (event.entry.resource_type or "").lower():
        return _named(resource, sent, {"document": True, "xhr": False, "fetch": False})
    if headers.get("x-requested-with", "").lower() == "xmlhttprequest":
        return RequestKind.SCRIPT
    accept = headers.get("accept", "").strip().lower()
    if accept.startswith("text/html"):
        return sent
    return RequestKind.SCRIPT if "json" in accept else None


def _named(word: str, sent: RequestKind, known: dict[str, bool]) -> RequestKind | None:
    loads = known.get(word)
    return None if loads is None else sent if loads else RequestKind.SCRIPT
