"""The accessibility tree of a document as Chromium 156 builds it, without a layout.

The rules were read off the trees of Chromium itself; ``tests/environments/text`` holds both
together on the pages of all applications. A tag or role that no rule names raises ValueError, so
that a new widget cannot be shown wrongly in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trajudge.environments.chromium.axtree import AccessibilityTree, TreeWriter, Within
from trajudge.environments.chromium.observation import PageDetails
from trajudge.environments.text.document import TICKED, HtmlElement, PageDocument, squashed

ROLES = {
    "a": "link", "article": "article", "aside": "complementary", "button": "button",
    "dd": "definition", "details": "group", "dl": "DescriptionList", "dt": "term",
    "fieldset": "group", "footer": "contentinfo", "form": "form", "h1": "heading",
    "h2": "heading", "h3": "heading", "h4": "heading", "h5": "heading", "h6": "heading",
    "header": "banner", "img": "image",
    "input": "input", "label": "LabelText", "legend": "Legend", "li": "listitem", "main": "main",
    "nav": "navigation", "ol": "list", "option": "option", "p": "paragraph", "select": "combobox",
    "summary": "DisclosureTriangle", "table": "table", "td": "cell", "textarea": "textbox",
    "th": "header", "thead": "rowgroup",
    "tr": "row", "ul": "list",
}  # fmt: skip
"""The role of each element by its tag; an input's follows from its type."""

TRANSPARENT = frozenset(
    {"b", "div", "em", "i", "pre", "section", "small", "span", "strong", "tbody"}
)
"""Elements that are no nodes: what is inside them stands in their place."""

EXPLICIT = frozenset({"alert", "alertdialog", "dialog", "radiogroup", "region", "status", "switch"})
"""The roles that a page may give an element by ``role``."""

ATTRIBUTES = frozenset(
    {"alt", "aria-describedby", "aria-label", "aria-labelledby", "aria-modal", "checked"}
    | {"disabled", "for", "href", "id", "inert", "max", "min", "name", "open", "required", "role"}
    | {"scope", "selected", "size", "type", "value"}
    # What changes nothing in the tree:
    | {
        "action",
        "aria-current",
        "aria-sort",
        "autocomplete",
        "class",
        "height",
        "method",
        "novalidate",
        "rel",
    }
    | {"rows", "src", "width"}
)
"""The attributes that a page's elements may have, beside those of data."""

INPUTS = {
    "checkbox": "checkbox", "date": "Date", "file": "button", "number": "spinbutton",
    "radio": "radio", "search": "searchbox", "text": "textbox",
}  # fmt: skip

_FROM_CONTENT = frozenset(
    {"button", "cell", "columnheader", "DisclosureTriangle", "DisclosureTriangleGrouped"}
    | {"heading", "link", "option", "rowheader", "term"}
)
_CLICKABLE = frozenset({"a", "button", "input", "label", "select", "summary", "textarea"})
_FLAT = frozenset({"dd", "p"})  # without content they have no height
_DATE_PARTS = (("Month", 12, "mm"), ("Day", 31, "dd"), ("Year", 275760, "yyyy"))


def write(document: PageDocument, *, visible: bool = True) -> AccessibilityTree:
    """Return the tree, which says what is ``visible`` or does not. Raises ValueError for a tag,
    role or type of input that it does not know."""
    return _Walk(document, visible=visible).tree()


