"""The message that a BrowserGym action sends to the user."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.environments.chromium.action_syntax import spoken
from trajudge.trajectories.actions import holds_answer, last_message_to_user, message_to_user


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ('send_msg_to_user("Done.")', "Done."),
        ("answer('$12.34')", '{"answer": "$12.34"}'),
        ("answer(['Anna', \"O'Dea\"])", '{"answer": ["Anna", "O\'Dea"]}'),
        ("answer(3)", '{"answer": 3}'),
        ("answer({4})", '{"answer": "{4}"}'),
        ("fill('5', 'answer(3)')", None),
        ("click('answer')", None),
        ("send_msg_to_user('It\\'s 1.\\n2. (two)')", "It's 1.\n2. (two)"),
        (' send_msg_to_user(text="""a\nb""",) ', "a\nb"),
        ('send_msg_to_user("a" "b")', "ab"),
        ("send_msg_to_user('It's here')", "It's here"),
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
        ("send_msg_to_user(')", "'"),
        ('fill("2", "send_msg_to_user")', None),
        ("click('a')", None),
        ("fill('2', 'It's send_msg_to_user(3)')", None),
        ("click('12')", None),
        ("noop()", None),
        ("", None),
        (None, None),
    ],
)
def test_message(action: str | None, message: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert message_to_user(action) == message


@given(st.text())
def test_any_literal_is_read_back(message: str) -> None:
    assert message_to_user(f"send_msg_to_user({message!r})") == message


def test_the_argument_is_never_run(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    message_to_user(f"send_msg_to_user(open({str(marker)!r}, 'w'))")
    assert not marker.exists()


def test_long_and_deep_arguments_end_soon() -> None:
    for inner in (
        "(" * 200_000,
        "(" * 50_000,
        "-" * 50_000 + "1",
        "1+" * 30_000 + "1",
        "-" * 200_000 + "1",
        " " * 200_000,
        ",) " * 100_000,
    ):
        assert message_to_user(f"send_msg_to_user({inner})") is not None


@given(st.text(alphabet="send_msg_to_user()'\"\\\n [{1,=", max_size=60))
def test_anything_else_raises_nothing(text: str) -> None:
    message_to_user(f"send_msg_to_user({text}")
    message_to_user(text)


@pytest.mark.parametrize("value", ["'It is 3'", "['a', 'b']", "7", "2.5"])
def test_a_declared_answer_is_what_our_own_runs_record(value: str) -> None:
    assert message_to_user(f"answer({value})") == spoken(f"answer({value})")


def test_the_last_message_is_the_answer() -> None:
    actions = ['send_msg_to_user("1")', "noop()", 'send_msg_to_user("2")', "click('3')", None]
    assert last_message_to_user(actions) == "2"
    assert last_message_to_user(["noop()"]) is None


@pytest.mark.parametrize(
    ("actions", "answer", "held"),
    [
        (["click('1')", "stop [3]", None], "3", True),
        (['ANSWER; Three "lamps".'], 'Three "lamps".', True),
        (['done({"text": "Caf\\u00e9:\\n- one", "success": true})'], "Café:\n- one", True),
        (["terminate(answer='It is so:\\n- a')"], "It is so:\n- a", True),
        (["send_msg_to_user('It\\'s 5.')", "click('1')"], "It's 5.", True),
        (["click('12')", "Click at (640, 400)", ""], "I explored both pages.", False),
        (["fill('1', 'three lamps')", "click('2')"], "Three lamps", False),
        (["click('142')"], "42", False),
        (["click('a1234')"], "1234", False),
        (["click('a12345')"], "12345", True),
        (["fill('12', 'notes')"], "No", False),
        (['finish({"answer": "42"})'], "42", True),
        ([None], "No", False),
        ([], "No", False),
    ],
)
def test_whether_actions_hold_the_answer(
    actions: list[str | None], answer: str, held: bool
) -> None:
    assert holds_answer(actions, answer) == held
