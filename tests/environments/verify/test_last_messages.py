"""The reader of last messages against labels that were set before it was written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.environments.verify.last_messages import (
    UNSEEN,
    LastMessage,
    Part,
    judged,
    rates,
    real_messages,
    written_messages,
)
from trajudge.environments.verify.answers import answered
from trajudge.environments.verify.truth import ResolvedAnswer


def test_there_are_right_and_wrong_messages_enough_in_both_parts() -> None:
    counts = Counter((message.part, message.label) for message in written_messages())
    decided = {key: count for key, count in counts.items() if key[1] is not None}
    assert len(decided) == 20
    assert min(decided.values()) >= 40
    assert sum(decided.values()) >= 400
    names = [message.name for message in written_messages()]
    assert len(set(names)) == len(names)


def test_every_named_message_of_a_real_run_is_there(real_data: Path) -> None:
    messages = list(real_messages(real_data))
    assert sum(message.label is True for message in messages) >= 100
    assert sum(message.label is False for message in messages) >= 60
    assert all(message.goal and message.text for message in messages)


Verdicts = list[tuple[LastMessage, bool | None]]


def verdicts_on(messages: Iterable[LastMessage]) -> Verdicts:
    """The messages that are right or wrong, and what they are read as."""
    return [(message, judged(message)) for message in messages if message.label is not None]


def definite_errors(verdicts: Verdicts) -> list[str]:
    """The messages that are read as definitely right or wrong, against their label."""
    return [message.name for message, verdict in verdicts if verdict is (not message.label)]


def open_share(verdicts: Verdicts) -> float:
    """How many of the messages are left open."""
    return [verdict for _, verdict in verdicts].count(None) / len(verdicts)


@pytest.mark.slow
def test_no_written_message_is_read_against_its_label() -> None:
    verdicts = verdicts_on(m for m in written_messages() if m.part not in UNSEEN)
    assert definite_errors(verdicts) == []
    assert open_share(verdicts) <= 0.1


@pytest.mark.parametrize(
    ("part", "ceilings"),
    [("others_2", (8, 11, 51)), ("others_5", (2, 6, 26)), ("others_6", (5, 9, 16))],
)
def test_an_unseen_part_is_read_no_worse_than_was_measured(
    part: Part, ceilings: tuple[int, ...]
) -> None:
    """No goal: what was measured, as a ceiling. It fails without naming a message."""
    measured = rates([message for message in written_messages() if message.part == part])
    counts = [count for count, _ in measured.values()]
    assert [count <= most for count, most in zip(counts, ceilings, strict=True)] == [True] * 3


def test_a_right_value_in_passing_is_left_open() -> None:
    """Conditions, values taken back and wholes of which a part is asked for are not accepted."""
    cases = """
        How many critical alerts in Frankfurt are resolved?
        Frankfurt has 7 critical alerts, of which 4 are resolved.
        Unless the filter is broken, 7 are resolved.
        7 are resolved. No, I misread the list.
        7 different servers have resolved alerts.
        I can't tell, but the list ends with 7.
    """
    goal, *messages = (line.strip() for line in cases.strip().splitlines())
    asked = (ResolvedAnswer("number", ("7",), ()),)
    for text in messages:
        assert [fact.right for fact in answered(asked, text, goal)] != [True], text
    assert [fact.right for fact in answered(asked, "5 on page 1 + 2 on page 2 = 7", goal)] == [True]


def test_no_message_of_a_real_run_is_read_against_its_label(real_data: Path) -> None:
    verdicts = verdicts_on(real_messages(real_data))
    assert definite_errors(verdicts) == []
    assert open_share(verdicts) <= 0.1
