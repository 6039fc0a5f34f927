"""What the agent said last, out of actions that are Python-like text and never run."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajectories.answer import last_message


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ('send_msg_to_user("It costs $5.")', "It costs $5."),
        ("send_msg_to_user('It\\'s 5')", "It's 5"),
        ('send_msg_to_user(text="Done")', "Done"),
        ('send_msg_to_user("a (b) c")', "a (b) c"),
        ('send_msg_to_user("1. x\\n2. y")', "1. x\n2. y"),
        ('send_msg_to_user("""two\nlines""")', "two\nlines"),
        ('report_infeasible("There is no such page")', "There is no such page"),
        ("send_msg_to_user(42)", "42"),
        ("send_msg_to_user('It's 5')", "It's 5"),
        ('send_msg_to_user("cut\nshort")', "cut\nshort"),
        ('send_msg_to_user(text="cut\nshort")', "cut\nshort"),
        ('click("3")\nsend_msg_to_user("Bought.")', "Bought."),
        ('send_msg_to_user("one")\nsend_msg_to_user("two")', "two"),
        (r'send_msg_to_user("\d")', r"\d"),
        ("send_msg_to_user(__import__('os').getcwd())", "__import__('os').getcwd()"),
        ("send_msg_to_user()", None),
        ('fill("2", "send_msg_to_user")', None),
        ("click('a')", None),
        ("", None),
        (None, None),
    ],
)
def test_the_message_of_an_action(action: str | None, message: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert last_message([action]) == message


def test_the_last_message_counts() -> None:
    actions = ['send_msg_to_user("a")', "click('1')", 'report_infeasible("b")', None]
    assert last_message(actions) == "b"


@given(st.text())
def test_any_message_comes_back_whole(message: str) -> None:
    assert last_message([f"send_msg_to_user({message!r})"]) == message


@given(st.text(alphabet="send_msg_to_user()'\"\\\n [{1,=", max_size=60))
def test_anything_else_raises_nothing(action: str) -> None:
    last_message([f"send_msg_to_user({action}", action])


def test_deep_nesting_raises_nothing() -> None:
    assert last_message(["send_msg_to_user(" + "(" * 50_000 + ")"]) is not None
