"""A page's HTML as one tree of elements, with what its controls hold.

It is read as the kit writes it: every element is closed but those that have no content, attributes
are in double quotes, and what is no markup is escaped. Of such a text the HTML standard's parser
(section 13) builds the same tree; any other raises ValueError, so that no page is misread in
silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from html import unescape
from typing import Any

TICKED = frozenset({"checkbox", "radio"})
_SPACE = re.compile("[ \t\n\f\r]+")
_TAG = re.compile("<(/?)([a-z][a-z0-9]*)([^>]*)>([^<]*)")
_EMPTY_LINE = re.compile("(<(?:pre|textarea)[^>]*>)\n")  # which the standard leaves out
_TITLE = re.compile("<title>([^<]*)</title>")
_ATTRIBUTE = re.compile(' ([a-z][a-z-]*)(?:="([^"]*)")?')
_ATTRIBUTES = re.compile(f"(?:{_ATTRIBUTE.pattern})* ?")
_EMPTY = frozenset({"br", "hr", "img", "input"})
_INLINE = frozenset(
    {"a", "b", "br", "button", "em", "i", "img", "input", "label", "select", "small", "span"}
    | {"strong", "textarea"}
)
"""What may stand in a paragraph; anything else would end it."""

_NOTED = frozenset({"details", "input", "label", "select", "textarea"})
_LONG = 300  # characters of attributes, mostly pictures, that are not worth remembering


class OpeningTag:
    """What the elements share that begin with the same text: the tag, its attributes and ``kind``,
    the type of an input in lower case ("" for another element). ``rule`` is what the tree writes
    for them, once it was asked for."""

    __slots__ = ("attributes", "ends_paragraph", "kind", "noted", "rule", "tag")

    def __init__(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.tag, self.attributes = tag, attributes
        self.kind = attributes.get("type", "text").lower() if tag == "input" else ""
        self.noted = tag in _NOTED or "id" in attributes
        self.ends_paragraph = tag not in _INLINE
        self.rule: Any = None


class HtmlElement:
    """An element of the body. ``bid`` is its number in document order, from 0. ``value`` and
    ``checked`` are the state of a control, ``options`` those of a list."""

    children: Sequence[HtmlElement | str] = ()
    options: Sequence[HtmlElement] = ()
    value = ""
    checked = False

    def __init__(self, opening: OpeningTag, bid: str, parent: HtmlElement | None) -> None:
        self.opening, self.bid, self.parent = opening, bid, parent
        self.tag, self.kind, self.attributes = opening.tag, opening.kind, opening.attributes

    def elements(self) -> Iterator[HtmlElement]:
        """Yield the elements inside, in document order."""
        for child in self.children:
            if isinstance(child, HtmlElement):
                yield child
                yield from child.elements()

    def text(self) -> str:
        """Return the text inside, as it stands."""
        return "".join(c if isinstance(c, str) else c.text() for c in self.children)

    def within(self, tag: str) -> HtmlElement | None:
        """Return the nearest element of this tag around or at this one."""
        around: HtmlElement | None = self
        while around is not None and around.tag != tag:
            around = around.parent
        return around

    @property
    def inert(self) -> bool:
        """Whether the element is out of reach, as what lies under an open dialog."""
        around: HtmlElement | None = self
        while around is not None and "inert" not in around.attributes:
            around = around.parent
        return around is not None

    @property
    def summary(self) -> HtmlElement | None:
        """The element that opens a ``details``: its first child of that kind."""
        inside = (child for child in self.children if isinstance(child, HtmlElement))
        return next((child for child in inside if child.tag == "summary"), None)

    @property
    def folded(self) -> bool:
        """Whether the element lies in a ``details`` that is closed."""
        inner, around = self, self.parent
        while around is not None:
            closed = around.tag == "details" and "open" not in around.attributes
            if closed and around.summary is not inner:
                return True
            inner, around = around, around.parent
        return False

    @property
    def focusable(self) -> bool:
        """Whether the element takes the focus."""
        if self.tag == "a":
            return "href" in self.attributes
        if self.tag == "summary":
            shown = "hidden" not in self.attributes
            return shown and self.parent is not None and self.parent.summary is self
        control = self.tag in ("button", "select", "textarea") or self.kind not in ("", "hidden")
        return control and "disabled" not in self.attributes

    @property
    def chosen(self) -> HtmlElement | None:
        """The option of a list that is chosen, if it has any."""
        return next((option for option in self.options if option.checked), None)

    def choose(self, option: HtmlElement) -> None:
        """Choose an option of a list in place of the one that was."""
        for other in self.options:
            other.checked = other is option

    @property
    def label(self) -> str:
        """What an option shows."""
        return squashed(self.attributes.get("label") or self.text())

    @property
    def sent(self) -> str:
        """What a form sends for an option."""
        return self.attributes.get("value", self.text())


class PageDocument:
    """A page: its title, its body, and the elements of the body by ``bid``."""

    def __init__(self, html: str) -> None:
        head, _, rest = html.partition("<body")
        opening, _, content = rest.partition(">") if rest else ("", "", head)
        title = _TITLE.search(head)
        self.title = squashed(unescape(title[1])) if title else ""
        body = _read_opening("body", opening)
        self.classes = frozenset(body.attributes.get("class", "").split())
        self.body = HtmlElement(body, "", None)
        self.by_bid: Mapping[str, HtmlElement] = {}
        self.by_id: dict[str, HtmlElement] = {}
        self.labels: dict[str, HtmlElement] = {}  # the first one of a control, by the control's id
        self.controls: list[HtmlElement] = []
        self.details: list[HtmlElement] = []
        self.focused: HtmlElement | None = None
        self.left = False  # the focus went on to the browser's own controls
        self.opened: HtmlElement | None = None  # the list whose options are open
        self.written: Any = None  # what the tree's writer remembers of it
        self._read(content.partition("</body>")[0])

    def focus(self, element: HtmlElement | None) -> None:
        """Give the focus to an element, or to none."""
        self.focused, self.left = element, False
        if self.opened is not element:
            self.opened = None

    def toggle(self, choices: HtmlElement) -> None:
        """Open the options of a list, or close them."""
        self.opened = None if self.opened is choices else choices

    def unfold(self, details: HtmlElement) -> None:
        """Open a ``details``, or close it; of those that share a name one is open at most."""
        attributes = details.attributes
        if "open" in attributes:
            details.attributes = _without_open(attributes)
            return
        if name := attributes.get("name"):
            for other in self.details:
                if other.attributes.get("name") == name:
                    other.attributes = _without_open(other.attributes)
        details.attributes = {**attributes, "open": ""}

    def radios(self, radio: HtmlElement) -> list[HtmlElement]:
        """Return the radio buttons of the group that one belongs to."""
        form, name = radio.within("form"), radio.attributes.get("name")
        return [
            other
            for other in self.by_bid.values()
            if other.kind == "radio"
            and other.attributes.get("name") == name
            and other.within("form") is form
        ]

    def move_focus(self, by: int) -> None:
        """Give the focus to the next element (``by`` 1) or to the one before (-1), as the tabulator
        key does: of a group of radio buttons one takes it, after the last element nothing."""
        stops = []
        for element in self.by_bid.values():
            if element.focusable and not element.inert and not element.folded:
                group = self.radios(element) if element.kind == "radio" else [element]
                chosen = next((radio for radio in group if radio.checked), None)
                if element in (self.focused, chosen or group[0 if by > 0 else -1]):
                    stops.append(element)
        if self.focused in stops:
            index = stops.index(self.focused) + by
        else:
            index = 0 if by > 0 else len(stops) - 1
        self.focus(stops[index] if 0 <= index < len(stops) else None)
        self.left = self.focused is None

    def _read(self, html: str) -> None:
        into = self.body
        inside: list[HtmlElement | str] = []
        into.children = inside
        around = [inside]  # the children of what is open, from the outside to the inside
        elements: list[HtmlElement] = []
        if text := html.partition("<")[0]:
            inside.append(_plain(text))
        for closing, tag, raw, text in _TAG.findall(_EMPTY_LINE.sub(r"\1", html)):
            if not closing:
                opening = _opening(tag, raw) if len(raw) < _LONG else _read_opening(tag, raw)
                if opening.ends_paragraph and into.tag == "p":
                    raise ValueError(f"<{tag}> in a paragraph: the kit writes no such page")
                if tag == "summary" and "unfolds" in into.attributes.get("class", ""):
                    opening = OpeningTag(tag, {**opening.attributes, "hidden": ""})
                element = HtmlElement(opening, str(len(elements)), into)
                elements.append(element)
                inside.append(element)
                if opening.noted:
                    self._note(element)
                if tag not in _EMPTY:
                    into = element
                    into.children = inside = []
                    around.append(inside)
            elif into.tag != tag or into.parent is None:
                raise ValueError(f"</{tag}> closes <{into.tag}>: the kit writes no such page")
            else:
                _settle(into)
                into = into.parent
                around.pop()
                inside = around[-1]
            if text:
                inside.append(_plain(text) if "&" in text or "\r" in text else text)
        if into is not self.body:
            raise ValueError(f"<{into.tag}> is not closed: the kit writes no such page")
        self.by_bid = {element.bid: element for element in elements}

    def _note(self, element: HtmlElement) -> None:
        """Keep an element with an id, a label, or something that holds a state."""
        attributes, tag = element.attributes, element.tag
        if name := attributes.get("id"):
            self.by_id.setdefault(name, element)
        if tag == "label":
            if name := attributes.get("for"):
                self.labels.setdefault(name, element)
        elif tag == "details":
            self.details.append(element)
        elif tag == "input":
            element.value, element.checked = attributes.get("value", ""), "checked" in attributes
        if tag in ("input", "select", "textarea"):
            self.controls.append(element)


def _read_opening(tag: str, raw: str) -> OpeningTag:
    """Return an opening tag; ``raw`` is its text after the name. Raises ValueError for what the kit
    does not write."""
    if _ATTRIBUTES.fullmatch(raw) is None:
        raise ValueError(f"<{tag}{raw[:200]}>: the kit writes no such tag")
    attributes: dict[str, str] = {}
    for name, value in _ATTRIBUTE.findall(raw):
        attributes.setdefault(name, unescape(value))
    if tag == "details" and "unfolds" in attributes.get("class", ""):
        attributes["open"] = ""  # the style sheet opens it where there is room
    return OpeningTag(tag, attributes)


_opening = lru_cache(maxsize=8192)(_read_opening)


def _plain(text: str) -> str:
    """Return what a text of a document says."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return unescape(text)


def _without_open(attributes: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in attributes.items() if name != "open"}


def _settle(element: HtmlElement) -> None:
    """Give a list or a text area that was read the state that the document states."""
    if element.tag == "textarea":
        element.value = element.text()
    if element.tag != "select":
        return
    element.options = options = [each for each in element.elements() if each.tag == "option"]
    stated = [option for option in options if "selected" in option.attributes]
    if not stated and "size" not in element.attributes:
        stated = options[:1]
    for option in stated[-1:]:
        option.checked = True


def squashed(text: str) -> str:
    """Return text with each run of white space as one blank, none at the ends, as HTML shows it."""
    if "  " not in text and text.isprintable():  # no white space but single blanks
        return text.strip(" ")
    return _SPACE.sub(" ", text).strip(" ")
