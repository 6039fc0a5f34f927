"""What the server saw of a run: its network trace, and the steps of an agent whose browser is not
ours.

The steps are read back from the requests: a request for a link's address is a click on that link, a
submitted form is its controls filled in and a click on its button, anything else a ``goto``. Trees
are those that the text engine writes of the same HTML.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from trajudge.environments.chromium.action_syntax import write as write_action
from trajudge.environments.kit.html import NONCE
from trajudge.environments.serving.pages import NAVIGATION, PageRequest, PageResponse
from trajudge.environments.text.document import TICKED, HtmlElement, PageDocument
from trajudge.environments.text.tree import write as write_tree
from trajudge.environments.verify import ExecutedAction, Viewpoint
from trajudge.prompts.render import sendable
from trajudge.rules.har import RecordedRequest, RecordedResponse, har_document, har_entry
from trajudge.trajectories.model import Observation, Step

_HEADERS = (*NAVIGATION, "Origin", "Content-Type")


@dataclass(frozen=True, slots=True)
class ServedExchange:
    """A request to a run and what it was answered. ``before`` and ``after`` are versions of the
    run's state, ``started`` is ISO 8601."""

    request: PageRequest
    url: str
    response: PageResponse
    before: str
    after: str
    started: str
    milliseconds: float

    @property
    def is_page(self) -> bool:
        """Whether it was for a page of its own, not for a file of one, or by a script in one."""
        read_by = self.request.headers.get("Sec-Fetch-Mode", "navigate")
        shown = self.response.content_type in ("text/html", "text/plain")
        return read_by == "navigate" and shown and self.response.status != 204


def network_trace(exchanges: Sequence[ServedExchange]) -> dict[str, Any]:
    """Return the requests of a run as a HAR 1.2 document; bodies of responses are left out."""
    return har_document([har_entry(_recorded(each)) for each in exchanges], "")


def _recorded(exchange: ServedExchange) -> RecordedRequest:
    request, response = exchange.request, exchange.response
    received = {"Content-Type": response.content_type}
    if response.location:
        received["Location"] = response.location
    return RecordedRequest(
        method=request.method,
        url=exchange.url,
        headers={name: request.headers[name] for name in _HEADERS if name in request.headers},
        body=urlencode(request.form) if request.method == "POST" else None,
        response=RecordedResponse(
            status=response.status,
            headers=received,
            mime_type=response.content_type,
            size=len(response.body),
        ),
        started=exchange.started,
        total=exchange.milliseconds,
        wait=exchange.milliseconds,
        resource_type="Document" if exchange.is_page else "Other",
    )


class ObservedRun:
    """The steps of a run as its exchanges show them. ``here`` is what the page shows at the end."""

    def __init__(self, start_url: str, exchanges: Sequence[ServedExchange]) -> None:
        self.steps: list[Step] = []
        self.actions: list[ExecutedAction] = []
        self._url, self._document = start_url, PageDocument("")
        self._viewpoint = Viewpoint()
        location, opened = "", False
        for each in exchanges:
            if not each.is_page:
                continue
            if opened and not (location and each.url.endswith(location)):
                self._act(each)
            location = each.response.location
            if not location:
                self._url, opened = each.url, True
                self._document = _document(each.response)

    @property
    def here(self) -> Observation:
        """The page as the agent sees it now."""
        full = pruned = None
        with suppress(ValueError):  # a tag that the text engine does not know
            tree = write_tree(self._document)
            full, pruned = tree.full, tree.pruned
        return Observation(url=self._url, axtree=full, axtree_pruned=pruned)

    def add(self, action: str, before: str, after: str) -> None:
        """Add an action on the page that is open."""
        seen, action = self.here, sendable(action)
        view = self._viewpoint.act(seen, action)
        self.steps.append(Step(index=len(self.steps), observation=seen, action=action))
        self.actions.append(ExecutedAction(view, action, before, after))

    def _act(self, exchange: ServedExchange) -> None:
        """Add what led to a request: changes of controls, and what sent it."""
        for element in self._document.elements():
            if element.tag == "a" and _leads_to(element, exchange):
                self.add(write_action("click", element.bid), exchange.before, exchange.after)
                return
            if element.tag == "form" and _sends(element, exchange):
                for change in _filled(self._document, element, _fields(exchange)):
                    self.add(change, exchange.before, exchange.before)
                if button := _pressed(element, _fields(exchange)):
                    action = write_action("click", button.bid)
                    self.add(action, exchange.before, exchange.after)
                    return
        self.add(write_action("goto", exchange.url), exchange.before, exchange.after)


def _document(response: PageResponse) -> PageDocument:
    body = str(response.body)
    return PageDocument(body if response.content_type == "text/html" else f"<p>{escape(body)}</p>")


def _fields(exchange: ServedExchange) -> Mapping[str, str]:
    request = exchange.request
    return dict(request.form if request.method == "POST" else request.query)


def _leads_to(link: HtmlElement, exchange: ServedExchange) -> bool:
    request, parts = exchange.request, urlsplit(link.attributes.get("href", ""))
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return (request.method, request.path, dict(request.query)) == ("GET", parts.path, query)


def _sends(form: HtmlElement, exchange: ServedExchange) -> bool:
    method = form.attributes.get("method", "get").upper()
    path = urlsplit(form.attributes.get("action", "")).path
    if (method, path) != (exchange.request.method, exchange.request.path):
        return False
    sent = _fields(exchange)
    hidden = {e.attributes.get("name"): e.value for e in form.elements() if e.kind == "hidden"}
    return hidden.get(NONCE) == sent.get(NONCE)


def _filled(document: PageDocument, form: HtmlElement, sent: Mapping[str, str]) -> Iterator[str]:
    """Yield the actions that make the controls of a form hold what was sent; each is carried out
    when the next one is asked for."""
    for element in form.elements():
        name = element.attributes.get("name", "")
        value = sent.get(name, "")
        if element.tag == "select":
            option = next((one for one in element.options if one.sent == value), None)
            if option is not None and option != element.chosen:
                yield write_action("select_option", element.bid, option.label)
                element.choose(option)
        elif element.kind in TICKED:
            ticked = name in sent
            if element.kind == "radio":
                ticked = ticked and element.attributes.get("value", "on") == value
            if ticked != element.checked and (ticked or element.kind == "checkbox"):
                yield write_action("click", element.bid)
                for radio in document.radios(element) if element.kind == "radio" else ():
                    radio.checked = False
                element.checked = ticked
                document.focus(element)
        elif _is_typed(element) and element.value != value:
            yield write_action("fill", element.bid, value)
            element.value = value
            document.focus(element)


def _is_typed(element: HtmlElement) -> bool:
    return element.kind not in ("", "hidden") or element.tag == "textarea"


def _pressed(form: HtmlElement, sent: Mapping[str, str]) -> HtmlElement | None:
    """Return the button that sent a form: the one that is part of what was sent, else the first."""
    buttons = [element for element in form.elements() if element.tag == "button"]
    named = [
        button
        for button in buttons
        if sent.get(button.attributes.get("name", "")) == button.attributes.get("value", "")
    ]
    return next(iter(named or buttons), None)
