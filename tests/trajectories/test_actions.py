"""The message that a BrowserGym action sends to the user."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajectories.actions import last_message_to_user, message_to_user


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ('send_msg_to_user("Done.")', "Done."),
        ("send_msg_to_user('It\\'s 1.\\n2. (two)')", "It's 1.\n2. (two)"),
        (' send_msg_to_user(text="""a\nb""",) ', "a\nb"),
        ('send_msg_to_user("a" "b")', "ab"),
        ("send_msg_to_user('It's here')", "It's here"),
        ("send_msg_to_user(42)", "42"),
        ("click('12')", None),
        ("noop()", None),
        ("", None),
        (None, None),
    ],
)
def test_message(action: str | None, message: str | None) -> None:
    assert message_to_user(action) == message


@given(st.text())
def test_any_literal_is_read_back(message: str) -> None:
    assert message_to_user(f"send_msg_to_user({message!r})") == message


def test_the_argument_is_never_run(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    message_to_user(f"send_msg_to_user(open({str(marker)!r}, 'w'))")
    assert not marker.exists()


def test_long_and_deep_arguments_end_soon() -> None:
    for inner in ("(" * 200_000, "-" * 200_000 + "1", " " * 200_000, ",) " * 100_000):
        assert message_to_user(f"send_msg_to_user({inner})") is not None


def test_the_last_message_is_the_answer() -> None:
    actions = ['send_msg_to_user("1")', "noop()", 'send_msg_to_user("2")', "click('3')", None]
    assert last_message_to_user(actions) == "2"
    assert last_message_to_user(["noop()"]) is None
