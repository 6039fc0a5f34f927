"""A page's HTML as its elements in document order, with what its controls hold.

It is read as the kit writes it: every element is closed but those that have no content, attributes
are in double quotes, and what is no markup is escaped. Of such a text the HTML standard's parser
(section 13) builds the same tree; any other raises ValueError, so that no page is misread in
silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from html import unescape
from typing import Any

TICKED = frozenset({"checkbox", "radio"})
_SPACE = re.compile("[ \t\n\f\r]+")
_TITLE = re.compile("<title>([^<]*)</title>")
_ATTRIBUTE = re.compile(' ([a-z][a-z-]*)(?:="([^"]*)")?')
_OPENING = re.compile(f"([a-z][a-z0-9]*)((?:{_ATTRIBUTE.pattern})*) ?")
_EMPTY = frozenset({"br", "hr", "img", "input"})
_INLINE = frozenset(
    {"a", "b", "br", "button", "em", "i", "img", "input", "label", "select", "small", "span"}
    | {"strong", "textarea"}
)
"""What may stand in a paragraph; anything else would end it."""

_NOTED = frozenset({"details", "label", "select"})
_UNLIKE = _PICTURE, _HIDDEN = 'img src="data:', 'input type="hidden"'


class OpeningTag:
    """What the elements share that begin with the same text: the tag, its attributes and ``kind``,
    the type of an input in lower case ("" for another element). ``rule`` is what the tree writes
    for them, once it was asked for."""

    __slots__ = (
        "attributes", "choosy", "empty", "ends_paragraph", "kind", "noted", "rule", "tag",
        "verbatim",
    )  # fmt: skip

    def __init__(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.tag, self.attributes = tag, attributes
        self.kind = attributes.get("type", "text").lower() if tag == "input" else ""
        self.noted = tag in _NOTED or "id" in attributes or "checked" in attributes
        self.ends_paragraph = tag not in _INLINE
        self.choosy = tag == "p" or "unfolds" in attributes.get("class", "")
        self.empty = tag in _EMPTY
        self.verbatim = tag in ("pre", "textarea")
        self.rule: Any = None


class HtmlElement:
    """An element of the body, by its ``number`` in document order, from 0."""

    __slots__ = ("document", "number", "opening")

    def __init__(self, document: PageDocument, number: int) -> None:
        self.document, self.number = document, number
        self.opening = document.openings[number]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HtmlElement):
            return False
        return self.number == other.number and self.document is other.document

    def __hash__(self) -> int:
        return self.number

    @property
    def bid(self) -> str:
        return str(self.number)

    @property
    def tag(self) -> str:
        return self.opening.tag

    @property
    def kind(self) -> str:
        return self.opening.kind

    @property
    def attributes(self) -> Mapping[str, str]:
        """The attributes as the page states them."""
        whole = self.document.heads.get(self.number)
        return self.opening.attributes if whole is None else _read_opening(whole).attributes

    @property
    def parent(self) -> HtmlElement | None:
        above = self.document.parents[self.number]
        return HtmlElement(self.document, above) if above >= 0 else None

    def elements(self) -> Iterator[HtmlElement]:
        """Yield the elements inside, in document order."""
        for number in range(self.number + 1, self.document.ends[self.number]):
            yield HtmlElement(self.document, number)

    def text(self) -> str:
        """Return the text inside, as it stands."""
        return self.document.text(self.number)

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
        while around is not None and "inert" not in around.opening.attributes:
            around = around.parent
        return around is not None

    @property
    def folded(self) -> bool:
        """Whether the element lies in a ``details`` that is closed."""
        document, inner = self.document, self.number
        while (around := document.parents[inner]) >= 0:
            closed = document.openings[around].tag == "details" and around not in document.unfolded
            if closed and document.summary(around) != inner:
                return True
            inner = around
        return False

    @property
    def focusable(self) -> bool:
        """Whether the element takes the focus."""
        attributes = self.opening.attributes
        if self.tag == "a":
            return "href" in attributes
        if self.tag == "summary":
            above = self.document.parents[self.number]
            shown = "hidden" not in attributes
            return shown and above >= 0 and self.document.summary(above) == self.number
        control = self.tag in ("button", "select", "textarea") or self.kind not in ("", "hidden")
        return control and "disabled" not in attributes

    # --- the state of controls ---

    @property
    def value(self) -> str:
        """What a field holds."""
        return self.document.value(self.number)

    @value.setter
    def value(self, text: str) -> None:
        self.document.values[self.number] = text
        self.document.written.clear()

    @property
    def checked(self) -> bool:
        """Whether a control is ticked, an option chosen."""
        return self.number in self.document.checked

    @checked.setter
    def checked(self, checked: bool) -> None:
        (self.document.checked.add if checked else self.document.checked.discard)(self.number)
        self.document.written.clear()

    @property
    def options(self) -> list[HtmlElement]:
        """The options of a list."""
        return [HtmlElement(self.document, n) for n in self.document.options(self.number)]

    @property
    def chosen(self) -> HtmlElement | None:
        """The option of a list that is chosen, if it has any."""
        return next((option for option in self.options if option.checked), None)

    def choose(self, option: HtmlElement) -> None:
        """Choose an option of a list in place of the one that was."""
        for other in self.options:
            other.checked = other == option

    @property
    def label(self) -> str:
        """What an option shows."""
        return self.document.label(self.number)

    @property
    def sent(self) -> str:
        """What a form sends for an option."""
        return self.attributes.get("value", self.text())


class PageDocument:
    """A page: its title, and the elements of its body by their numbers in document order. Of each
    there are the tag that opens it, the number of the element around it (-1: the body), the number
    after the last one inside it, the text that it begins with, and the text that follows it.

    ``heads`` has the opening tags of those whose attributes are not all in ``openings``.
    ``values`` (those that were changed), ``checked``, ``unfolded`` (each ``details`` that is open),
    ``focused`` and ``opened`` (the list whose options are open) are the state; whatever changes it
    empties ``written``, where the tree's writer keeps what it wrote."""

    def __init__(self, html: str) -> None:
        if "\r" in html:
            html = html.replace("\r\n", "\n").replace("\r", "\n")
        head, _, rest = html.partition("<body")
        opening, _, content = rest.partition(">") if rest else ("", "", head)
        title = _TITLE.search(head)
        self.title = squashed(unescape(title[1])) if title else ""
        body = _read_opening("body" + opening)
        self.classes = frozenset(body.attributes.get("class", "").split())
        self.openings: list[OpeningTag] = []
        self.parents: list[int] = []
        self.ends: list[int] = []
        self.texts: list[str] = []
        self.afters: list[str] = []
        self.heads: dict[int, str] = {}
        self.by_id: dict[str, int] = {}
        self.labels: dict[str, int] = {}  # the first one of a control, by the control's id
        self.values: dict[int, str] = {}
        self.checked: set[int] = set()
        self.unfolded: set[int] = set()
        self.focused: int | None = None
        self.left = False  # the focus went on to the browser's own controls
        self.opened: int | None = None
        self.written: dict[bool, Any] = {}
        self.before, *pieces = content.partition("</body>")[0].split("<")
        self._read(pieces)

    def elements(self) -> Iterator[HtmlElement]:
        """Yield the elements of the body, in document order."""
        return (HtmlElement(self, number) for number in range(len(self.openings)))

    def element(self, bid: str) -> HtmlElement | None:
        """Return the element with this bid, its number as text."""
        plain = len(bid) < 10 and bid.isdecimal() and str(int(bid)) == bid
        return HtmlElement(self, int(bid)) if plain and int(bid) < len(self.openings) else None

    def children(self, number: int) -> Iterator[int]:
        """Yield the elements that are in this one (-1: the body), and in none inside it."""
        below, end = number + 1, self.ends[number] if number >= 0 else len(self.ends)
        while below < end:
            yield below
            below = self.ends[below]

    def text(self, number: int) -> str:
        """Return the text inside an element, as it stands."""
        end = self.ends[number]
        if end == number + 1:
            return self.texts[number]
        return self.texts[number] + "".join(
            self.text(child) + self.afters[child] for child in self.children(number)
        )

    def is_filled(self, number: int) -> bool:
        """Tell whether there is anything inside of an element."""
        return self.ends[number] > number + 1 or bool(self.texts[number])

    def summary(self, details: int) -> int | None:
        """Return what opens a ``details``: its first child of that kind."""
        return next((n for n in self.children(details) if self.openings[n].tag == "summary"), None)

    def value(self, field: int) -> str:
        """Return what a field holds: what the page states until somebody changes it."""
        if (held := self.values.get(field)) is not None:
            return held
        if self.openings[field].tag == "textarea":
            return self.text(field)
        return HtmlElement(self, field).attributes.get("value", "")

    def options(self, choices: int) -> list[int]:
        """Return the options of a list."""
        inside = range(choices + 1, self.ends[choices])
        return [number for number in inside if self.openings[number].tag == "option"]

    def label(self, option: int) -> str:
        """Return what an option shows."""
        return squashed(self.openings[option].attributes.get("label") or self.text(option))

    def labelled(self, label: HtmlElement) -> HtmlElement | None:
        """Return the control that a label is for."""
        number = self.by_id.get(label.attributes.get("for", ""))
        return None if number is None else HtmlElement(self, number)

    @property
    def focus_at(self) -> HtmlElement | None:
        """The element that has the focus."""
        return None if self.focused is None else HtmlElement(self, self.focused)

    def focus(self, element: HtmlElement | None) -> None:
        """Give the focus to an element, or to none."""
        self.focused, self.left = None if element is None else element.number, False
        if self.opened != self.focused:
            self.opened = None
        self.written.clear()

    def toggle(self, choices: HtmlElement) -> None:
        """Open the options of a list, or close them."""
        self.opened = None if self.opened == choices.number else choices.number
        self.written.clear()

    def close(self) -> None:
        """Close the options that are open."""
        self.opened = None
        self.written.clear()

    def unfold(self, details: HtmlElement) -> None:
        """Open a ``details``, or close it; of those that share a name one is open at most."""
        self.written.clear()
        if details.number in self.unfolded:
            self.unfolded.discard(details.number)
            return
        if name := details.attributes.get("name"):
            named = (n for n in self.unfolded if self.openings[n].attributes.get("name") == name)
            self.unfolded -= {*named}
        self.unfolded.add(details.number)

    def radios(self, radio: HtmlElement) -> list[HtmlElement]:
        """Return the radio buttons of the group that one belongs to."""
        form, name = radio.within("form"), radio.attributes.get("name")
        return [
            other
            for other in self.elements()
            if other.kind == "radio"
            and other.attributes.get("name") == name
            and other.within("form") == form
        ]

    def move_focus(self, by: int) -> None:
        """Give the focus to the next element (``by`` 1) or to the one before (-1), as the tabulator
        key does: of a group of radio buttons one takes it, after the last element nothing."""
        stops, focused = [], self.focus_at
        for element in self.elements():
            if element.focusable and not element.inert and not element.folded:
                group = self.radios(element) if element.kind == "radio" else [element]
                chosen = next((radio for radio in group if radio.checked), None)
                if element in (focused, chosen or group[0 if by > 0 else -1]):
                    stops.append(element)
        index = 0 if by > 0 else len(stops) - 1
        if focused is not None and focused in stops:
            index = stops.index(focused) + by
        self.focus(stops[index] if 0 <= index < len(stops) else None)
        self.left = self.focused is None

    def _read(self, pieces: list[str]) -> None:
        """Read what begins with each "<" of the body."""
        openings, parents, ends = self.openings, self.parents, self.ends
        texts, afters = self.texts, self.afters
        self.before = unescape(self.before)
        into, count = -1, 0  # the element that is open, and how many there are
        for piece in pieces:
            head, closed, text = piece.partition(">")
            if not closed:
                raise ValueError(f"<{piece[:200]}: the kit writes no such tag")
            text = unescape(text) if "&" in text else text
            if piece[0] == "/":
                if into < 0 or openings[into].tag != head[1:]:
                    raise ValueError(f"<{head}> closes another tag: the kit writes no such page")
                afters[into], ends[into] = text, count
                if head == "/select":
                    self._settle(into)
                into = parents[into]
                continue
            if head.startswith(_UNLIKE):
                self.heads[count] = head
                opening = _opening(_shared(head))
            else:
                opening = _opening(head)
            if into >= 0 and openings[into].choosy:
                opening = _fitting(opening, openings[into], head)
            openings.append(opening)
            parents.append(into)
            if opening.empty:
                ends.append(count + 1)
                texts.append("")
                afters.append(text)
            else:
                ends.append(-1)
                texts.append(text.removeprefix("\n") if opening.verbatim else text)
                afters.append("")
                into = count
            if opening.noted:
                self._note(count, opening)
            count += 1
        if into >= 0:
            raise ValueError(f"<{openings[into].tag}> is not closed: the kit writes no such page")

    def _note(self, number: int, opening: OpeningTag) -> None:
        """Keep an element with an id, a label, or something that holds a state."""
        attributes, tag = opening.attributes, opening.tag
        if name := attributes.get("id"):
            self.by_id.setdefault(name, number)
        if tag == "label":
            if name := attributes.get("for"):
                self.labels.setdefault(name, number)
        elif tag == "details":
            if "open" in attributes:
                self.unfolded.add(number)
        elif tag == "input" and "checked" in attributes:
            self.checked.add(number)

    def _settle(self, choices: int) -> None:
        """Choose the option of a list that the document states."""
        options = self.options(choices)
        stated = [n for n in options if "selected" in self.openings[n].attributes]
        if not stated and "size" not in self.openings[choices].attributes:
            stated = options[:1]
        self.checked.update(stated[-1:])


