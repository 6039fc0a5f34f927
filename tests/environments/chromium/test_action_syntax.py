"""Actions are text in BrowserGym's syntax; reading them evaluates nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.environments.chromium.action_syntax import Action, BadAction, parse, write


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("click('12')", Action("click", ("12",))),
        ('fill("7", "it\'s a mug")', Action("fill", ("7", "it's a mug"))),
        ("scroll(0, 200.5)", Action("scroll", (0, 200.5))),
        (" noop() ", Action("noop", ())),
        ("noop(500)", Action("noop", (500,))),
        ("click('1', button='right')", Action("click", ("1", "right"))),
        ("fill(value='x', bid='1')", Action("fill", ("1", "x"))),
        ("select_option('4', ['a', 'b'])", Action("select_option", ("4", ["a", "b"]))),
        ("click('1', modifiers=['Shift'])", Action("click", ("1", "left", ["Shift"]))),
        ("fill('1', 'x', enable_autocomplete_menu=True)", Action("fill", ("1", "x", True))),
        ("tab_focus(1)", Action("tab_focus", (1,))),
        ("mouse_click(10, 20.5)", Action("mouse_click", (10, 20.5))),
        ("report_infeasible('no such item')", Action("report_infeasible", ("no such item",))),
    ],
)
def test_a_call_with_literal_arguments_is_an_action(text: str, action: Action) -> None:
    assert parse(text) == action


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "click",
            "click(12)",
            "click('1', 'left', '3')",
            "open('/etc/passwd')",
            "click(str(1))",
        ),
        *("noop(); noop()", "click(id='1')", "__import__('os').getcwd()", "(" * 500),
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(BadAction):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "fill('1', '\\ud800')",
            "select_option('1', ['a', 2])",
            "scroll(0, 1e999)",
            "scroll(0, True)",
        ),
        *(
            f"scroll(0, {10**40})",
            f"fill('1', '{'x' * 50_000}')",
            "fill(**{'bid': '1'})",
            "tab_close(1)",
        ),
        *(
            "fill('1')",
            "fill('1', '2', bid='3')",
            "click('1', bid='1')",
            "tab_focus(True)",
            "-" * 9000,
        ),
    ],
)
def test_what_a_browser_cannot_take_is_refused_in_few_words(text: str) -> None:
    with pytest.raises(BadAction) as refused:
        parse(text)
    assert len(str(refused.value)) < 300 and str(refused.value).isascii()


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_text_survives_writing_and_reading(text: str) -> None:
    assert parse(write("fill", "3", text)) == Action("fill", ("3", text))


@given(st.text())
def test_no_text_does_more_than_fail(text: str) -> None:
    try:
        parse(text)
    except BadAction as error:
        assert str(error)
