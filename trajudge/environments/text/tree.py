"""The accessibility tree of a document as Chromium 156 builds it, without a layout.

The rules were read off the trees of Chromium itself; ``tests/environments/text`` holds both
together on the pages of all applications. A tag or role that no rule names raises ValueError, so
that a new widget cannot be shown wrongly in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from trajudge.environments.chromium.axtree import (
    AccessibilityTree,
    TreeWriter,
    Within,
)
from trajudge.environments.chromium.observation import PageDetails
from trajudge.environments.text.document import (
    TICKED,
    HtmlElement,
    OpeningTag,
    PageDocument,
    squashed,
)

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
    tree: AccessibilityTree | None = document.written.get(visible)
    if tree is None:
        tree = document.written[visible] = _Walk(document, visible=visible).tree()
    return tree


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

    def add_text(text: str, parent: int) -> None:
        if text:
            add("#text", 3, number(text), parent, {})

    def walk(inside: Iterable[int], parent: int, *, shown: bool) -> None:
        for child in inside:
            opening = document.openings[child]
            if opening.kind != "hidden":
                box = shown and "hidden" not in opening.attributes
                box = box and (opening.tag not in _FLAT or document.is_filled(child))
                notes[str(child)] = {
                    "visibility": float(box and visible),
                    "bbox": None,
                    "clickable": opening.tag in _CLICKABLE,
                    "set_of_marks": False,
                }
                attributes = {**_stated(HtmlElement(document, child)), "bid": str(child)}
                row = add(opening.tag.upper(), 1, -1, parent, attributes)
                add_text(document.texts[child], row)
                walk(document.children(child), row, shown=box)
            add_text(document.afters[child], parent)

    root = add("HTML", 1, -1, add("#document", 9, -1, -1, {}), {})
    body = add("BODY", 1, -1, root, {})
    add_text(document.before, body)
    walk(document.children(-1), body, shown=True)
    nodes = {**columns, "contentDocumentIndex": {"index": [], "value": []}}
    return PageDetails({"documents": [{"nodes": nodes}], "strings": [*texts]}, notes)


def _stated(element: HtmlElement) -> dict[str, str]:
    """Return the attributes of an element, with what a control holds now."""
    attributes = dict(element.attributes)
    if element.tag == "details":
        attributes.pop("open", None)
        if element.number in element.document.unfolded:
            attributes["open"] = ""
    if element.tag == "input" and element.kind not in TICKED:
        attributes["value"] = element.value
    for name, kinds in (("checked", TICKED), ("selected", ("",))):
        if element.kind in kinds and (name == "checked" or element.tag == "option"):
            attributes.pop(name, None)
            if element.checked:
                attributes[name] = ""
    return attributes


class _Rule(NamedTuple):
    """How the elements of an opening tag are written: by which method of the walk (None: what is
    inside stands in their place), as which role, with which name (None: it follows from
    others, where it is ``worded`` from what is inside) and properties. ``more`` is what every line
    of the kind says, ``rests`` are all that one says after its name, without and with what is
    visible; one that is not ``tall`` has a height only where there is something inside."""

    method: Callable[[_Walk, int, Within, _Rule], None] | None = None
    role: str = ""
    name: str | None = None
    properties: tuple[str, ...] = ()
    more: str = ""
    worded: bool = False
    tall: bool = True
    rests: tuple[str, str] = ("", "")


class _Walk:
    """Writes a document. Elements are numbers in it."""

    def __init__(self, document: PageDocument, *, visible: bool) -> None:
        self.document = document
        self.visible = visible
        self.writer = TreeWriter()
        # Theme "lines" writes a colon after terms by its style sheet.
        self.colons = "items-lines" in document.classes

    def tree(self) -> AccessibilityTree:
        focused = "" if self.document.left else ", focused"
        root = self.writer.add(Within(), "RootWebArea", self.document.title, focused)
        self.text(self.document.before, root)
        self.between(0, len(self.document.openings), root)
        return self.writer.tree()

    def between(self, first: int, last: int, within: Within) -> None:
        """Write the elements from the first to before the last, all that are inside of them, and
        the texts after them."""
        document = self.document
        openings, ends = document.openings, document.ends
        texts, afters, plain = document.texts, document.afters, _Walk.plain
        around: list[tuple[int, int, Within]] = []  # what is open: its end, itself, where it stands
        number = first
        while number < last:
            opening = openings[number]
            rule: _Rule | None = opening.rule
            if rule is None:
                rule = opening.rule = _rule(opening)
            method, end, text = rule.method, ends[number], texts[number]
            if method is None or (method is plain and end > number + 1):
                around.append((end, number, within))
                if method is not None:
                    within = self.opened(number, within, rule)
                number += 1
            else:
                method(self, number, within, rule)
                text, number = afters[number], end
            if text:
                self.text(text, within)
            while around and around[-1][0] == number:
                _, closed, within = around.pop()
                if afters[closed]:
                    self.text(afters[closed], within)

    def inside(self, number: int, within: Within) -> None:
        """Write what is inside of an element."""
        self.text(self.document.texts[number], within)
        self.between(number + 1, self.document.ends[number], within)

    def text(self, text: str, within: Within) -> None:
        if text := squashed(text):
            self.writer.text(within, text)

    def skip(self, number: int, within: Within, rule: _Rule) -> None:
        """Write nothing."""

    def opened(self, number: int, within: Within, rule: _Rule) -> Within:
        """Write the line of an element; gives where what is inside of it stands."""
        name = self.name(number, rule.role) if rule.name is None else rule.name
        return self.writer.add(within, rule.role, name, self.rest(number, rule), bid=str(number))

    def rest(self, number: int, rule: _Rule) -> str:
        """Return what the line of an element that is no control says after its name."""
        if number != self.document.focused and (rule.tall or self.document.is_filled(number)):
            return rule.rests[self.visible]
        return self.traits(number, rule, rule.properties)

    def plain(self, number: int, within: Within, rule: _Rule) -> None:
        """Write an element that holds no other."""
        text = squashed(self.document.texts[number])
        if not text:
            self.opened(number, within, rule)
            return
        name = rule.name
        if name is None:
            name = text if rule.worded else self.name(number, rule.role)
        more = self.rest(number, rule)
        self.writer.worded(within, rule.role, name, text, more=more, bid=str(number))

    def paragraph(self, number: int, within: Within, rule: _Rule) -> None:
        if self.is_picture(number):
            self.inside(number, within)
        elif self.document.ends[number] == number + 1:
            self.plain(number, within, rule)
        else:
            self.inside(number, self.opened(number, within, rule))

    def term(self, number: int, within: Within, rule: _Rule) -> None:
        if not self.colons and self.document.ends[number] == number + 1:
            self.plain(number, within, rule)
            return
        inside = self.opened(number, within, rule)
        self.inside(number, inside)
        if self.colons:
            self.text(":", inside)

    def summary(self, number: int, within: Within, rule: _Rule) -> None:
        role, properties = rule.role, rule.properties
        details = self.document.parents[number]
        if details >= 0:
            properties = (*properties, f"expanded={details in self.document.unfolded}")
            named = "name" in self.document.openings[details].attributes
            role += "Grouped" if named else ""
        name = self.name(number, role) if rule.name is None else rule.name
        self.inside(number, self.add(number, within, rule, role, name, properties=properties))

    def details(self, number: int, within: Within, rule: _Rule) -> None:
        inside = self.opened(number, within, rule)
        if number in self.document.unfolded:
            self.inside(number, inside)
        elif (summary := self.document.summary(number)) is not None:
            self.between(summary, summary + 1, inside)

    def add(
        self,
        number: int,
        within: Within,
        rule: _Rule,
        role: str,
        name: str,
        *,
        properties: Sequence[str] = (),
        value: object = "",
        state: str = "",
    ) -> Within:
        """Write the line of an element; ``state`` is its value as agents see it."""
        more = self.traits(number, rule, properties)
        if value != "":
            more = f" value={value!r}{more}"
        return self.writer.add(within, role, name, more, bid=str(number), state=state)

    def traits(self, number: int, rule: _Rule, properties: Sequence[str]) -> str:
        """Return what a line says of its element after the name and the value."""
        more = ""
        if rule.tall or self.document.is_filled(number):
            more = f"{rule.more}, visible" if self.visible else rule.more
        # Of a date, one of its parts has the focus.
        if number == self.document.focused and rule.role != "Date":
            properties = [*properties, "focused"]
            self.writer.focused = str(number)
        return ", ".join([more, *sorted(properties)]) if properties else more

    # --- names ---

    def name(self, number: int, role: str) -> str:
        """Return the name that an element has from others."""
        opening = self.document.openings[number]
        if label := self.label_of(number):
            return label
        if opening.tag == "fieldset":
            legend = (n for n in self.document.children(number) if self.tag(n) == "legend")
            return next((squashed(self.document.text(n)) for n in legend), "")
        if role in _FROM_CONTENT:
            text = squashed(" ".join(self.parts(number)))
            return f"{text}:" if role == "term" and self.colons else text
        return ""

    def label_of(self, number: int) -> str:
        """Return the name that an element's ARIA attributes give it."""
        document, attributes = self.document, self.document.openings[number].attributes
        if named_by := attributes.get("aria-labelledby", "").split():
            return squashed(" ".join(document.text(document.by_id[key]) for key in named_by))
        return squashed(attributes["aria-label"]) if "aria-label" in attributes else ""

    def labelled(self, number: int) -> str:
        document = self.document
        if label := self.label_of(number):
            return label
        named_by = document.labels.get(document.openings[number].attributes.get("id", ""))
        return "" if named_by is None else squashed(document.text(named_by))

    def parts(self, number: int) -> Iterator[str]:
        """Yield the texts that an element has its name from."""
        document = self.document
        summary = None
        if closed := self.tag(number) == "details" and number not in document.unfolded:
            summary = document.summary(number)
        else:
            yield document.texts[number]
        for child in document.children(number):
            if closed and child != summary:
                continue
            opening = document.openings[child]
            if opening.tag == "img":
                yield opening.attributes.get("alt", "")
            elif opening.tag != "form":
                if label := opening.attributes.get("aria-label"):
                    yield label
                else:
                    yield from self.parts(child)
            if not closed:
                yield document.afters[child]

    def tag(self, number: int) -> str:
        return self.document.openings[number].tag

    def is_picture(self, number: int) -> bool:
        """Tell whether an element holds pictures alone, or nothing."""
        document = self.document
        inside = range(number + 1, document.ends[number])
        return not document.texts[number].strip() and all(
            self.tag(n) == "img" and not document.afters[n].strip() for n in inside
        )

    # --- controls ---

    def label(self, number: int, within: Within, rule: _Rule) -> None:
        document = self.document
        control = document.by_id.get(document.openings[number].attributes.get("for", ""))
        if control is not None and document.openings[control].kind in TICKED:
            return
        self.inside(number, self.add(number, within, rule, "LabelText", ""))

    def ticked(self, number: int, within: Within, rule: _Rule) -> None:
        checked = "true" if number in self.document.checked else "false"
        properties = [f"checked={checked!r}", *rule.properties]
        name = self.labelled(number)
        self.add(number, within, rule, rule.role, name, properties=properties, state=checked)

    def typed(self, number: int, within: Within, rule: _Rule) -> None:
        value, name = self.document.value(number), self.labelled(number)
        properties = [*rule.properties, *self.required(number)]
        inside = self.add(
            number, within, rule, rule.role, name, properties=properties, value=value, state=value
        )
        for line in value.split("\n"):
            self.text(line, inside)

    def number(self, number: int, within: Within, rule: _Rule) -> None:
        value, attributes = self.document.value(number), self.document.openings[number].attributes
        amount = float(value) if value else 0.0
        shown: object = "" if not value else int(amount) if amount.is_integer() else amount
        most, least = (attributes.get(name, "0") for name in ("max", "min"))
        limits = (f"valuemax={most}", f"valuemin={least}", f"valuetext={value!r}")
        inside = self.add(
            number,
            within,
            rule,
            "spinbutton",
            self.labelled(number),
            properties=[*rule.properties, *self.required(number), *limits],
            value=shown,
            state=str(shown),
        )
        self.text(value, inside)

    def file(self, number: int, within: Within, rule: _Rule) -> None:
        name = self.labelled(number) or "Choose File"
        value = self.document.value(number) or "No file chosen"
        self.add(
            number, within, rule, "button", name,
            properties=rule.properties, value=value, state=value,
        )  # fmt: skip

    def date(self, number: int, within: Within, rule: _Rule) -> None:
        value, name = self.document.value(number), self.labelled(number)
        inside = self.add(
            number, within, rule, "Date", name,
            properties=rule.properties, value=value, state=value,
        )  # fmt: skip
        year, month, day = [*value.split("-"), "", ""][:3] if value else ("", "", "")
        for (part, most, shown), typed in zip(_DATE_PARTS, (month, day, year), strict=True):
            if part != "Month":
                self.writer.add(inside, "StaticText", "/")
            focus = ", focused" if part == "Month" and number == self.document.focused else ""
            more = f" value={int(typed or 0)}{focus}, valuemax={most}, valuemin=1, valuetext=''"
            spin = self.writer.add(inside, "spinbutton", f"{part} {part}", more)
            self.writer.add(spin, "StaticText", typed or shown)
        picker = "Show date picker Show date picker"
        self.writer.add(inside, "button", picker, ", hasPopup='menu'")

    def choice(self, number: int, within: Within, rule: _Rule) -> None:
        document = self.document
        options = document.options(number)
        chosen = next((option for option in options if option in document.checked), None)
        name = self.labelled(number)
        if "size" in document.openings[number].attributes:
            properties = [*rule.properties, "multiselectable=False", "orientation='vertical'"]
            properties += self.required(number)
            inside = self.add(number, within, rule, "listbox", name, properties=properties)
            self.options(options, inside, chosen, ", visible")
            return
        value = document.label(chosen) if chosen is not None else ""
        popup = (f"expanded={number == document.opened}", "hasPopup='menu'")
        properties = [*rule.properties, *popup, *self.required(number)]
        inside = self.add(
            number, within, rule, "combobox", name, properties=properties, value=value, state=value
        )
        self.options(options, self.writer.add(inside, "MenuListPopup", ""), chosen)

    def options(
        self, options: list[int], inside: Within, chosen: int | None, more: str = ""
    ) -> None:
        for option in options:
            selected = option == chosen
            self.writer.add(
                inside, "option", self.document.label(option), f"{more}, selected={selected}",
                bid=str(option), state=str(selected).lower(),
            )  # fmt: skip

    def required(self, number: int) -> tuple[str, ...]:
        stated = "required" in self.document.openings[number].attributes
        return ("required",) if stated else ()


