"""Actions are text in BrowserGym's syntax; reading them evaluates nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.actions import Action, BadAction, parse, write


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("click('12')", Action("click", ("12",))),
        ('fill("7", "it\'s a mug")', Action("fill", ("7", "it's a mug"))),
        ("scroll(0, 200.5)", Action("scroll", (0, 200.5))),
        (" noop() ", Action("noop", ())),
    ],
)
def test_a_call_with_literal_arguments_is_an_action(text: str, action: Action) -> None:
    assert parse(text) == action


@pytest.mark.parametrize(
    "text",
    [
        *("", "click", "click(12)", "click('1', '2')", "open('/etc/passwd')", "click(str(1))"),
        *("noop(); noop()", "click(bid='1')", "__import__('os').getcwd()", "(" * 500),
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(BadAction):
        parse(text)


@given(st.text())
def test_any_text_survives_writing_and_reading(text: str) -> None:
    assert parse(write("fill", "3", text)) == Action("fill", ("3", text))


@given(st.text())
def test_no_text_does_more_than_fail(text: str) -> None:
    try:
        parse(text)
    except BadAction as error:
        assert str(error)
