"""Histories written as text: where an entry begins although the agent writes lists of its own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.trajectories.loaders.agentrewardbench_text import parse_history

HEADING = "User Task: t\n\nKey Points: 1. k\n\nAction History:\n"


def written(entries: list[tuple[str | None, str | None]]) -> str:
    lines = (f"{n}. {action}. Reasoning: {why}" for n, (action, why) in enumerate(entries, 1))
    return HEADING + "\n".join(lines)


@pytest.mark.parametrize(
    "entries",
    [
        [("click('1')", "because"), (None, None)],
        [("send_msg_to_user('1. a\n2. b\n3. c')", "1. one\n2. two\n\n3. three"), (None, None)],
        [("send_msg_to_user('So. Reasoning: mine')", "why"), (None, None)],
        [(None, "no action came out"), ("noop()", None), (None, None)],
        [("click('1')  # the button", "why"), (None, None)],
        [("goto('https://a.example')", "the run crashed after this")],
        [(f"click('{n}')", f"step {n}") for n in range(1, 31)],
    ],
)
def test_what_was_written_is_read(entries: list[tuple[str | None, str | None]]) -> None:
    assert parse_history(written(entries)) == entries


def test_the_judges_notes_on_snapshots_are_no_steps() -> None:
    notes = (
        "\n\nThe potentially important snapshots of the webpage in the agent's trajectory and "
        "their reasons:\n1. click('2') was seen.\n3. noop()"
    )
    entries: list[tuple[str | None, str | None]] = [("noop()", "a"), ("noop()", "b")]
    assert parse_history(written(entries) + notes) == entries


def test_no_history_is_an_error() -> None:
    with pytest.raises(ValueError, match="no action history"):
        parse_history("User Task: t")


_PROSE = st.text(st.characters(exclude_categories=["Cs"]), max_size=40).map(
    lambda text: "x" + text.replace("Reasoning", "").replace("(", "") + "x"
)


@given(st.lists(st.tuples(_PROSE.map(lambda text: f"fill({text!r})"), _PROSE), max_size=12))
def test_any_prose_without_a_forged_entry_is_read(entries: list[tuple[str, str]]) -> None:
    assert parse_history(written([*entries])) == entries