def write_details(document: PageDocument, *, visible: bool = True) -> PageDetails:
    """Return the elements of the body as Chromium's DOM snapshot has them, with the state of
    controls, and what BrowserGym notes of each; there are no boxes."""
    texts: dict[str, int] = {}
    columns: dict[str, list[Any]] = {
        name: [] for name in ("nodeName", "nodeType", "nodeValue", "parentIndex", "attributes")
    }
    notes: dict[str, dict[str, Any]] = {}

    def number(text: str) -> int:
        return texts.setdefault(text, len(texts))

    def add(name: str, kind: int, value: int, parent: int, attributes: dict[str, str]) -> int:
        pairs = [number(part) for pair in attributes.items() for part in pair]
        row = (number(name), kind, value, parent, pairs)
        for column, cell in zip(columns.values(), row, strict=True):
            column.append(cell)
        return len(columns["nodeName"]) - 1

    def walk(element: HtmlElement, parent: int, *, shown: bool) -> None:
        for child in element.children:
            if isinstance(child, str):
                add("#text", 3, number(child), parent, {})
            elif child.kind != "hidden":
                box = shown and "hidden" not in child.attributes
                box = box and (child.tag not in _FLAT or bool(child.children))
                notes[child.bid] = {
                    "visibility": float(box and visible),
                    "bbox": None,
                    "clickable": child.tag in _CLICKABLE,
                    "set_of_marks": False,
                }
                attributes = {**_stated(child), "bid": child.bid}
                walk(child, add(child.tag.upper(), 1, -1, parent, attributes), shown=box)

    root = add("HTML", 1, -1, add("#document", 9, -1, -1, {}), {})
    walk(document.body, add("BODY", 1, -1, root, {}), shown=True)
    nodes = {**columns, "contentDocumentIndex": {"index": [], "value": []}}
    return PageDetails({"documents": [{"nodes": nodes}], "strings": [*texts]}, notes)


def _stated(element: HtmlElement) -> dict[str, str]:
    """Return the attributes of an element, with what a control holds now."""
    attributes = dict(element.attributes)
    if element.tag == "input" and element.kind not in TICKED:
        attributes["value"] = element.value
    for name, kinds in (("checked", TICKED), ("selected", ("",))):
        if element.kind in kinds and (name == "checked" or element.tag == "option"):
            attributes.pop(name, None)
            if element.checked:
                attributes[name] = ""
    return attributes


