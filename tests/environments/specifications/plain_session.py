"""A session without a browser, for many runs: HTTP to the same server, HAR as a browser writes it.

Scripted agents find controls by role and name, so a reading of the HTML is all that they need. A
run costs a hundredth of one in Chromium; what it cannot show (layout, pictures, scripts) no
scripted agent looks at.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPMessage
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.environments.specifications.plain_pages import PlainControl, PlainForm, PlainPage
from trajudge.environments.chromium import AgentObservation, Element
from trajudge.environments.chromium.action_syntax import Action, BadAction, parse
from trajudge.rules.har import RecordedRequest, RecordedResponse, har_document, har_entry
from trajudge.trajectories.model import Observation

_FORM = "application/x-www-form-urlencoded"
_HEADERS = {
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Sec-Fetch-Dest": "document",
    "Sec-Fetch-Mode": "navigate",
    "Sec-Fetch-User": "?1",
    "Upgrade-Insecure-Requests": "1",
}
_REDIRECTS = 5


class _Refused(Exception):
    """The action cannot be done; the text says why."""


class PlainSession:
    """One visitor of one run, whose ``origin`` is served at a loopback ``port``."""

    def __init__(self, port: int, url: str) -> None:
        parts = urlsplit(url)
        self._port, self._host, self.url = port, parts.netloc, ""
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._entries: list[dict[str, Any]] = []
        self._history: list[str] = []
        self._page = PlainPage("")
        self._load("GET", url)

    def har(self) -> dict[str, Any]:
        """Return the run's requests as a HAR 1.2 document."""
        return har_document(self._entries, "none")

    def observe(self, error: str | None = None) -> AgentObservation:
        """Return the page as it is now."""
        reach = [one for one in self._page.controls if not one.inert]
        numbers = {id(one): str(at) for at, one in enumerate(self._page.controls)}
        elements = [
            Element(numbers[id(one)], one.role, one.name, one.value or "", one.in_dialog, one.group)
            for one in reach
        ]
        lines = [f"[{one.bid}] {one.role} {one.name!r}" for one in elements]
        tree = "\n".join(["RootWebArea", *(f"\t{line}" for line in [*self._page.lines, *lines])])
        seen = Observation(url=self.url, axtree=tree, axtree_pruned=tree, page_error=error)
        return AgentObservation(seen, elements, self._page.title, None, (self.url,))

    def act(self, text: str) -> str | None:
        """Do an action; returns the error that it failed with."""
        try:
            self._do(parse(text))
        except (BadAction, _Refused) as error:
            return f"Error: {error}"
        return None

    def _do(self, action: Action) -> None:
        name, arguments = action
        if name == "goto":
            self._goto(str(arguments[0]))
        elif name == "go_back" and len(self._history) > 1:
            self._history.pop()
            self._load("GET", self._history.pop())
        elif name in ("click", "dblclick", "fill", "select_option", "press", "hover"):
            control = self._control(str(arguments[0]))
            if name in ("click", "dblclick"):
                self._click(control)
            elif name == "fill":
                self._fill(control, str(arguments[1]))
            elif name == "select_option":
                self._select(control, arguments[1])

    def _control(self, bid: str) -> PlainControl:
        at = int(bid) if bid.isdecimal() else -1
        if not 0 <= at < len(self._page.controls):
            raise _Refused(f"no element has the bid {bid!r}")
        if self._page.controls[at].inert:
            raise _Refused(f"element {bid} is covered")
        return self._page.controls[at]

    def _goto(self, url: str) -> None:
        if not url.startswith(f"{self._origin}/"):
            raise _Refused(f"{url[:200]!r} is outside of {self._origin}")
        self._load("GET", url)

    def _click(self, control: PlainControl) -> None:
        if control.role == "link":
            self._load("GET", self._origin + control.href)
        elif control.role == "checkbox":
            control.value = control.own if control.value is None else None
        elif control.role == "radio" and control.form is not None:
            for one in control.form.fields:
                if one.role == "radio" and one.key == control.key:
                    one.value = None
            control.value = control.own
        elif control.role == "button" and control.form is not None:
            self._submit(control.form)

    def _fill(self, control: PlainControl, text: str) -> None:
        if control.role not in ("textbox", "searchbox", "spinbutton", "Date"):
            raise _Refused("the element takes no text")
        control.value = text

    def _select(self, control: PlainControl, wanted: Any) -> None:
        choice = wanted[0] if isinstance(wanted, list) and wanted else wanted
        values = [value for value, label in control.options if choice in (label, value)]
        if not values:
            raise _Refused(f"no option {str(choice)[:80]!r}")
        control.value = values[0]

    def _submit(self, form: PlainForm) -> None:
        url = self._origin + form.action
        if form.method == "get":
            self._load("GET", f"{url}?{urlencode(form.sent)}")
        else:
            self._load("POST", url, urlencode(form.sent))

    def _load(self, method: str, url: str, body: str = "") -> None:
        for _ in range(_REDIRECTS):
            status, headers, content = self._exchange(method, url, body)
            if status != 303:
                break
            method, url, body = "GET", self._origin + str(headers["Location"]), ""
        self.url = url
        self._history.append(url)
        self._page = PlainPage(content)

    def _exchange(self, method: str, url: str, body: str) -> tuple[int, HTTPMessage, str]:
        headers = {**_HEADERS, "Host": self._host}
        if self.url:
            headers["Sec-Fetch-Site"] = "same-origin"
        if method == "POST":
            headers["Content-Type"] = _FORM
        connection = HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            target = url.removeprefix(self._origin)
            connection.request(method, target, body.encode() or None, headers)
            reply = connection.getresponse()
            content = reply.read().decode()
        finally:
            connection.close()
        self._entries.append(_entry(method, url, headers, body, reply.status, reply.headers))
        return reply.status, reply.headers, content


def _entry(
    method: str, url: str, headers: dict[str, str], body: str, status: int, answered: HTTPMessage
) -> dict[str, Any]:
    response = RecordedResponse(
        status=status, headers=dict(answered.items()), mime_type=answered.get_content_type()
    )
    recorded = RecordedRequest(
        method=method,
        url=url,
        headers=headers,
        body=body if method == "POST" else None,
        response=response,
        started=datetime.now(UTC).isoformat(),
        resource_type="document",
    )
    return har_entry(recorded)


@contextmanager
def open_plain_session(port: int, url: str) -> Iterator[PlainSession]:
    """Open a session at ``url``."""
    yield PlainSession(port, url)
