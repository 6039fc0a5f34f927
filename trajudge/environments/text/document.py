"""A page's HTML as one tree of elements, with what its controls hold.

The parser is lexbor's, which reads HTML as the standard says (HTML Living Standard, section 13), so
that this tree is the one that a browser builds from the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

TICKED = frozenset({"checkbox", "radio"})
_SPACE = re.compile("[ \t\n\f\r]+")


class HtmlElement:
    """An element of the body. ``bid`` is its number in document order, from 0. ``value`` and
    ``checked`` are the state of a control, of a list the value of the chosen option."""

    __slots__ = ("attributes", "bid", "checked", "children", "parent", "tag", "value")

    def __init__(self, tag: str, attributes: dict[str, str], parent: HtmlElement | None) -> None:
        self.tag, self.attributes, self.parent = tag, attributes, parent
        self.children: list[HtmlElement | str] = []
        self.bid = ""
        self.value = ""
        self.checked = False

    @property
    def kind(self) -> str:
        """The type of an input, in lower case; "" for another element."""
        return self.attributes.get("type", "text").lower() if self.tag == "input" else ""

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
    def options(self) -> list[HtmlElement]:
        """The options of a list."""
        return [inside for inside in self.elements() if inside.tag == "option"]

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
        parser = LexborHTMLParser(html)
        head, body = parser.head, parser.body
        title = head and head.css_first("title")
        self.title = squashed(title.text()) if title else ""
        self.classes = frozenset(((body and body.attributes.get("class")) or "").split())
        self.body = HtmlElement("body", {}, None)
        self.by_bid: dict[str, HtmlElement] = {}
        self.by_id: dict[str, HtmlElement] = {}
        self.labels: dict[str, HtmlElement] = {}  # the first one of a control, by the control's id
        self.focused: HtmlElement | None = None
        self.left = False  # the focus went on to the browser's own controls
        self.opened: HtmlElement | None = None  # the list whose options are open
        if body is not None:
            self._read(body, self.body)
        for element in self.by_bid.values():
            _settle(element)

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
        if details.attributes.pop("open", None) is not None:
            return
        if name := details.attributes.get("name"):
            for other in self.by_bid.values():
                if other.tag == "details" and other.attributes.get("name") == name:
                    other.attributes.pop("open", None)
        details.attributes["open"] = ""

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

    def _read(self, node: LexborNode, into: HtmlElement) -> None:
        child = node.child
        while child is not None:
            tag = child.tag
            if tag == "-text":
                into.children.append(child.text_content or "")
            elif tag and tag[0] not in "-!":
                attributes = {name: value or "" for name, value in child.attributes.items()}
                if tag == "details" and "unfolds" in attributes.get("class", ""):
                    attributes["open"] = ""  # the style sheet opens it where there is room
                elif tag == "summary" and "unfolds" in into.attributes.get("class", ""):
                    attributes["hidden"] = ""
                element = HtmlElement(tag, attributes, into)
                element.bid = str(len(self.by_bid))
                self.by_bid[element.bid] = element
                if name := attributes.get("id"):
                    self.by_id.setdefault(name, element)
                if tag == "label" and (name := attributes.get("for")):
                    self.labels.setdefault(name, element)
                into.children.append(element)
                if tag != "svg":
                    self._read(child, element)
            child = child.next


def _settle(element: HtmlElement) -> None:
    """Give a control the state that the document states."""
    attributes = element.attributes
    match element.tag:
        case "input":
            element.value, element.checked = attributes.get("value", ""), "checked" in attributes
        case "textarea":
            element.value = element.text()
        case "select":
            options = element.options
            stated = [option for option in options if "selected" in option.attributes]
            if not stated and "size" not in attributes:
                stated = options[:1]
            for option in stated[-1:]:
                option.checked = True


def squashed(text: str) -> str:
    """Return text with each run of white space as one blank, none at the ends, as HTML shows it."""
    if "  " not in text and text.isprintable():  # no white space but single blanks
        return text.strip(" ")
    return _SPACE.sub(" ", text).strip(" ")