class _Walk:
    def __init__(self, document: PageDocument, *, visible: bool) -> None:
        self.document = document
        self.visible = visible
        self.writer = TreeWriter()
        # Theme "lines" writes a colon after terms by its style sheet.
        self.colons = "items-lines" in document.classes

    def tree(self) -> AccessibilityTree:
        focused = "" if self.document.left else ", focused"
        within = self.writer.add(Within(), "RootWebArea", self.document.title, focused)
        self.children(self.document.body, within)
        return self.writer.tree()

    def children(self, element: HtmlElement, within: Within) -> None:
        for child in element.children:
            if isinstance(child, str):
                self.text(child, within)
            else:
                self.element(child, within)

    def text(self, text: str, within: Within) -> None:
        if text := squashed(text):
            self.writer.text(within, text)

    def element(self, element: HtmlElement, within: Within) -> None:
        attributes, tag = element.attributes, element.tag
        silent = tag == "img" and not attributes.get("alt")  # for the eye alone
        if silent or "inert" in attributes or "hidden" in attributes:
            return
        role = attributes.get("role")
        if role is None:
            if tag == "section" and self.label_of(element):
                role = "region"
            elif tag in TRANSPARENT or (tag == "p" and _is_picture(element)):
                self.children(element, within)
                return
            else:
                role = ROLES.get(tag)
        elif role not in EXPLICIT:
            raise ValueError(f"the role {role!r} has no rule in the text engine")
        if role is None:
            raise ValueError(f"<{tag}> has no rule in the text engine")
        if tag == "input":
            self.input(element, within)
        elif tag == "select":
            self.choice(element, within)
        elif tag == "textarea":
            self.typed(element, within, "textbox")
        elif tag == "label":
            self.label(element, within)
        else:
            self.plain(element, within, role)

    def plain(self, element: HtmlElement, within: Within, role: str) -> None:
        attributes = element.attributes
        if role == "header":
            role = "rowheader" if attributes.get("scope") == "row" else "columnheader"
        properties = _disabled(element)
        if attributes.get("aria-modal") == "true":
            properties = (*properties, "modal=True")
        if element.tag == "summary" and (details := element.parent) is not None:
            properties = (*properties, f"expanded={'open' in details.attributes}")
            role += "Grouped" if "name" in details.attributes else ""
        inside = self.add(element, within, role, self.name(element, role), properties)
        if element.tag == "details" and "open" not in attributes:
            if (summary := element.summary) is not None:
                self.element(summary, inside)
            return
        self.children(element, inside)
        if role == "term" and self.colons:
            self.text(":", inside)

    def add(
        self,
        element: HtmlElement,
        within: Within,
        role: str,
        name: str,
        properties: Sequence[str] = (),
        *,
        value: object = "",
        state: str = "",
    ) -> Within:
        """Write the line of an element; ``state`` is its value as agents see it."""
        line = ", clickable" if element.tag in _CLICKABLE else ""
        if self.visible:
            line += ", visible"
        if element.tag in _FLAT and not element.children:
            line = ""
        if value != "":
            line = f" value={value!r}{line}"
        # Of a date, one of its parts has the focus.
        focused = role != "Date" and element is self.document.focused
        if focused:
            properties = [*properties, "focused"]
        if properties:
            line = ", ".join([line, *sorted(properties)])
        return self.writer.add(
            within, role, name, line, bid=element.bid, state=state, focused=focused
        )

    def name(self, element: HtmlElement, role: str) -> str:
        attributes = element.attributes
        if label := self.label_of(element):
            return label
        if element.tag == "img":
            return squashed(attributes.get("alt", ""))
        if element.tag == "fieldset":
            legend = next((e for e in element.elements() if e.tag == "legend"), None)
            return squashed(legend.text()) if legend else ""
        if role in _FROM_CONTENT:
            text = _content(element)
            return f"{text}:" if role == "term" and self.colons else text
        return ""

    def label_of(self, element: HtmlElement) -> str:
        """Return the name that an element's ARIA attributes give it."""
        attributes = element.attributes
        if named_by := attributes.get("aria-labelledby", "").split():
            return squashed(" ".join(self.document.by_id[key].text() for key in named_by))
        return squashed(attributes["aria-label"]) if "aria-label" in attributes else ""

    def labelled(self, element: HtmlElement) -> str:
        if label := self.label_of(element):
            return label
        named_by = self.document.labels.get(element.attributes.get("id", ""))
        return squashed(named_by.text()) if named_by else ""

    # --- controls ---

    def label(self, element: HtmlElement, within: Within) -> None:
        control = self.document.by_id.get(element.attributes.get("for", ""))
        if control is not None and control.kind in ("checkbox", "radio"):
            return
        self.children(element, self.add(element, within, "LabelText", ""))

    def input(self, element: HtmlElement, within: Within) -> None:
        kind = element.kind
        if kind == "hidden":
            return
        role = INPUTS.get(kind)
        if role is None:
            raise ValueError(f"<input type={kind!r}> has no rule in the text engine")
        if kind in ("checkbox", "radio"):
            checked = "true" if element.checked else "false"
            properties = [f"checked={checked!r}", *_disabled(element)]
            role = element.attributes.get("role", role)
            self.add(element, within, role, self.labelled(element), properties, state=checked)
        elif kind == "date":
            self.date(element, within)
        elif kind == "number":
            self.number(element, within)
        elif kind == "file":
            self.file(element, within)
        else:
            self.typed(element, within, role)

    def typed(self, element: HtmlElement, within: Within, role: str) -> None:
        value = element.value
        properties = [*_disabled(element), *_required(element)]
        inside = self.add(
            element, within, role, self.labelled(element), properties, value=value, state=value
        )
        for line in value.split("\n"):
            self.text(line, inside)

    def number(self, element: HtmlElement, within: Within) -> None:
        value = element.value
        number = float(value) if value else 0.0
        shown: object = "" if not value else int(number) if number.is_integer() else number
        most, least = (element.attributes.get(name, "0") for name in ("max", "min"))
        limits = (f"valuemax={most}", f"valuemin={least}", f"valuetext={value!r}")
        inside = self.add(
            element,
            within,
            "spinbutton",
            self.labelled(element),
            [*_disabled(element), *_required(element), *limits],
            value=shown,
            state=str(shown),
        )
        self.text(value, inside)

    def file(self, element: HtmlElement, within: Within) -> None:
        name = self.labelled(element) or "Choose File"
        value = element.value or "No file chosen"
        self.add(element, within, "button", name, _disabled(element), value=value, state=value)

    def date(self, element: HtmlElement, within: Within) -> None:
        value = element.value
        name = self.labelled(element)
        inside = self.add(
            element, within, "Date", name, _disabled(element), value=value, state=value
        )
        year, month, day = [*value.split("-"), "", ""][:3] if value else ("", "", "")
        for (part, most, shown), typed in zip(_DATE_PARTS, (month, day, year), strict=True):
            if part != "Month":
                self.writer.add(inside, "StaticText", "/")
            focus = ", focused" if part == "Month" and element is self.document.focused else ""
            more = f" value={int(typed or 0)}{focus}, valuemax={most}, valuemin=1, valuetext=''"
            spin = self.writer.add(inside, "spinbutton", f"{part} {part}", more)
            self.writer.add(spin, "StaticText", typed or shown)
        picker = "Show date picker Show date picker"
        self.writer.add(inside, "button", picker, ", hasPopup='menu'")

    def choice(self, element: HtmlElement, within: Within) -> None:
        chosen = element.chosen
        if "size" in element.attributes:
            self.listbox(element, within, chosen)
            return
        value = chosen.label if chosen is not None else ""
        is_open = element is self.document.opened
        popup = (f"expanded={is_open}", "hasPopup='menu'")
        inside = self.add(
            element,
            within,
            "combobox",
            self.labelled(element),
            [*_disabled(element), *popup, *_required(element)],
            value=value,
            state=value,
        )
        inside = self.writer.add(inside, "MenuListPopup", "")
        self.options(element, inside, chosen)

    def listbox(self, element: HtmlElement, within: Within, chosen: HtmlElement | None) -> None:
        """Write a list that shows several of its options."""
        properties = [*_disabled(element), "multiselectable=False", "orientation='vertical'"]
        properties += _required(element)
        inside = self.add(element, within, "listbox", self.labelled(element), properties)
        self.options(element, inside, chosen, ", visible")

    def options(
        self, element: HtmlElement, inside: Within, chosen: HtmlElement | None, more: str = ""
    ) -> None:
        for option in element.options:
            selected = option is chosen
            self.writer.add(
                inside, "option", option.label, f"{more}, selected={selected}",
                bid=option.bid, state=str(selected).lower(),
            )  # fmt: skip


def _is(child: HtmlElement | str, tag: str) -> bool:
    return isinstance(child, HtmlElement) and child.tag == tag


def _is_picture(element: HtmlElement) -> bool:
    return all(_is(c, "img") or (isinstance(c, str) and not c.strip()) for c in element.children)


def _content(element: HtmlElement) -> str:
    """Return the name that an element has from what is inside it."""
    return squashed(" ".join(_parts(element)))


def _parts(element: HtmlElement) -> Iterator[str]:
    closed = element.tag == "details" and "open" not in element.attributes
    for child in element.children:
        if closed and child is not element.summary:
            continue
        if isinstance(child, str):
            yield child
        elif child.tag == "img":
            yield child.attributes.get("alt", "")
        elif child.tag != "form":
            yield child.attributes.get("aria-label") or " ".join(_parts(child))


def _disabled(element: HtmlElement) -> tuple[str, ...]:
    return ("disabled=True",) if "disabled" in element.attributes else ()


def _required(element: HtmlElement) -> tuple[str, ...]:
    return ("required",) if "required" in element.attributes else ()
