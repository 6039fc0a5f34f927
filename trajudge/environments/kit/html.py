"""A page as an HTML document in a theme: plain HTML, no scripts, everything escaped.

Every control has the role that its kind has in HTML and the accessible name that its label has
(``theme.name_of``). What is sent by a form that nobody touched is what the model says.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from trajudge.environments.kit.arrange import arranged, navigation
from trajudge.environments.kit.chart import HEIGHT, WIDTH
from trajudge.environments.kit.layout import PageLayout, address
from trajudge.environments.kit.style import body_class, style
from trajudge.environments.kit.theme import name_of, printable
from trajudge.environments.model.page import (
    Block,
    Chart,
    DefinitionList,
    Field,
    Form,
    ItemList,
    Label,
    Link,
    ListRow,
    Notice,
    Option,
    Overlay,
    Page,
    Paragraph,
    Section,
    Word,
)

NONCE = "_nonce"
FEW = 8  # options that are shown as radio buttons, where the theme likes these
# A served document's policy is in its headers.
_POLICY = (
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    "style-src 'unsafe-inline'; img-src 'self' file: data:; form-action 'none'; "
    "base-uri 'none'\">"
)


def render(page: Page, shell: PageLayout) -> str:
    """Return the document. Raises KeyError for a Word that has no wording and ValueError for a row
    with more or fewer cells than its list has columns."""
    return HtmlRenderer(shell).document(page)


def _escaped(text: str) -> str:
    """Return text for an element or a quoted attribute."""
    return html.escape(printable(text)).replace("\r", "&#13;")


def _offered(field: Field) -> tuple[Option, ...]:
    """Return the options, after one that stands for a value which is none of them: without it a
    browser would send the first, which nobody chose."""
    if any(option.value == field.value for option in field.options):
        return field.options
    return (Option(field.value, Word("choose")), *field.options)


class HtmlRenderer:
    """Writes one document; counts the controls to tie labels to them."""

    def __init__(self, shell: PageLayout) -> None:
        self.shell, self.theme, self.words = shell, shell.theme, shell.words
        self.controls = 0
        # What a dialog covers is out of reach for the keyboard too.
        self.covered = any(overlay.modal for overlay in shell.noise)
        self.off = " disabled" if shell.still else ""

    # --- the frame ---

    def document(self, page: Page) -> str:
        title = self.name(page.title)
        main = f"<main><h1>{title}</h1>{self.blocks(page.blocks, 2)}</main>"
        nav = self.nav()
        content = f"{main}{nav}" if self.theme.nav == "bottom" else f"{nav}{main}"
        shop = _escaped(self.shell.title)
        inert = " inert" if self.covered else ""
        policy = _POLICY if self.shell.still else ""
        over = "".join(map(self.overlay, self.shell.noise))
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">{policy}'
            # Else the browser asks for one, at a moment of its own.
            '<link rel="icon" href="data:,">'
            f"<title>{title} - {shop}</title><style>{style(self.theme)}</style></head>"
            f'<body class="{body_class(self.theme)}"><div class="page"{inert}>'
            f'<header><p class="brand">{shop}</p></header>{content}'
            f"<footer><p>{shop}</p></footer></div>{over}</body></html>\n"
        )

    def nav(self) -> str:
        links = navigation(self.shell.navigation, self.theme)
        entries = "".join(f"<li>{self.link(link)}</li>" for link in links)
        return f"<nav><ul>{entries}</ul></nav>" if entries else ""

    def overlay(self, overlay: Overlay) -> str:
        kind, role = "bar", 'role="region"' + (" inert" if self.covered else "")
        if overlay.modal:
            kind, role = "dialog", 'role="dialog" aria-modal="true"'
        title = _escaped(overlay.title)
        return (
            f'<div class="{kind}" {role} aria-label="{title}"><div class="box">'
            f'<div><p class="name">{title}</p><p>{_escaped(overlay.text)}</p></div>'
            f'<form method="post" action="{_escaped(overlay.action)}">'
            f"{self.button(overlay.dismiss)}</form></div></div>"
        )

    # --- labels ---

    def name(self, label: Label) -> str:
        return _escaped(name_of(label, self.words))

    def shown(self, label: Label) -> str:
        """Return what is seen of a control's label: without what it applies to."""
        return _escaped(self.words[label.key]) if isinstance(label, Word) else self.name(label)

    def aria(self, label: Label) -> str:
        """Return the accessible name, where it says more than what is seen."""
        whole = isinstance(label, Word) and label.of
        return f' aria-label="{self.name(label)}"' if whole else ""

    # --- blocks ---

    def blocks(self, blocks: tuple[Block, ...], level: int) -> str:
        return "".join(self.block(block, level) for block in arranged(blocks, self.theme))

    def block(self, block: Block, level: int) -> str:  # noqa: PLR0911 - one a kind
        match block:
            case Paragraph(text):
                content = self.name(text) if isinstance(text, Word) else _escaped(text)
                return f'<p class="text">{content}</p>'
            case Notice(text, error):
                role = "alert" if error else "status"
                return f'<p class="notice {role}" role="{role}">{self.name(text)}</p>'
            case Link():
                return f'<p class="more">{self.link(block)}</p>'
            case Form():
                return self.form(block)
            case DefinitionList(rows):
                return self.facts(rows)
            case ItemList():
                return self.items(block)
            case Chart(title):
                src = _escaped(self.shell.chart(block))
                size = f'width="{WIDTH}" height="{HEIGHT}"'
                return f'<p class="chart"><img src="{src}" alt="{_escaped(title)}" {size}></p>'
            case Section(title, inner):
                heading = f"<h{level}>{self.name(title)}</h{level}>"
                return f"<section>{heading}{self.blocks(inner, min(level + 1, 6))}</section>"

    def link(self, link: Link) -> str:
        href = _escaped(self.shell.page(link.page, link.args))
        return f'<a href="{href}"{self.aria(link.label)}>{self.shown(link.label)}</a>'

    def facts(self, rows: tuple[tuple[Label, str], ...]) -> str:
        pairs = [(self.name(label), _escaped(value)) for label, value in rows]
        if self.theme.items == "table":
            body = "".join(f'<tr><th scope="row">{n}</th><td>{v}</td></tr>' for n, v in pairs)
            return f'<div class="wide"><table class="facts"><tbody>{body}</tbody></table></div>'
        body = "".join(f"<div><dt>{n}</dt><dd>{v}</dd></div>" for n, v in pairs)
        return f'<dl class="facts">{body}</dl>'

    # --- lists ---

    def items(self, items: ItemList) -> str:
        if not items.rows:
            return f'<p class="empty">{self.name(items.empty)}</p>'
        columns = [self.name(column) for column in items.columns]
        if self.theme.items == "table":
            return self.table(items, columns)
        kind = self.theme.items
        rows = "".join(f"<li>{self.entry(row, columns)}</li>" for row in items.rows)
        return f'<ul class="{kind}">{rows}</ul>'

    def table(self, items: ItemList, columns: list[str]) -> str:
        acts = any(row.forms for row in items.rows)
        heads = [*columns, self.name(Word("actions"))] if acts else columns
        head = "".join(f'<th scope="col">{column}</th>' for column in heads)
        body = "".join(
            f"<tr>{self.cells(row, columns)}{self.deeds(row, 'td') if acts else ''}</tr>"
            for row in items.rows
        )
        return (
            f'<div class="wide"><table class="items"><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>"
        )

    def cells(self, row: ListRow, columns: list[str]) -> str:
        pairs = zip(columns[1:], row.cells, strict=True)
        rest = "".join(f"<td>{_escaped(cell)}</td>" for _, cell in pairs)
        return f"<td>{self.head(row)}</td>{rest}"

    def entry(self, row: ListRow, columns: list[str]) -> str:
        pairs = "".join(
            f"<div><dt>{name}</dt><dd>{_escaped(cell)}</dd></div>"
            for name, cell in zip(columns[1:], row.cells, strict=True)
        )
        cells = f"<dl>{pairs}</dl>" if pairs else ""
        deeds = self.deeds(row, "div") if row.forms else ""
        return f'<p class="name">{self.head(row)}</p>{cells}{deeds}'

    def head(self, row: ListRow) -> str:
        return self.link(row.link) if isinstance(row.link, Link) else _escaped(row.link)

    def deeds(self, row: ListRow, tag: str) -> str:
        return f'<{tag} class="deeds">{"".join(map(self.form, row.forms))}</{tag}>'

    # --- forms ---

    def form(self, form: Form) -> str:
        attributes, sent = ("", "") if self.shell.still else self.sending(form)
        fields = "".join(map(self.field, form.fields))
        kind = "" if form.fields else ' class="bare"'
        # The site answers a wrong entry itself: a browser's bubble is in no document.
        return (
            f'<form{attributes} novalidate autocomplete="off"{kind}>{sent}{fields}'
            f'<div class="send">{self.button(form.submit)}</div></form>'
        )

    def sending(self, form: Form) -> tuple[str, str]:
        """Return how and where a form is sent to, and what is sent along."""
        hidden = dict(form.hidden)
        if form.page:
            method, action = "get", address(form.page, {})
        else:
            method, action = "post", f"/do/{quote(form.operation, safe='')}"
            hidden[NONCE] = self.shell.nonce(form)
        sent = "".join(
            f'<input type="hidden" name="{_escaped(name)}" value="{_escaped(value)}">'
            for name, value in hidden.items()
        )
        return f' method="{method}" action="{_escaped(action)}"', sent

    def button(self, label: Label) -> str:
        return f'<button type="submit"{self.off}{self.aria(label)}>{self.shown(label)}</button>'

    def field(self, field: Field) -> str:
        few = field.input == "choice" and 0 < len(field.options) <= FEW
        if few and self.theme.choice == "radio":
            return self.radios(field)
        self.controls += 1
        key = f"c{self.controls}"
        label = f'<label for="{key}">{self.shown(field.label)}</label>'
        control = self.control(field, f' id="{key}"{self.aria(field.label)}')
        if field.input == "tick":
            return f'<div class="tick">{control}{label}</div>'
        parts = control + label if self.theme.labels == "after" else label + control
        return f'<div class="field">{parts}</div>'

    def control(self, field: Field, marks: str) -> str:
        attributes = f'{marks}{self.off} name="{_escaped(field.name)}"'
        attributes += " required" if field.required else ""
        value = _escaped(field.value)
        match field.input:
            case "long":  # a parser drops one line break after the tag
                return f'<textarea{attributes} rows="4">\n{value}</textarea>'
            case "choice":
                options = "".join(self.options(_offered(field), field.value))
                return f"<select{attributes}>{options}</select>"
            case "tick":
                checked = " checked" if field.value == "on" else ""
                return f'<input type="checkbox"{attributes} value="on"{checked}>'
            case _:
                return f'<input type="{field.input}"{attributes} value="{value}">'

    def options(self, options: Iterable[Option], value: str) -> Iterator[str]:
        for option in options:
            chosen = " selected" if option.value == value else ""
            sent = _escaped(option.value)
            yield f'<option value="{sent}"{chosen}>{self.name(option.label)}</option>'

    def radios(self, field: Field) -> str:
        needed = self.off + (" required" if field.required else "")
        entries = []
        for option in _offered(field) if field.value else field.options:
            self.controls += 1
            chosen = " checked" if option.value == field.value else ""
            entries.append(
                f'<div class="tick"><input type="radio" id="c{self.controls}" '
                f'name="{_escaped(field.name)}" value="{_escaped(option.value)}"{chosen}{needed}>'
                f'<label for="c{self.controls}">{self.name(option.label)}</label></div>'
            )
        legend = f"<legend>{self.name(field.label)}</legend>"
        return f'<fieldset>{legend}<div class="radios">{"".join(entries)}</div></fieldset>'
