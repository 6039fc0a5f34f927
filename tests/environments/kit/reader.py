"""A document read back with the standard library's parser: what a browser would find in it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from html.parser import HTMLParser

VOID = {"meta", "link", "input", "img"}


@dataclass
class Control:
    """A control: ``name`` is its accessible name, ``sends`` what goes with the form untouched."""

    tag: str
    kind: str
    name: str
    field: str
    sends: str | None
    options: list[tuple[str, str]] = dataclasses.field(default_factory=list)


@dataclass
class FormFound:
    method: str
    action: str
    hidden: dict[str, str] = dataclasses.field(default_factory=dict)
    submit: str = ""
    controls: list[Control] = dataclasses.field(default_factory=list)


class Document(HTMLParser):
    """Reads a document; ``texts`` are the pieces of its text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.attributes: set[str] = set()
        self.links: list[tuple[str, str]] = []
        self.forms: list[FormFound] = []
        self.images: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self._open: list[tuple[str, dict[str, str], list[str]]] = []
        self._labels: dict[str, str] = {}
        self._ids: dict[str, Control] = {}
        self._legend = ""
        self.feed(html)
        self.close()
        assert not self._open, "every element is closed"
        for key, label in self._labels.items():
            self._ids[key].name = self._ids[key].name or label

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        assert len(found) == len(attrs), "no attribute twice"
        self.tags[tag] += 1
        self.attributes |= found.keys()
        if tag == "form":
            self.forms.append(FormFound(found["method"], found["action"]))
        elif tag == "input":
            self._input(found)
        elif tag == "img":
            self.images.append((found["src"], found["alt"]))
        if tag not in VOID:
            self._open.append((tag, found, []))
            if tag in ("select", "textarea"):
                name = found.get("aria-label", "")
                self._control(Control(tag, tag, name, found["name"], ""), found)

    def _input(self, found: dict[str, str]) -> None:
        form, kind = self.forms[-1], found["type"]
        if kind == "hidden":
            assert found["name"] not in form.hidden
            form.hidden[found["name"]] = found["value"]
            return
        sends: str | None = found.get("value", "")
        if kind in ("checkbox", "radio") and "checked" not in found:
            sends = None
        group = self._legend if kind == "radio" else found.get("aria-label", "")
        if kind == "radio" and form.controls and form.controls[-1].field == found["name"]:
            control = form.controls[-1]
            control.sends = sends if sends is not None else control.sends
        else:
            control = Control("input", kind, group, found["name"], sends)
            self._control(control, {} if kind == "radio" else found)
        if kind == "radio":
            option = Control("input", "option", "", "", found["value"])
            self._ids[found["id"]] = option
            control.options.append((found["value"], found["id"]))

    def _control(self, control: Control, found: dict[str, str]) -> None:
        self.forms[-1].controls.append(control)
        if "id" in found:
            assert found["id"] not in self._ids, "ids are unique"
            self._ids[found["id"]] = control

    def handle_endtag(self, tag: str) -> None:
        opened, found, pieces = self._open.pop()
        assert opened == tag, "elements nest"
        text = "".join(pieces)
        said = found.get("aria-label") or text
        if tag == "a":
            self.links.append((said, found["href"]))
        elif tag == "button":
            self.forms[-1].submit = said
        elif tag == "label":
            self._labels[found["for"]] = text
        elif tag == "legend":
            self._legend = text
        elif tag == "textarea":
            self.forms[-1].controls[-1].sends = text.removeprefix("\n")
        elif tag == "option":
            control = self.forms[-1].controls[-1]
            control.options.append((found["value"], text))
            if "selected" in found or len(control.options) == 1:
                control.sends = found["value"]

    def handle_data(self, data: str) -> None:
        if self._open:
            for _, _, pieces in self._open:
                pieces.append(data)
            self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data!r}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration: {data!r}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"an instruction: {data!r}")

    def option_names(self, control: Control) -> list[tuple[str, str]]:
        """Values and names of a control's options."""
        if control.kind != "radio":
            return control.options
        return [(value, self._ids[key].name) for value, key in control.options]
