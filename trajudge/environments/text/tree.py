"""The accessibility tree of a document as Chromium 156 builds it, without a layout.

The rules were read off the trees of Chromium itself; ``tests/environments/text`` holds both
together on the pages of all applications. A tag or role that no rule names raises ValueError, so
that a new widget cannot be shown wrongly in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from trajudge.environments.chromium.axtree import (
    AccessibilityTree,
    Lengths,
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
    role or type of input that it does not know.

    Of a document that was written before, only what changed is written again."""
    walk: _Walk | None = document.written
    if walk is None or walk.visible != visible or not walk.renew():
        walk = document.written = _Walk(document, visible=visible)
    return walk.tree


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


class _Rule(NamedTuple):
    """How the elements of an opening tag are written: by which method of the walk, as which role,
    with which name (None: it follows from others, where it is ``worded`` from what is inside) and
    properties. ``more`` is what every line of the kind says, ``acts`` tells that an element can
    have the focus or a value."""

    method: Callable[[_Walk, HtmlElement, Within, _Rule], None]
    role: str = ""
    name: str | None = None
    properties: tuple[str, ...] = ()
    more: str = ""
    acts: bool = False
    worded: bool = False


class _State(NamedTuple):
    """What a tree depends on beside the document."""

    held: Sequence[tuple[object, ...]]
    focused: HtmlElement | None
    opened: HtmlElement | None
    left: bool
    unfolded: list[HtmlElement]


class _Spot(NamedTuple):
    """Where an element that acts was written, with what is inside it."""

    element: HtmlElement
    within: Within
    since: Lengths