def _fitting(opening: OpeningTag, outer: OpeningTag, head: str) -> OpeningTag:
    """Return the opening tag of what stands in a paragraph or in a ``details`` that the style sheet
    opens, whose summary it hides. Raises ValueError for what would end the paragraph."""
    if outer.tag == "p":
        if opening.ends_paragraph:
            raise ValueError(f"<{head}> in a paragraph: the kit writes no such page")
        return opening
    return _opening(f"{head} hidden") if opening.tag == "summary" else opening


def _shared(head: str) -> str:
    """Return the text of an opening tag without what hardly any other tag has: the data of a
    picture, or what a hidden field sends."""
    if head.startswith(_HIDDEN):
        return _HIDDEN
    return "img" + head[head.find('"', len(_PICTURE)) + 1 :]


def _read_opening(head: str) -> OpeningTag:
    """Return an opening tag; ``head`` is its text without the brackets. Raises ValueError for what
    the kit does not write."""
    parts = _OPENING.fullmatch(head)
    if parts is None:
        raise ValueError(f"<{head[:200]}>: the kit writes no such tag")
    tag = parts[1]
    attributes: dict[str, str] = {}
    for name, value in _ATTRIBUTE.findall(parts[2]):
        attributes.setdefault(name, unescape(value))
    if tag == "details" and "unfolds" in attributes.get("class", ""):
        attributes["open"] = ""  # the style sheet opens it where there is room
    return OpeningTag(tag, attributes)


_opening = lru_cache(maxsize=8192)(_read_opening)


def squashed(text: str) -> str:
    """Return text with each run of white space as one blank, none at the ends, as HTML shows it."""
    if "  " not in text and text.isprintable():  # no white space but single blanks
        return text.strip(" ")
    return _SPACE.sub(" ", text).strip(" ")
