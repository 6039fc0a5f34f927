"""A session without a browser: a run's pages as their model says, for scripted agents and checks.

It observes and acts as ``chromium.Session`` does, in the same syntax, with the same roles, names,
noise and operations, at some hundred times the speed. There are no pictures and no network trace,
and the text of a page is a plain list of what it says and offers: for what a judge reads, record in
Chromium.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from trajudge.environments.chromium import AgentObservation, Element
from trajudge.environments.chromium.action_syntax import LAST_WORDS, Action, BadAction, parse
from trajudge.environments.kit.html import FEW
from trajudge.environments.kit.layout import address
from trajudge.environments.kit.reading import blocks, texts
from trajudge.environments.kit.theme import name_of
from trajudge.environments.model.page import Chart, Field, Form, ItemList, Link, Notice, Page
from trajudge.environments.model.site import Redirect, refused
from trajudge.environments.model.spec import Rejected
from trajudge.environments.serving.noise import overlays, stumble
from trajudge.environments.serving.run import ServedRun
from trajudge.trajectories.model import Observation

_ROLES = {
    "text": "textbox", "search": "searchbox", "number": "spinbutton", "date": "Date",
    "long": "textbox", "choice": "combobox", "tick": "checkbox",
}  # fmt: skip
_IDLE = (*LAST_WORDS, "noop", "scroll", "hover", "press")


class _Refused(Exception):
    """The action was not done; the message is one line."""


class _Control(NamedTuple):
    """A control of the page that is open: a link, a field (or one option of it, ``value``) or the
    button of a form, or the kind of noise that it closes."""

    element: Element
    on: Link | Field | Form | str
    form: Form | None = None
    value: str = ""


class OfflineSession:
    """One run's page. ``observe`` and ``act`` are those of ``chromium.Session``."""

    def __init__(self, run: ServedRun) -> None:
        self.run = run
        self._history: list[tuple[str, Mapping[str, str]]] = []
        self._controls: dict[str, _Control] = {}
        self._entered: dict[tuple[int, str], str] = {}
        self._open(run.site.ui.start, {})

    def observe(self, error: str | None = None) -> AgentObservation:
        """Return the page as it is now; ``error`` is what the last action failed with."""
        listed = list(self._listed())
        # A page that failed to change keeps its bids, as in a browser.
        self._controls = {control.element.bid: control for control in listed}
        elements = [control.element for control in listed]
        title = name_of(self._page.title, self.run.words)
        url = self.run.origin + (self._posted or address(*self._place))
        observation = Observation(url=url, axtree=self._text(title, elements), page_error=error)
        return AgentObservation(
            observation, elements, f"{title} - {self.run.app.title}", None, (url,)
        )

    def act(self, text: str) -> str | None:
        """Do an action. Returns the error that it failed with, one line."""
        try:
            self._do(parse(text))
        except BadAction as error:
            return f"BadAction: {error}"
        except _Refused as error:
            return f"Error: {error}"
        return None

    def har(self) -> dict[str, Any]:
        """Return no trace: nothing goes over a network."""
        return {}

    # --- what is seen ---

    def _listed(self) -> Iterator[_Control]:
        bids = iter(map(str, range(10_000)))
        covered = False
        for overlay in self._noise:
            covered = covered or overlay.modal
            name = name_of(overlay.dismiss, self.run.words)
            element = Element(next(bids), "button", name, in_dialog=overlay.modal)
            yield _Control(element, overlay.action.removeprefix("/dismiss/"))
        self._covered = covered
        for link in self.run.site.navigation():
            yield self._link(link, next(bids))
        for block in blocks(self._page.blocks):
            if isinstance(block, Link):
                yield self._link(block, next(bids))
            elif isinstance(block, Form):
                yield from self._form(block, bids)
            elif isinstance(block, ItemList):
                for row in block.rows:
                    if isinstance(row.link, Link):
                        yield self._link(row.link, next(bids))
                    for form in row.forms:
                        yield from self._form(form, bids)

    def _link(self, link: Link, bid: str) -> _Control:
        return _Control(Element(bid, "link", name_of(link.label, self.run.words)), link)

    def _form(self, form: Form, bids: Iterator[str]) -> Iterator[_Control]:
        words = self.run.words
        for entry in form.fields:
            value = self._entered.get((id(form), entry.name), entry.value)
            name = name_of(entry.label, words)
            few = entry.input == "choice" and 0 < len(entry.options) <= FEW
            if few and self.run.theme.choice == "radio":
                for option in entry.options:
                    ticked = str(option.value == value).lower()
                    label = name_of(option.label, words)
                    radio = Element(next(bids), "radio", label, ticked, group=name)
                    yield _Control(radio, entry, form, option.value)
            else:
                shown = ("true" if value == "on" else "false") if entry.input == "tick" else value
                element = Element(next(bids), _ROLES[entry.input], name, shown)
                yield _Control(element, entry, form)
        yield _Control(Element(next(bids), "button", name_of(form.submit, words)), form)

    def _text(self, title: str, elements: list[Element]) -> str:
        """Return what the page says and offers, one thing a line."""
        shown = list(blocks(self._page.blocks))
        notices = [block for block in shown if isinstance(block, Notice)]
        notes = [
            f"\t{'alert' if one.error else 'status'} {name_of(one.text, self.run.words)!r}"
            for one in notices
        ]
        lines = [f"\tStaticText {text!r}" for text in texts(self._page) if text]
        drawn = [f"\timage {block.title!r}" for block in shown if isinstance(block, Chart)]
        offered = [f"\t[{e.bid}] {e.role} {e.name!r} value={e.value!r}" for e in elements]
        return "\n".join([f"RootWebArea {title!r}", *notes, *lines, *drawn, *offered])

    # --- what is done ---

    def _do(self, action: Action) -> None:
        name, arguments = action
        if name in _IDLE:
            return
        if name == "goto":
            self._goto(str(arguments[0]))
        elif name == "go_back":
            self._back()
        elif name == "go_forward":
            raise _Refused("there is no page to go forward to")
        else:
            bid = str(arguments[0])
            control = self._controls.get(bid)
            if control is None:
                raise _Refused(f"no element with bid {bid[:50]!r}")
            if self._covered and not isinstance(control.on, str):
                raise _Refused('<div class="dialog" ...> intercepts pointer events')
            self._on_control(control, name, str(arguments[-1]))

    def _goto(self, url: str) -> None:
        parts = urlsplit(url)
        if f"{parts.scheme}://{parts.netloc}" != self.run.origin:
            raise _Refused(f"{url[:200]!r} is outside of {self.run.origin}")
        name = parts.path.strip("/") or "home"
        if name.startswith("do/"):  # nothing is done by an address: back to the page
            self._open(*self._place)
        else:
            self._open(name, dict(parse_qsl(parts.query)))

    def _back(self) -> None:
        if self._posted:
            self._open(*self._place)
            return
        if len(self._history) < 2:
            raise _Refused("there is no page to go back to")
        self._history.pop()
        self._open(*self._history.pop())

    def _on_control(self, control: _Control, name: str, text: str) -> None:
        on, form = control.on, control.form
        if isinstance(on, str):
            self.run.dismissed.add(on)
            self._open(*self._place)
        elif name == "click" and isinstance(on, Link):
            self._open(on.page, on.args)
        elif name == "click" and isinstance(on, Form):
            self._send(on)
        elif isinstance(on, Field) and form is not None:
            self._enter(control, on, form, name=name, text=text)

    def _enter(self, control: _Control, on: Field, form: Form, *, name: str, text: str) -> None:
        key = (id(form), on.name)
        role = control.element.role
        if role == "radio":
            self._entered[key] = control.value
        elif role == "checkbox":
            self._entered[key] = "" if control.element.value == "true" else "on"
        elif name == "select_option" and role == "combobox":
            chosen = [o for o in on.options if name_of(o.label, self.run.words) == text]
            if not chosen:
                raise _Refused(f"element {control.element.bid!r} has no option {text[:100]!r}")
            self._entered[key] = chosen[0].value
        elif name == "fill" and role != "combobox":
            self._entered[key] = text
        elif name != "click":
            raise _Refused(f"element {control.element.bid!r} is no control for {name}")

    def _send(self, form: Form) -> None:
        sent = dict(form.hidden)
        for entry in form.fields:
            value = self._entered.get((id(form), entry.name), entry.value)
            if entry.input != "tick" or value == "on":
                sent[entry.name] = value
        if form.page:
            self._open(form.page, sent)
            return
        if message := stumble(self.run.noise, self.run.documents, self.run.dismissed):
            self._reply(form, refused(self.run.site.get(*self._place), Rejected(message)))
            return
        outcome = self.run.site.post(form.operation, sent)
        if isinstance(outcome, Redirect):
            self._open(outcome.page, outcome.args)
        elif isinstance(outcome, Rejected):
            self._reply(form, refused(self.run.site.get(*self._place), outcome))
        else:
            self._reply(form, outcome)

    @property
    def _place(self) -> tuple[str, Mapping[str, str]]:
        return self._history[-1]

    def _open(self, name: str, args: Mapping[str, str]) -> None:
        if not self._history or self._place != (name, args):
            self._history.append((name, args))
        self._show(self.run.site.get(name, args))
        self._noise = overlays(self.run.noise, self.run.documents, self.run.dismissed)

    def _reply(self, form: Form, page: Page) -> None:
        """Show a page in reply to a form: it stands at the address of the operation."""
        self._show(page)
        self._posted = f"/do/{form.operation}"

    def _show(self, page: Page) -> None:
        self._page, self._posted = page, ""
        self._entered = {}
        self._noise = ()
        self._covered = False
        self.run.documents += 1