class _Walk:
    """Writes a document; ``tree`` is what it comes to."""

    def __init__(self, document: PageDocument, *, visible: bool) -> None:
        self.document = document
        self.visible = visible
        self.writer = TreeWriter()
        # Theme "lines" writes a colon after terms by its style sheet.
        self.colons = "items-lines" in document.classes
        self.spots: dict[HtmlElement, _Spot] = {}
        self.spot: _Spot | None = None  # the one that is being written
        self.state = self.now()
        focused = "" if document.left else ", focused"
        self.children(
            document.body, self.writer.add(Within(), "RootWebArea", document.title, focused)
        )
        self.tree = self.writer.tree()

    def now(self) -> _State:
        document = self.document
        held = [(each.value, each.checked, each.chosen) for each in document.controls]
        unfolded = [each for each in document.details if "open" in each.attributes]
        return _State(held, document.focused, document.opened, document.left, unfolded)

    def renew(self) -> bool:
        """Write again what has another state than in the tree. Gives False where that is no matter
        of single elements."""
        before, state = self.state, self.now()
        if (before.left, before.unfolded) != (state.left, state.unfolded):
            return False
        if before == state:
            return True
        self.state = state
        pairs = zip(self.document.controls, before.held, state.held, strict=True)
        changed: set[HtmlElement | None] = {each for each, was, now in pairs if was != now}
        if before.opened is not state.opened:
            changed |= {before.opened, state.opened}
        changed |= {before.focused, state.focused}
        writer, self.writer.focused = self.writer, None
        for spot in {self.spots[each] for each in changed if each and each in self.spots}:
            self.writer, self.spot = TreeWriter(), spot
            self.element(spot.element, spot.within)
            writer.replace(spot.since, self.writer)
            writer.focused = self.writer.focused or writer.focused
        self.writer, self.spot = writer, None
        self.tree = writer.tree()
        return True

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
        opening = element.opening
        rule: _Rule | None = opening.rule
        if rule is None:
            rule = opening.rule = _rule(opening)
        if not rule.acts or self.spot is not None:
            rule.method(self, element, within, rule)
            if self.spot is not None and rule.acts:
                self.spots[element] = self.spot
            return
        since = self.writer.lengths()
        self.spot = self.spots[element] = _Spot(element, within, since)
        rule.method(self, element, within, rule)
        self.spot = None
        self.writer.join(since)

    def skip(self, element: HtmlElement, within: Within, rule: _Rule) -> None:
        """Write nothing."""

    def inner(self, element: HtmlElement, within: Within, rule: _Rule) -> None:
        self.children(element, within)

    def paragraph(self, element: HtmlElement, within: Within, rule: _Rule) -> None:
        if _is_picture(element):
            self.children(element, within)
        else:
            self.plain(element, within, rule)

    def plain(self, element: HtmlElement, within: Within, rule: _Rule) -> None:
        name, role = rule.name, rule.role
        if len(element.children) == 1 and not (role == "term" and self.colons):
            [words] = element.children
            if isinstance(words, str) and (text := squashed(words)):
                if name is None:
                    name = text if rule.worded else self.name(element, role)
                focused = element is self.document.focused
                more = self.traits(rule, rule.properties, focused=focused)
                self.writer.worded(
                    within, role, name, text, more=more, bid=element.bid, focused=focused
                )
                return
        if name is None:
            name = self.name(element, role)
        inside = self.add(element, within, rule, role, name, properties=rule.properties)
        self.children(element, inside)
        if role == "term" and self.colons:
            self.text(":", inside)

    def summary(self, element: HtmlElement, within: Within, rule: _Rule) -> None:
        role, properties = rule.role, rule.properties
        if (details := element.parent) is not None:
            properties = (*properties, f"expanded={'open' in details.attributes}")
            role += "Grouped" if "name" in details.attributes else ""
        name = self.name(element, role) if rule.name is None else rule.name
        self.children(element, self.add(element, within, rule, role, name, properties=properties))

    def details(self, element: HtmlElement, within: Within, rule: _Rule) -> None:
        name = self.name(element, rule.role) if rule.name is None else rule.name
        inside = self.add(element, within, rule, rule.role, name, properties=rule.properties)
        if "open" in element.attributes:
            self.children(element, inside)
        elif (summary := element.summary) is not None:
            self.element(summary, inside)

    def add(
        self,
        element: HtmlElement,
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
        # Of a date, one of its parts has the focus.
        focused = role != "Date" and element is self.document.focused
        boxed = element.tag not in _FLAT or bool(element.children)
        more = self.traits(rule, properties, focused=focused, boxed=boxed)
        if value != "":
            more = f" value={value!r}{more}"
        return self.writer.add(
            within, role, name, more, bid=element.bid, state=state, focused=focused
        )

    def traits(
        self, rule: _Rule, properties: Sequence[str], *, focused: bool, boxed: bool = True
    ) -> str:
        """Return what a line says of its element after the name and the value."""
        more = (f"{rule.more}, visible" if self.visible else rule.more) if boxed else ""
        if focused:
            properties = [*properties, "focused"]
        return ", ".join([more, *sorted(properties)]) if properties else more

    def name(self, element: HtmlElement, role: str) -> str:
        """Return the name that an element has from others."""
        if label := self.label_of(element):
            return label
        if element.tag == "img":
            return squashed(element.attributes.get("alt", ""))
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

    def label(self, element: HtmlElement, within: Within, rule: _Rule) -> None:
        control = self.document.by_id.get(element.attributes.get("for", ""))
        if control is not None and control.kind in ("checkbox", "radio"):
            return
        self.children(element, self.add(element, within, rule, "LabelText", ""))

    def ticked(self, element: HtmlElement, within: Within, rule: _Rule) -> None:
        checked = "true" if element.checked else "false"
        properties = [f"checked={checked!r}", *rule.properties]
        self.add(
            element,
            within,
            rule,
            rule.role,
            self.labelled(element),
            properties=properties,
            state=checked,
        )

    def typed(self, element: HtmlElement, within: Within, rule: _Rule) -> None:
        value, name = element.value, self.labelled(element)
        properties = [*rule.properties, *_required(element)]
        inside = self.add(
            element, within, rule, rule.role, name, properties=properties, value=value, state=value
        )
        for line in value.split("\n"):
            self.text(line, inside)

    def number(self, element: HtmlElement, within: Within, rule: _Rule) -> None:
        value = element.value
        number = float(value) if value else 0.0
        shown: object = "" if not value else int(number) if number.is_integer() else number
        most, least = (element.attributes.get(name, "0") for name in ("max", "min"))
        limits = (f"valuemax={most}", f"valuemin={least}", f"valuetext={value!r}")
        inside = self.add(
            element,
            within,
            rule,
            "spinbutton",
            self.labelled(element),
            properties=[*rule.properties, *_required(element), *limits],
            value=shown,
            state=str(shown),
        )
        self.text(value, inside)

    def file(self, element: HtmlElement, within: Within, rule: _Rule) -> None:
        name = self.labelled(element) or "Choose File"
        value = element.value or "No file chosen"
        self.add(
            element,
            within,
            rule,
            "button",
            name,
            properties=rule.properties,
            value=value,
            state=value,
        )

    def date(self, element: HtmlElement, within: Within, rule: _Rule) -> None:
        value = element.value
        name = self.labelled(element)
        inside = self.add(
            element,
            within,
            rule,
            "Date",
            name,
            properties=rule.properties,
            value=value,
            state=value,
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

    def choice(self, element: HtmlElement, within: Within, rule: _Rule) -> None:
        chosen = element.chosen
        if "size" in element.attributes:
            self.listbox(element, within, rule, chosen)
            return
        value = chosen.label if chosen is not None else ""
        is_open = element is self.document.opened
        popup = (f"expanded={is_open}", "hasPopup='menu'")
        inside = self.add(
            element,
            within,
            rule,
            "combobox",
            self.labelled(element),
            properties=[*rule.properties, *popup, *_required(element)],
            value=value,
            state=value,
        )
        inside = self.writer.add(inside, "MenuListPopup", "")
        self.options(element, inside, chosen)

    def listbox(
        self, element: HtmlElement, within: Within, rule: _Rule, chosen: HtmlElement | None
    ) -> None:
        """Write a list that shows several of its options."""
        properties = [*rule.properties, "multiselectable=False", "orientation='vertical'"]
        properties += _required(element)
        inside = self.add(
            element, within, rule, "listbox", self.labelled(element), properties=properties
        )
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


_CONTROLS = {"label": _Walk.label, "select": _Walk.choice, "textarea": _Walk.typed}
_OF_INPUTS = {
    "checkbox": _Walk.ticked, "date": _Walk.date, "file": _Walk.file, "number": _Walk.number,
    "radio": _Walk.ticked,
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
            return _Rule(_Walk.inner)
        role = "region"
    if role is None:
        raise ValueError(f"<{tag}> has no rule in the text engine")
    properties = ("disabled=True",) if "disabled" in attributes else ()
    more = ", clickable" if tag in _CLICKABLE else ""
    if kind:
        if kind not in INPUTS:
            raise ValueError(f"<input type={kind!r}> has no rule in the text engine")
        role = attributes.get("role", INPUTS[kind])
        method = _OF_INPUTS.get(kind, _Walk.typed)
        return _Rule(method, role, None, properties, more, acts=True)
    if tag in _CONTROLS:
        return _Rule(_CONTROLS[tag], role, None, properties, more, acts=tag != "label")
    return _plain_rule(opening, role, properties, more)


def _plain_rule(opening: OpeningTag, role: str, properties: tuple[str, ...], more: str) -> _Rule:
    attributes, tag = opening.attributes, opening.tag
    if role == "header":
        role = "rowheader" if attributes.get("scope") == "row" else "columnheader"
    if attributes.get("aria-modal") == "true":
        properties = (*properties, "modal=True")
    methods = {"details": _Walk.details, "summary": _Walk.summary}
    if "role" not in attributes:
        methods["p"] = _Walk.paragraph
    name: str | None = squashed(attributes.get("aria-label", ""))
    by_others = "aria-labelledby" in attributes or tag in ("fieldset", "img")
    if "aria-labelledby" in attributes or (not name and (by_others or role in _FROM_CONTENT)):
        name = None
    method = methods.get(tag, _Walk.plain)
    acts = tag in _CLICKABLE
    return _Rule(method, role, name, properties, more, acts=acts, worded=not by_others)


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


def _required(element: HtmlElement) -> tuple[str, ...]:
    return ("required",) if "required" in element.attributes else ()
