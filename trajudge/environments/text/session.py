"""A run's view of its site without a browser: observe, act, and the trace of its requests.

The pages come from the run itself, over the same code as a browser's requests
(``serving.pages.answer``), with the headers that a browser sends. What an action does is what HTML
says of forms, links and controls (HTML Living Standard, sections 4.10.21 and 7.4). There is no
layout: nothing has to be scrolled to, and only an open dialog covers what is under it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import (
    parse_qsl,
    quote,
    quote_plus,
    urldefrag,
    urljoin,
    urlsplit,
    urlunsplit,
)

from trajudge.environments.chromium.action_syntax import (
    LAST_WORDS,
    Action,
    Argument,
    BadAction,
    parse,
)
from trajudge.environments.chromium.actions import (
    LAST_TAB,
    MAX_TABS,
    TOO_MANY_TABS,
    TYPED,
    ActionRefused,
    check_arguments,
    check_fill,
    check_window,
    checked_address,
    click_options,
    covered_by,
    file_names,
    no_file,
    no_tab,
    not_shown,
)
from trajudge.environments.chromium.observation import PageDetails, Visible
from trajudge.environments.chromium.session import BLANK, AgentObservation
from trajudge.environments.serving.pages import NAVIGATION, PageRequest, PageResponse, answer
from trajudge.environments.serving.run import ServedRun
from trajudge.environments.text.document import TICKED, HtmlElement, PageDocument
from trajudge.environments.text.tree import write, write_details
from trajudge.rules.har import RecordedRequest, RecordedResponse, har_document, har_entry
from trajudge.trajectories.model import Observation
from trajudge.util.terminal import one_line

MOST_REDIRECTS = 20
FORM = "application/x-www-form-urlencoded"
_BREAKS = re.compile("\r\n|\r|\n")
_BEGAN = "2026-03-02T10:00:00+00:00"
_ACTIVE = frozenset({"a", "button", "input", "label", "select", "summary"})
_IDLE = (*LAST_WORDS, "noop", "scroll", "scroll_at")
_PLAIN = '<!doctype html><html><body><pre style="white-space: pre-wrap">{}</pre></body></html>'


@dataclass(slots=True)
class _Entry:
    """An entry of the history: its address, what was posted to it, if anything was, and the number
    of its document: entries that differ in their fragments alone share one."""

    url: str
    form: Mapping[str, str] | None = None
    number: int = 0


class _TextTab:
    """A tab: its history, and the page that is open in it."""

    def __init__(self, *history: _Entry) -> None:
        self.history = [*history]
        self.index = len(history) - 1
        self.document = PageDocument("")

    @property
    def url(self) -> str:
        return self.history[self.index].url


class TextSession:
    """One run's pages. ``observe``, ``details``, ``act`` and ``har`` are those of
    ``chromium.Session``; what is ``visible`` cannot be the window, for there is no layout. Of
    widgets it shows the plain forms; ``widgets`` says which there are on the page."""

    def __init__(self, run: ServedRun, visible: Visible = "rendered") -> None:
        self.run = run
        run.script = False
        self._visible: Visible = visible
        self._tab = _TextTab()
        self._tabs = [self._tab]
        self._trace: list[RecordedRequest] = []
        self._loaded = 0
        self._navigate(_Entry(run.start_url))

    @property
    def url(self) -> str:
        """The address of the page that is open."""
        return self._tab.url

    def observe(self, error: str | None = None) -> AgentObservation:
        """Return the page as it is now; ``error`` is what the last action failed with."""
        document = self._tab.document
        tree = write(document, visible=self._visible != "off")
        observation = Observation(
            url=self.url, axtree=tree.full, axtree_pruned=tree.pruned, page_error=error
        )
        return AgentObservation(
            observation,
            tree.elements,
            document.title,
            tree.focused,
            tuple(tab.url for tab in self._tabs),
            tuple(tab.document.title for tab in self._tabs),
            self._tabs.index(self._tab),
        )

    @property
    def widgets(self) -> tuple[str, ...]:
        """The widgets of the page that is open, which a browser with scripts shows otherwise."""
        marked = (e.attributes.get("data-widget") for e in self._tab.document.elements())
        return tuple(sorted({name for name in marked if name}))

    def details(self) -> PageDetails:
        """Return what BrowserGym's observation holds beyond the tree; boxes there are none."""
        return write_details(self._tab.document, visible=self._visible != "off")

    def act(self, text: str) -> str | None:
        """Do an action. Returns the error that it failed with, one line; the page is then usable
        all the same."""
        try:
            self._do(parse(text))
        except BadAction as error:
            return one_line(f"BadAction: {error}")
        except ActionRefused as refused:
            return one_line(f"Error: {refused}")
        return None

    def har(self) -> dict[str, Any]:
        """Return the run's requests so far as a HAR 1.2 document; they took no time."""
        return har_document([har_entry(request) for request in self._trace], "")

    # --- addresses ---

    def _follow(self, url: str) -> None:
        """Go to an address; that of the page that is open is loaded again in its place, a place in
        it is not loaded."""
        here = self._tab.history[self._tab.index]
        if url != here.url and "#" in url and urldefrag(url).url == urldefrag(here.url).url:
            self._add(_Entry(url, here.form, here.number))
        elif url == here.url:
            self._tab.history[self._tab.index] = self._load(_Entry(url))
        else:
            self._navigate(_Entry(url))

    def _navigate(self, entry: _Entry) -> None:
        """Load an address and add it to the history."""
        self._add(self._load(entry))

    def _add(self, arrived: _Entry) -> None:
        tab = self._tab
        del tab.history[tab.index + 1 :]
        tab.history.append(arrived)
        tab.index += 1

    def _load(self, entry: _Entry) -> _Entry:
        """Show what an address answers; returns the entry that redirects led to."""
        for _ in range(MOST_REDIRECTS):
            response = self._ask(entry)
            if not response.location:
                break
            entry = _Entry(urljoin(entry.url, response.location))
        body = response.body if isinstance(response.body, str) else ""
        self._tab.document = PageDocument(
            body if response.content_type == "text/html" else _PLAIN.format(escape(body))
        )
        self._loaded += 1
        entry.number = self._loaded
        return entry

    def _ask(self, entry: _Entry) -> PageResponse:
        method = "GET" if entry.form is None else "POST"
        parts = urlsplit(entry.url)
        request = PageRequest(
            method,
            parts.path or "/",
            dict(parse_qsl(parts.query, keep_blank_values=True)),
            entry.form or {},
            NAVIGATION,
        )
        response = answer(self.run, request)
        self._trace.append(_recorded(method, entry, response))
        return response

    def _through_history(self, by: int) -> None:
        tab = self._tab
        index = tab.index + by
        if not 0 <= index < len(tab.history) or tab.history[index].url == BLANK:
            raise ActionRefused(f"there is no page to go {'back' if by < 0 else 'forward'} to")
        same = tab.history[index].number == tab.history[tab.index].number
        tab.index = index
        if not same:
            tab.history[index] = self._load(_Entry(tab.history[index].url))

    # --- actions ---

    def _do(self, action: Action) -> None:
        check_arguments(action)
        name, arguments = action
        if name == "goto":
            self._follow(_normal(checked_address(str(arguments[0]), self.run.origin)))
        elif name in ("go_back", "go_forward"):
            self._through_history(-1 if name == "go_back" else 1)
        elif name in ("new_tab", "tab_close", "tab_focus"):
            self._on_tabs(name, arguments)
        elif name.startswith("keyboard_"):
            self._by_keyboard(name, str(arguments[0]))
        elif name.startswith("mouse_"):
            raise ActionRefused(f"{name} needs pixels, which the text engine has not: name a bid")
        elif name not in _IDLE:
            bid, *others = arguments
            self._on(self._element(str(bid)), name, others)

    def _element(self, bid: str) -> HtmlElement:
        element = self._tab.document.element(bid)
        if element is None:
            raise ActionRefused(f"no element with bid {bid[:50]!r}")
        return element

    def _on_tabs(self, name: str, arguments: tuple[Argument, ...]) -> None:
        """Open, close or choose a tab."""
        if name == "new_tab":
            if len(self._tabs) == MAX_TABS:
                raise ActionRefused(TOO_MANY_TABS)
            self._tab = _TextTab(_Entry(BLANK))
            self._tabs.append(self._tab)
        elif name == "tab_focus":
            [index] = arguments
            if not isinstance(index, int) or not 0 <= index < len(self._tabs):
                raise no_tab(index)
            self._tab = self._tabs[index]
        elif len(self._tabs) == 1:
            raise ActionRefused(LAST_TAB)
        else:
            self._tabs.remove(self._tab)
            self._tab = self._tabs[-1]

    def _by_keyboard(self, name: str, text: str) -> None:
        """Press a key, or type a text, where the focus is."""
        if name in ("keyboard_press", "keyboard_down"):
            self._press(None, text)
        elif name != "keyboard_up":
            for character in text:
                if (target := self._tab.document.focus_at) is not None:
                    self._type(target, character)

    def _on(self, element: HtmlElement, name: str, arguments: list[Argument]) -> None:
        if "disabled" in element.attributes:
            raise ActionRefused(f"element {element.bid!r} is disabled")
        match name:
            case "click" | "dblclick" | "hover" | "drag_and_drop":
                self._by_mouse(element, name, arguments)
            case "focus":
                if element.focusable:
                    self._tab.document.focus(element)
            case "fill" | "clear":
                self._fill(element, str(arguments[0]) if arguments else "")
            case "select_option":
                self._select(element, arguments[0])
            case "press":
                self._press(element, str(arguments[0]))
            case "upload_file":
                if element.kind != "file":
                    raise no_file(element.bid)
                element.value = ", ".join(file_names(arguments[0]))

    def _by_mouse(self, element: HtmlElement, name: str, arguments: list[Argument]) -> None:
        if name == "drag_and_drop":
            other = self._element(str(arguments[0]))
            if "disabled" in other.attributes:
                raise ActionRefused(f"element {other.bid!r} is disabled")
            self._reach(element)
            self._reach(other)
            if element == other:
                self._click(element)
            else:
                self._tab.document.focus(element if element.focusable else None)
                if element.tag == "select":  # the button is pressed on it
                    self._tab.document.toggle(element)
            return
        self._reach(element)
        if name == "hover":
            return
        button, modifiers = click_options(arguments)
        if button == "middle" or modifiers:
            check_window(element.within("a") or element.within("button"), button)
        if button == "left":
            self._click(element)
            if name == "dblclick" and (element.tag == "select" or element.kind == "checkbox"):
                self._click(element)

    def _reach(self, element: HtmlElement) -> None:
        """Raise ActionRefused for what has no box, and for what a dialog covers."""
        unseen = element.tag == "option" and not _is_listed(element)
        unseen = unseen or element.kind == "hidden" or "hidden" in element.attributes
        if unseen or element.folded:
            raise not_shown(element.bid)
        if not element.inert:
            return
        for dialog in self._tab.document.elements():
            if dialog.attributes.get("aria-modal") == "true":
                role, name = dialog.attributes["role"], dialog.attributes.get("aria-label", "")
                raise ActionRefused(covered_by(role, name))

    def _click(self, element: HtmlElement) -> None:
        document = self._tab.document
        target: HtmlElement | None = element
        while target is not None and target.tag not in _ACTIVE:
            target = target.parent
        if target is not None and target.tag == "label":
            target = document.labelled(target)
        opened = document.opened
        document.focus(None)
        if target is None:
            return
        if target.tag == "a":
            if "href" in target.attributes:
                self._follow(urljoin(self.url, target.attributes["href"]))
            return
        document.focus(target)
        if target.tag == "button":
            self._submit(target)
        elif target.tag == "select":
            _point(document, target, element, opened)
        elif target.tag == "summary":
            if target.parent is not None:
                document.unfold(target.parent)
        elif target.kind == "checkbox":
            target.checked = not target.checked
        elif target.kind == "radio":
            for radio in document.radios(target):
                radio.checked = radio == target

    def _fill(self, element: HtmlElement, text: str) -> None:
        kind = "text" if element.tag == "textarea" else element.kind or None
        check_fill(element.bid, kind, text)
        element.value = text if element.tag == "textarea" else _BREAKS.sub(" ", text)
        self._tab.document.focus(element)

    def _select(self, element: HtmlElement, wanted: Argument) -> None:
        if element.tag != "select":
            raise ActionRefused(f"element {element.bid!r} has no options")
        options = element.options
        names = [str(one) for one in wanted] if isinstance(wanted, list) else [str(wanted)]
        chosen = None
        for name in names:
            fitting = (o for o in options if name in (o.label, o.sent))
            if (chosen := next(fitting, None)) is None:
                raise ActionRefused(f"element {element.bid!r} has no option {name[:100]!r}")
        if chosen is not None:
            element.choose(chosen)

    def _press(self, element: HtmlElement | None, keys: str) -> None:
        """Press a key on the element if it takes the focus, else on what has it. Keys that only
        move a caret or a page do nothing."""
        document = self._tab.document
        if element is not None and element.focusable:
            document.focus(element)
        target = document.focus_at
        if keys in ("Tab", "Shift+Tab"):
            document.move_focus(-1 if keys.startswith("Shift") else 1)
        elif target is None:
            return
        elif target.kind in TYPED or target.tag == "textarea":
            self._type(target, keys)
        elif target.tag in ("button", "summary") or target.kind in TICKED:
            if keys == "Enter" and target.kind in TICKED:
                self._submit_by_default(target)
            elif target.kind == "radio" and keys in ("ArrowDown", "ArrowUp"):
                group = document.radios(target)
                step = 1 if keys == "ArrowDown" else -1
                self._click(group[(group.index(target) + step) % len(group)])
            elif keys in ("Enter", "Space", " "):
                self._click(target)
        elif target.tag == "select":
            self._press_on_list(target, keys)
        elif keys == "Enter" and target.tag == "a":
            self._click(target)

    def _press_on_list(self, target: HtmlElement, keys: str) -> None:
        document = self._tab.document
        listed = "size" in target.attributes
        if keys in ("Enter", "Space", " ") and not listed:
            document.toggle(target)
        elif keys == "Escape":
            document.close()
        elif keys in ("ArrowDown", "ArrowUp") and document.opened is None:
            options = target.options
            before = -1 if listed and keys == "ArrowDown" else 0
            index = next((i for i, option in enumerate(options) if option.checked), before)
            index += 1 if keys == "ArrowDown" else -1
            if 0 <= index < len(options):
                target.choose(options[index])

    def _type(self, target: HtmlElement, keys: str) -> None:
        key = {"Space": " "}.get(keys, keys)
        if key == "Enter":
            if target.tag == "textarea":
                target.value += "\n"
            else:
                self._submit_by_default(target)
        elif key == "Escape" and target.kind == "search":
            target.value = ""
        elif len(key) == 1 and key.isprintable() and target.kind not in ("date", "number"):
            target.value += key

    def _submit_by_default(self, element: HtmlElement) -> None:
        form = element.within("form")
        button = form and next((e for e in form.elements() if e.tag == "button"), None)
        if button:
            self._submit(button)

    def _submit(self, button: HtmlElement) -> None:
        """Send the form of a button: successful controls in document order."""
        form = button.within("form")
        if form is None:
            return
        entries = list(_successful(form, button))
        action = urljoin(self.url, form.attributes.get("action", ""))
        if form.attributes.get("method", "get").lower() == "post":
            self._navigate(_Entry(action, dict(entries)))
        else:
            parts = urlsplit(action)._replace(query=_urlencoded(entries), fragment="")
            self._navigate(_Entry(urlunsplit(parts)))


