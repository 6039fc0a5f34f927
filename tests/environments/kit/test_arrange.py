"""Arrangement: themes move what may be moved, and nobody is misled."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from tests.environments.kit.pages import PAGES
from trajudge.environments.kit.arrange import arranged, navigation
from trajudge.environments.kit.reading import forms
from trajudge.environments.kit.theme import Theme, theme
from trajudge.environments.model import page as parts
from trajudge.environments.model.page import Page

THEMES = st.builds(theme, st.integers(0, 11), st.integers(0, 3))
FACTS, CHART = parts.DefinitionList((("a", "b"),)), parts.Chart("c", "bars", (), ())
FORM, OTHER = parts.Form("One", page="a"), parts.Form("Two", page="b")


def look(**changed: object) -> Theme:
    return dataclasses.replace(theme(0, 0), **changed)  # type: ignore[arg-type]


def test_facts_forms_and_charts_that_stand_together_take_the_theme_s_order() -> None:
    chosen = look(order=("chart", "form", "facts"))
    assert arranged((FACTS, FORM, CHART, OTHER), chosen) == [CHART, FORM, OTHER, FACTS]


def test_what_stands_between_others_stays_there() -> None:
    chosen = look(order=("form", "chart", "facts"))
    items = parts.ItemList((), ())
    given = (parts.Paragraph("a"), FACTS, items, FORM, parts.Link("next", "a"), CHART)
    assert arranged(given, chosen) == list(given)


def test_neighbouring_sections_are_turned_around() -> None:
    one, two = parts.Section("One", (FORM,)), parts.Section("Two", (OTHER,))
    assert arranged((one, two), look(swapped=True)) == [two, one]
    assert arranged((one, two), look(swapped=False)) == [one, two]


def test_sections_that_share_a_label_keep_their_order() -> None:
    """Whoever takes the first control of a name takes the same in every theme."""
    search = parts.Form("Three", (parts.Field("x", "Name"),), page="c")
    sections = (parts.Section("One", (FORM, search)), parts.Section("Two", (OTHER, search)))
    assert arranged(sections, look(swapped=True)) == list(sections)


@given(PAGES, THEMES)
def test_nothing_is_lost_and_forms_keep_their_order(page: Page, chosen: Theme) -> None:
    placed = arranged(page.blocks, chosen)
    assert sorted(map(repr, placed)) == sorted(map(repr, page.blocks))
    straight = dataclasses.replace(chosen, swapped=False)
    again = Page("", tuple(arranged(page.blocks, straight)))
    assert list(forms(again)) == list(forms(page))


def test_the_navigation_begins_with_its_first_link() -> None:
    links = tuple(parts.Link(name, name) for name in "abcd")
    orders = {
        "".join(link.page for link in navigation(links, look(turn=turn))) for turn in range(6)
    }
    assert orders == {"abcd", "acdb", "adbc"}
    assert navigation((), look()) == ()
