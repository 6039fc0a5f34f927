"""A served page without a browser: the controls in its HTML, with their roles and names.

It knows the HTML that the applications write (no scripts), and reads it with the standard library's
parser alone, so that nothing here depends on how the pages are rendered.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset({"meta", "link", "input", "img", "br", "hr"})
_ROLES = {"search": "searchbox", "number": "spinbutton", "date": "Date", "text": "textbox"}


@dataclass
class PlainForm:
    """A form: where it goes, and its fields' values as they stand (None: nothing is sent)."""

    method: str
    action: str
    fields: list[PlainControl] = field(default_factory=list)

    @property
    def sent(self) -> list[tuple[str, str]]:
        """What a browser sends, in the order of the page."""
        return [(one.key, one.value) for one in self.fields if one.key and one.value is not None]


@dataclass
class PlainControl:
    """A control. ``key`` is the name that it is sent by, ``value`` what it sends now, None for
    nothing; ``own`` what a ticked box or a chosen radio button sends."""

    role: str
    name: str = ""
    form: PlainForm | None = None
    key: str = ""
    value: str | None = None
    own: str = ""
    href: str = ""
    group: str = ""
    in_dialog: bool = False
    inert: bool = False
    options: list[tuple[str, str]] = field(default_factory=list)


class PlainPage(HTMLParser):
    """The controls of a document in order, its title, and its text with alerts marked."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.controls: list[PlainControl] = []
        self.title = ""
        self.lines: list[str] = []
        self._open: list[tuple[str, dict[str, str], list[str]]] = []
        self._form: PlainForm | None = None
        self._ids: dict[str, PlainControl] = {}
        self._labels: list[tuple[str, str]] = []
        self._group = ""
        self.feed(html)
        self.close()
        for key, text in self._labels:
            if key in self._ids and not self._ids[key].name:
                self._ids[key].name = text

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._form = PlainForm(found.get("method", "get"), found.get("action", ""))
        elif tag == "input":
            self._input(found)
        elif tag in ("a", "button", "select", "textarea"):
            self._control(tag, found)
        if tag not in _VOID:
            self._open.append((tag, found, []))

    def _control(self, tag: str, found: dict[str, str]) -> None:
        role = {"a": "link", "button": "button", "select": "combobox"}.get(tag, "textbox")
        made = self._add(PlainControl(role, found.get("aria-label", "")), found)
        made.href = found.get("href", "")
        if tag in ("select", "textarea"):
            made.key, made.value = found.get("name", ""), ""
            self._sends(made)

    def _input(self, found: dict[str, str]) -> None:
        kind = found.get("type", "text")
        name, value = found.get("name", ""), found.get("value", "")
        if kind == "hidden":
            self._sends(PlainControl("hidden", form=self._form, key=name, value=value))
            return
        role = kind if kind in ("radio", "checkbox") else _ROLES.get(kind, "textbox")
        made = self._add(PlainControl(role, found.get("aria-label", ""), key=name), found)
        made.own, made.value = value, value
        made.group = self._group if kind == "radio" else ""
        if kind in ("radio", "checkbox") and "checked" not in found:
            made.value = None
        self._sends(made)

    def _add(self, made: PlainControl, found: dict[str, str]) -> PlainControl:
        made.form = self._form
        made.in_dialog = any(attrs.get("role") == "dialog" for _, attrs, _ in self._open)
        made.inert = any("inert" in attrs for _, attrs, _ in self._open)
        self.controls.append(made)
        if "id" in found:
            self._ids[found["id"]] = made
        return made

    def _sends(self, made: PlainControl) -> None:
        if self._form is not None:
            self._form.fields.append(made)

    def handle_endtag(self, tag: str) -> None:
        while self._open:
            opened, found, pieces = self._open.pop()
            if opened == tag:
                break
        else:
            return
        text = " ".join("".join(pieces).split())
        if tag in ("a", "button"):
            control = next(c for c in reversed(self.controls) if c.role in ("link", "button"))
            control.name = control.name or text
        elif tag == "textarea":
            self.controls[-1].value = "".join(pieces).removeprefix("\n")
        elif tag == "option":
            self._option(found, text)
        elif tag == "label":
            self._labels.append((found.get("for", ""), text))
        elif tag == "legend":
            self._group = text
        elif tag == "title":
            self.title = text
        elif tag == "form":
            self._form = None
        elif tag == "fieldset":
            self._group = ""
        if found.get("role") == "alert":
            self.lines.append(f"alert {text!r}")

    def _option(self, found: dict[str, str], text: str) -> None:
        select = self.controls[-1]
        select.options.append((found.get("value", ""), text))
        if "selected" in found or len(select.options) == 1:
            select.value = found.get("value", "")

    def handle_data(self, data: str) -> None:
        for _, _, pieces in self._open:
            pieces.append(data)
        if data.strip() and self._open and self._open[-1][0] != "style":
            self.lines.append(f"StaticText {data.strip()!r}")