def _point(
    document: PageDocument, choices: HtmlElement, element: HtmlElement, opened: int | None
) -> None:
    """Click on a list or one of its options; in the middle of one that shows all of them is one.
    ``opened`` is the list that was open before."""
    if "size" not in choices.attributes:
        if opened != choices.number:
            document.toggle(choices)
    elif options := choices.options:
        choices.choose(element if element.tag == "option" else options[len(options) // 2])


def _is_listed(option: HtmlElement) -> bool:
    """Tell whether an option has a place on the page: its list shows several."""
    choices = option.within("select")
    return choices is not None and "size" in choices.attributes


def _successful(form: HtmlElement, button: HtmlElement) -> Iterator[tuple[str, str]]:
    for control in form.elements():
        name = control.attributes.get("name")
        if not name or "disabled" in control.attributes:
            continue
        if control.tag == "select":
            if chosen := control.chosen:
                yield name, chosen.sent
        elif control.tag == "button":
            if control == button:
                yield name, control.attributes.get("value", "")
        elif control.kind in ("checkbox", "radio"):
            if control.checked:
                yield name, control.attributes.get("value", "on")
        elif control.tag in ("input", "textarea"):
            yield name, control.value


def _urlencoded(entries: Iterable[tuple[str, str]]) -> str:
    return "&".join(f"{_encoded(name)}={_encoded(value)}" for name, value in entries)


def _encoded(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    return quote_plus(text, safe="*").replace("~", "%7E")


def _normal(url: str) -> str:
    """Return an address as a browser spells it: a path, and no characters beyond ASCII."""
    parts = urlsplit(url)
    whole = urlsplit(urljoin("http://host", parts.path or "/")).path  # without "." and ".."
    path = quote(whole, safe="/%:@!$&'()*+,;=~|^[]")
    return urlunsplit(
        (
            parts.scheme,
            parts.netloc,
            path,
            quote(parts.query, safe="%/:@!$&()*+,;=?~|^[]{}`\\"),
            parts.fragment,
        )
    )


def _recorded(method: str, entry: _Entry, response: PageResponse) -> RecordedRequest:
    sent = None
    headers = dict(NAVIGATION)
    if entry.form is not None:
        sent = _urlencoded(entry.form.items())
        headers["Content-Type"] = FORM
    received = {"Content-Type": response.content_type}
    if response.location:
        received["Location"] = response.location
    return RecordedRequest(
        method=method,
        url=entry.url,
        headers=headers,
        body=sent,
        response=RecordedResponse(
            status=response.status,
            status_text="",
            headers=received,
            mime_type=response.content_type,
            size=len(response.body),
        ),
        started=_BEGAN,
        total=0.0,
        wait=0.0,
        resource_type="Document",
        error="",
    )