_CONTROLS = {"label": _Walk.label, "select": _Walk.choice, "textarea": _Walk.typed}
_OF_INPUTS = {
    "checkbox": _Walk.ticked, "date": _Walk.date, "file": _Walk.file, "number": _Walk.number,
    "radio": _Walk.ticked,
}  # fmt: skip
_OF_TAGS = {
    "details": _Walk.details, "dt": _Walk.term, "p": _Walk.paragraph, "summary": _Walk.summary,
}  # fmt: skip


def _rule(opening: OpeningTag) -> _Rule:
    """Return how the elements of an opening tag are written."""
    attributes, tag, kind = opening.attributes, opening.tag, opening.kind
    silent = tag == "img" and not attributes.get("alt")  # for the eye alone
    if silent or kind == "hidden" or "inert" in attributes or "hidden" in attributes:
        return _Rule(_Walk.skip)
    role = attributes.get("role") or ROLES.get(tag)
    if "role" in attributes and role not in EXPLICIT:
        raise ValueError(f"the role {role!r} has no rule in the text engine")
    if role is None and tag in TRANSPARENT:
        if tag != "section" or not attributes.keys() & {"aria-label", "aria-labelledby"}:
            return _Rule()
        role = "region"
    if role is None:
        raise ValueError(f"<{tag}> has no rule in the text engine")
    properties = ("disabled=True",) if "disabled" in attributes else ()
    more = ", clickable" if tag in _CLICKABLE else ""
    if kind:
        if kind not in INPUTS:
            raise ValueError(f"<input type={kind!r}> has no rule in the text engine")
        role = attributes.get("role", INPUTS[kind])
        return _Rule(_OF_INPUTS.get(kind, _Walk.typed), role, None, properties, more)
    if tag in _CONTROLS:
        return _Rule(_CONTROLS[tag], role, None, properties, more)
    return _plain_rule(opening, role, properties, more)


def _plain_rule(opening: OpeningTag, role: str, properties: tuple[str, ...], more: str) -> _Rule:
    attributes, tag = opening.attributes, opening.tag
    if role == "header":
        role = "rowheader" if attributes.get("scope") == "row" else "columnheader"
    if attributes.get("aria-modal") == "true":
        properties = (*properties, "modal=True")
    method = _OF_TAGS.get(tag, _Walk.plain) if "role" not in attributes else _Walk.plain
    name: str | None = squashed(attributes.get("aria-label", ""))
    if tag == "img":
        name = name or squashed(attributes.get("alt", ""))
    by_others = "aria-labelledby" in attributes or tag == "fieldset"
    if "aria-labelledby" in attributes or (not name and (by_others or role in _FROM_CONTENT)):
        name = None
    rests = tuple(", ".join([start, *sorted(properties)]) for start in (more, f"{more}, visible"))
    return _Rule(
        method, role, name, properties, more, not by_others, tag not in _FLAT, (rests[0], rests[1])
    )
