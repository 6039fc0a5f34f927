"""A page as an HTML document in a theme: plain HTML, everything escaped.

The templates are in ``templates/``: a frame for each identity, which fills in ``page.html``, and in
``blocks.html`` a macro for each kind of block. A page works without scripts; ``data-widget`` marks
what ``kit.js`` makes more of. Every control has the role that its kind has in HTML and the
accessible name that its label has (``theme.name_of``). A form that nobody touched sends what the
model says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from types import FunctionType
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.compiler import CodeGenerator, Frame, MacroRef
from jinja2.ext import Extension
from jinja2.nodes import Call, Expr, Getattr
from jinja2.utils import missing
from markupsafe import Markup, escape

from trajudge.environments.kit.arrange import arranged, navigation
from trajudge.environments.kit.chart import HEIGHT, WIDTH
from trajudge.environments.kit.identities import IDENTITIES
from trajudge.environments.kit.layout import PageLayout, address
from trajudge.environments.kit.pictures import Drawn, picture, stars
from trajudge.environments.kit.reading import card_menu
from trajudge.environments.kit.style import SCRIPT, body_class, stylesheet
from trajudge.environments.kit.theme import UNPRINTABLE, name_of, printable
from trajudge.environments.model.page import (
    Block,
    Field,
    Form,
    ItemList,
    Label,
    Link,
    ListRow,
    Option,
    Page,
    Section,
    Word,
)

NONCE = "_nonce"
_RATING = re.compile(r"([0-4](?:\.\d)?|5(?:\.0)?) of 5")
_SPECIAL = re.compile(f"[&<>\"'\r]|{UNPRINTABLE}")
SHORT = 10  # characters of a word that stays in one line
FEW = 8  # options that are shown as radio buttons, where the theme likes these


def render(page: Page, shell: PageLayout) -> str:
    """Return the document. Raises KeyError for a Word that has no wording and ValueError for a row
    with more or fewer cells than its list has columns."""
    template = _templates().get_template(f"{shell.identity}.html")
    return str(template.render(page=page, v=PageView(shell)))


class OneLine(Extension):
    """Drop the line breaks and indentations of templates, which would be text of the page."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return "".join(line.strip() for line in source.splitlines())


class DirectGenerator(CodeGenerator):
    """Compile a template to plain Python: attributes and calls as they are written, macros as
    functions, one call of ``escaped`` a value. What Jinja does around each of them beside, for
    items, context functions and macros of unknown arguments, took two thirds of a page's time."""

    def visit_Getattr(self, node: Getattr, frame: Frame) -> None:
        self.visit(node.node, frame)
        self.write(f".{node.attr}")

    def visit_Call(self, node: Call, frame: Frame, forward_caller: bool = False) -> None:
        self.visit(node.node, frame)
        self.write("(")
        for argument in node.args:
            self.visit(argument, frame)
            self.write(", ")
        self.write(")")

    def macro_def(self, macro_ref: MacroRef, frame: Frame) -> None:
        self.write("environment.function(macro)")

    def _output_child_pre(self, node: Expr, frame: Frame, finalize: Any) -> None:
        self.write("environment.escaped(")

    def _output_child_post(self, node: Expr, frame: Frame, finalize: Any) -> None:
        self.write(")")


class KitEnvironment(Environment):
    """What the kit's templates are compiled and run with."""

    code_generator_class = DirectGenerator

    @staticmethod
    def concat(parts: Iterable[str]) -> Markup:
        """Return what a template wrote, which is escaped already."""
        return str.__new__(Markup, "".join(parts))

    @staticmethod
    def function(macro: FunctionType) -> FunctionType:
        """Return a macro as a function that knows which arguments it was not given."""
        macro.__defaults__ = (missing,) * macro.__code__.co_argcount
        return macro

    @staticmethod
    def escaped(value: Any) -> str:
        """Return a value as the document holds it."""
        if type(value) is Markup:
            return value
        text = str(value)
        if _SPECIAL.search(text) is None:
            return text
        return str(escape(printable(text))).replace("\r", "&#13;")


@cache
def _templates() -> Environment:
    return KitEnvironment(
        loader=PackageLoader("trajudge.environments.kit"),
        extensions=[OneLine],
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
    )


