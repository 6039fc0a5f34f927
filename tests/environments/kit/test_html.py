"""Documents: whatever a page says, it says as text, and every control is there under its name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environments.kit.pages import PAGES, WORDS
from tests.environments.kit.reader import Control, Document, FormFound
from tests.samples import examples
from trajudge.environments.kit.html import NONCE, render
from trajudge.environments.kit.identities import IDENTITIES
from trajudge.environments.kit.layout import PageLayout, address
from trajudge.environments.kit.reading import blocks, forms, links
from trajudge.environments.kit.theme import Theme, name_of, printable, theme
from trajudge.environments.model import page as parts
from trajudge.environments.model.page import Page, Word
from trajudge.environments.text.tree import ATTRIBUTES, ROLES, TRANSPARENT

THEMES = st.builds(theme, st.integers(0, 11), st.integers(0, 3))
FRAMES = st.sampled_from(sorted(IDENTITIES))
HEAD = {"html", "head", "meta", "link", "title", "body"}
NAVIGATION = (parts.Link(Word("alpha"), "home"), parts.Link(Word("beta"), "list", {"a": "1"}))


def shell(look: Theme, **changed: Any) -> PageLayout:
    given = {
        "title": "Alder & <Finch>",
        "navigation": NAVIGATION,
        "theme": look,
        "words": WORDS,
        "nonce": lambda form: f"once-{form.operation}",
        "chart": lambda chart: f"/chart/{chart.kind}.png",
    }
    return PageLayout(**{**given, **changed})


def read(page: Page, look: Theme, **changed: Any) -> Document:
    return Document(render(page, shell(look, **changed)))


def named(label: str | Word) -> str:
    return name_of(label, WORDS)


def flat(text: str) -> str:
    return " ".join(text.split())


def followed(href: str) -> tuple[str, list[tuple[str, str]]]:
    split = urlsplit(href)
    assert not split.scheme
    assert not split.netloc
    return unquote(split.path), parse_qsl(split.query, keep_blank_values=True)


def encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def expected_link(link: parts.Link) -> tuple[str, tuple[str, list[tuple[str, str]]]]:
    args = [(encodable(name), encodable(value)) for name, value in link.args.items()]
    return named(link.label), (f"/{encodable(link.page)}", args)


def sent(entry: parts.Field) -> str | None:
    """What an untouched field sends; None for nothing."""
    if entry.input == "tick":
        return "on" if entry.value == "on" else None
    return "" if entry.input == "file" else printable(entry.value)


@settings(deadline=None, max_examples=examples(60))
@given(PAGES, THEMES, FRAMES)
def test_no_text_becomes_markup(page: Page, look: Theme, identity: str) -> None:
    found = read(page, look, identity=identity)
    assert found.tags.keys() <= HEAD | ROLES.keys() | TRANSPARENT
    plain = {name for name in found.attributes if not name.startswith("data-")}
    assert plain <= ATTRIBUTES | {"lang", "charset", "content"}
    for tag in ("html", "head", "title", "body", "main", "h1"):
        assert found.tags[tag] == 1, tag
    every = list(blocks(page.blocks))
    panels = sum(len(block.panels) for block in every if isinstance(block, parts.Tabs))
    columns = sum(len(block.columns) for block in every if isinstance(block, parts.Board))
    sections = sum(isinstance(block, parts.Section) for block in every) - panels + columns
    assert found.tags["section"] == sections + (identity == "till")
    assert found.tags["form"] == len(list(forms(page)))
    drawn = [src for src, _ in found.images if src.startswith("/chart/")]
    assert len(drawn) == sum(isinstance(block, parts.Chart) for block in every)


@settings(deadline=None, max_examples=examples(60))
@given(PAGES, THEMES, FRAMES)
def test_every_link_is_there_once_and_leads_where_the_model_says(
    page: Page, look: Theme, identity: str
) -> None:
    """Those of the navigation are at the foot once more."""
    document = read(page, look, identity=identity)
    found = [(name_of(name, WORDS), followed(href)) for name, href in document.links]
    wanted = [expected_link(link) for link in (*NAVIGATION, *NAVIGATION, *links(page))]
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))


@settings(deadline=None, max_examples=examples(60))
@given(PAGES, THEMES)
def test_every_form_is_there_once_and_sends_what_the_model_says(page: Page, look: Theme) -> None:
    document = read(page, look)
    found = sorted(repr(_as_read(form, document)) for form in document.forms)
    assert found == sorted(repr(_as_modelled(form)) for form in forms(page))


def _as_read(form: FormFound, document: Document) -> tuple[Any, ...]:
    return (
        form.method,
        form.action,
        form.hidden,
        named(form.submit),
        [_control(control, document) for control in form.controls],
    )


def _control(control: Control, document: Document) -> tuple[Any, ...]:
    options = document.option_names(control)
    # The option that stands for a value which is none of them is not the model's.
    options = [option for option in options if option[1] != WORDS["choose"]]
    described = [(value, named(name)) for value, name in options]
    sends = control.sends
    if control.kind == "radio" and sends is None:
        sends = ""
    return control.field, named(control.name), sends, described


def _as_modelled(form: parts.Form) -> tuple[Any, ...]:
    hidden = {name: printable(value) for name, value in form.hidden.items()}
    if form.operation:
        hidden[NONCE] = f"once-{form.operation}"
    described = []
    for entry in form.fields:
        options = [(printable(option.value), named(option.label)) for option in entry.options]
        value = sent(entry)
        described.append((entry.name, named(entry.label), value, options))
    if form.page:
        return "get", f"/{form.page}", hidden, named(form.submit), described
    return "post", f"/do/{form.operation}", hidden, named(form.submit), described


@settings(deadline=None, max_examples=examples(60))
@given(PAGES, THEMES)
def test_everything_that_a_page_says_can_be_read(page: Page, look: Theme) -> None:
    said = Counter(flat(text) for text in read(page, look).texts)
    for text in _texts(page.blocks):
        assert said[flat(printable(text))] or not flat(printable(text))


def _texts(given: Iterable[parts.Block]) -> Iterable[str]:
    for block in blocks(tuple(given)):
        match block:
            case parts.Paragraph(text) | parts.Notice(text):
                yield named(text)
            case parts.DefinitionList(rows):
                for label, value in rows:
                    yield from (named(label), value)
            case parts.ItemList(_, rows):
                for row in rows:
                    yield from (cell for cell in row.cells if isinstance(cell, str))
            case parts.Section(str(title)):  # a tab's shows a part of a Word's name
                yield named(title)
            case parts.Disclosure(title):
                yield WORDS[title.key] if isinstance(title, Word) else named(title)
            case parts.Board(columns):
                for column in columns:
                    yield from (column.name, *(card.text for card in column.cards))


@given(PAGES, THEMES)
def test_the_same_page_gives_the_same_bytes(page: Page, look: Theme) -> None:
    document = render(page, shell(look))
    assert document == render(page, shell(look))
    document.encode()  # what no document can hold is gone
    assert "<script" not in document.lower()


def everywhere(*blocks: parts.Block) -> list[Document]:
    return [read(Page("Page", blocks), theme(index, 0)) for index in range(12)]


def test_a_word_with_an_object_shows_its_wording_and_is_named_in_full() -> None:
    form = parts.Form(Word("alpha", "Oak & Mug"), operation="remove")
    for document in everywhere(
        parts.ItemList(("Thing",), (parts.ListRow("Oak & Mug", (), (form,)),))
    ):
        assert document.forms[0].submit == f"{WORDS['alpha']} Oak & Mug"
        assert WORDS["alpha"] in document.texts


@pytest.mark.parametrize(("value", "sends"), [("a", "a"), ("", ""), ("gone", "gone")])
def test_a_choice_sends_the_model_s_value_until_somebody_chooses(value: str, sends: str) -> None:
    options = (parts.Option("a", "First"), parts.Option("b", "Second"))
    form = parts.Form("Go", (parts.Field("pick", "Which", "choice", value, options),), page="list")
    for document in everywhere(form):
        (control,) = document.forms[0].controls
        assert control.name == "Which"
        assert (control.sends or "") == sends


def test_a_long_choice_is_a_list_in_every_theme() -> None:
    options = tuple(parts.Option(str(number), f"Number {number}") for number in range(9))
    short = parts.Field("few", "Few", "choice", "1", options[:8])
    long = parts.Field("many", "Many", "choice", "1", options)
    kinds = {
        tuple(control.kind for control in document.forms[0].controls)
        for document in everywhere(parts.Form("Go", (short, long), page="list"))
    }
    assert kinds == {("select", "select"), ("radio", "select")}


def test_lists_have_named_columns_in_every_layout() -> None:
    rows = (
        parts.ListRow("Mug", ("$3",), (parts.Form("Go", page="list"),)),
        parts.ListRow("Jug", ("$4",)),
    )
    for document in everywhere(parts.ItemList(("Thing", "Price"), rows)):
        assert "Price" in document.texts
        if document.tags["table"]:
            assert document.tags["th"] == 3
            assert document.tags["td"] == 6
            assert WORDS["actions"] in document.texts


def test_an_empty_list_says_so() -> None:
    for document in everywhere(parts.ItemList(("Thing",), ())):
        assert "Nothing" in document.texts


def test_a_row_with_too_few_cells_is_refused() -> None:
    page = Page("Page", (parts.ItemList(("Thing", "Price"), (parts.ListRow("Mug"),)),))
    with pytest.raises(ValueError, match="zip"):
        render(page, shell(theme(0, 0)))


def test_a_word_that_nobody_words_is_refused() -> None:
    with pytest.raises(KeyError, match="unheard"):
        render(Page(Word("unheard"), ()), shell(theme(0, 0)))


def test_notices_are_announced() -> None:
    page = Page("Page", (parts.Notice("Saved"), parts.Notice("Failed", error=True)))
    document = render(page, shell(theme(0, 0)))
    assert 'role="status" data-widget="toast" data-close="Close">Saved<' in document
    assert 'role="alert">Failed<' in document


def test_a_chart_is_a_picture_whose_text_is_its_title() -> None:
    chart = parts.Chart("Sales", "bars", ("June",), (1234.5,))
    for document in everywhere(chart):
        assert ("/chart/bars.png", "Sales") in document.images
        assert not any("1234" in text or "June" in text for text in document.texts)


def test_a_dialog_puts_the_page_out_of_reach_until_its_button_is_pressed() -> None:
    promotion = parts.Overlay(
        "Just <you>", "Buy & save", Word("dismiss"), "/dismiss/promotion", True
    )
    page = Page("Page", (parts.Form("Go", operation="buy"),))
    document = render(page, shell(theme(0, 0), noise=(promotion,)))
    assert '<div class="page" inert>' in document
    assert 'role="dialog" aria-modal="true" aria-label="Just &lt;you&gt;"' in document
    form = Document(document).forms[-1]
    assert (form.method, form.action, form.submit) == ("post", "/dismiss/promotion", "Close")


def test_a_cookie_bar_leaves_the_page_within_reach() -> None:
    bar = parts.Overlay("Cookies", "We use them", Word("accept_cookies"), "/dismiss/cookies")
    document = render(Page("Page", ()), shell(theme(0, 0), noise=(bar,)))
    assert " inert" not in document
    assert Document(document).forms[-1].submit == "Accept"


def test_an_address_keeps_hostile_arguments_together() -> None:
    assert (
        address("product", {"id": "a&b=c d#e", "q": "é"}) == "/product?id=a%26b%3Dc+d%23e&q=%C3%A9"
    )
    assert address("//evil.test", {}) == "/%2F%2Fevil.test"


def test_structures_differ_between_all_themes() -> None:
    """What a replay of recorded marks depends on: the sequence of elements."""
    options = (parts.Option("a", "First"), parts.Option("b", "Second"))
    field = parts.Field("pick", "Which", "choice", "a", options)
    page = Page(
        "Page",
        (
            parts.DefinitionList((("Name", "Value"),)),
            parts.Form("Go", (field, parts.Field("text", "Say")), page="list"),
            parts.ItemList(("Thing", "Price"), (parts.ListRow(parts.Link("Mug", "mug"), ("$3",)),)),
        ),
    )
    structures = set()
    for index in range(12):
        body = render(page, shell(theme(index, 0))).partition("<body")[2]
        structures.add(body.partition(">")[2])
    assert len(structures) == 12