class PageView:
    """What the templates know of one document, ``v`` in them. Counts the controls, to tie labels to
    them."""

    chart_size = WIDTH, HEIGHT
    script = SCRIPT
    card_menu = staticmethod(card_menu)
    address = staticmethod(address)

    def __init__(self, shell: PageLayout) -> None:
        self.shell, self.theme, self.words = shell, shell.theme, shell.words
        self.macros: Any = _templates().get_template("blocks.html").module
        self.controls = 0
        # What a dialog covers is out of reach for the keyboard too.
        self.covered = any(overlay.modal for overlay in shell.noise)
        self.style = stylesheet(shell.theme, shell.identity)
        self.classes = f"frame-{shell.identity} {body_class(shell.theme)}"
        self.navigation = navigation(shell.navigation, shell.theme)
        self.nav_last = shell.theme.nav == "bottom"
        self.pictures = IDENTITIES[shell.identity].pictures
        self.logo = picture("logo", shell.title)
        kind, key = self.pictures.get(shell.name), shell.args.get("id", "")
        self.hero = picture(kind, f"{shell.name} {key}") if kind and key else None

    def blocks(self, blocks: tuple[Block, ...], level: int) -> Markup:
        """Return blocks in the theme's order; headings among them have this level, at most 6."""
        return Markup("").join(
            getattr(self.macros, type(block).__name__.lower())(self, block, min(level, 6))
            for block in arranged(blocks, self.theme)
        )

    # --- around the page ---

    def frame(self, part: str) -> Markup:
        """Return what a macro makes of the site alone; the pages of a run share it."""
        shell = self.shell
        links = shell.navigation, shell.information
        named = part == "navigation" and any(link.page == shell.name for link in links[0])
        here = shell.name if named else ""
        known, markup = shell.frame.get((part, here), (None, Markup("")))
        if known != links:
            markup = getattr(self.macros, part)(self)
            shell.frame[part, here] = links, markup
        return markup

    def icon(self, link: Link) -> Drawn:
        """Return the sign of a section."""
        return picture("icon", f"{self.shell.title} {link.page}")

    def sign(self, link: Link | str) -> Drawn | None:
        """Return the picture of what a link opens, if the identity has one."""
        if isinstance(link, str) or link.page not in self.pictures:
            return None
        return picture(self.pictures[link.page], f"{link.page} {link.args.get('id', '')}")

    def value(self, text: str | Link) -> str:
        """Return a value, a rating after its stars."""
        if isinstance(text, Link):
            shown: Markup = self.macros.subject(self, text)
            return shown
        if not text.endswith(" of 5") or not (rating := _RATING.fullmatch(text)):
            return text
        drawn: Markup = self.macros.picture(stars(round(float(rating[1]) * 10)))
        return drawn + " " + text

    def is_short(self, text: str | Link) -> bool:
        """Return True for a date, an amount or a word, which are not broken into lines."""
        word = text.label if isinstance(text, Link) else text
        return isinstance(word, str) and len(word) <= SHORT and " " not in word

    # --- labels ---

    def name(self, label: Label) -> str:
        return name_of(label, self.words)

    def shown(self, label: Label) -> str:
        """Return what is seen of a control's label: without what it applies to."""
        return self.words[label.key] if isinstance(label, Word) else self.name(label)

    def subject(self, label: Label) -> str:
        """Return what a Word applies to."""
        return label.of if isinstance(label, Word) and label.of else self.name(label)

    def aria(self, label: Label) -> str:
        """Return the accessible name, where it says more than what is seen."""
        return self.name(label) if isinstance(label, Word) and label.of else ""

    def text(self, label: Label) -> str:
        """Return a text with its line breaks."""
        return self.name(label) if isinstance(label, Word) else label

    # --- lists ---

    def narrows(self, section: Section) -> bool:
        """Return True for the links that narrow a list."""
        return section.title == Word("narrow")

    def columns(self, items: ItemList) -> list[str]:
        return [self.name(column) for column in items.columns]

    def cells(self, columns: list[str], row: ListRow) -> list[tuple[str, str | Link]]:
        """Return the cells after the first with the names of their columns."""
        return list(zip(columns[1:], row.cells, strict=True))

    def acts(self, items: ItemList) -> bool:
        """Return True if something can be done in a row of the list."""
        return any(row.forms for row in items.rows)

    # --- forms ---

    def sends(self, item: Link | Form) -> bool:
        """Return True for an item of a menu that is a form."""
        return isinstance(item, Form)

    def form(self, form: Form) -> Markup:
        return self.blocks((form,), 2)

    def sent_to(self, form: Form) -> Markup:
        """Return how and where a form is sent to."""
        if form.page:
            return Markup(' method="get" action="{}"').format(address(form.page, {}))
        return Markup(' method="post" action="/do/{}"').format(quote(form.operation))

    def hidden(self, form: Form) -> Mapping[str, str]:
        """Return what a form sends along."""
        return {**form.hidden} if form.page else {**form.hidden, NONCE: self.shell.nonce(form)}

    def key(self) -> str:
        """Return the id of the next control."""
        self.controls += 1
        return f"c{self.controls}"

    def as_radios(self, field: Field) -> bool:
        if field.drawn:
            return field.drawn == "rating" and bool(field.options)
        few = field.input == "choice" and 0 < len(field.options) <= FEW
        return few and self.theme.choice == "radio"

    def label_first(self, field: Field) -> bool:
        return field.input != "tick" and self.theme.labels != "after"

    def offered(self, field: Field) -> tuple[Option, ...]:
        """Return the options, after one that stands for a value which is none of them: without it a
        browser would send the first, which nobody chose."""
        if any(option.value == field.value for option in field.options):
            return field.options
        return (Option(field.value, Word("choose")), *field.options)
