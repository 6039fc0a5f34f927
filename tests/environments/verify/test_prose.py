"""How a clause that speaks of something else, or a form that few write, is read."""

from __future__ import annotations

import pytest

from tests.environments.verify.answers import right
from trajudge.environments.model.spec import AnswerKind

BUS = "How many seats are free in the bus 31 to Norr on Friday, May 8, 2026?"
LINE = "How long does the bus 31 take from Norr to Senn?"
SAIL = "Who has not paid for the sailing course yet?"
SAILORS = ("Ada Wren", "Ole Moss", "Kim Byrd", "Una Pike")


@pytest.mark.parametrize(
    ("message", "verdict"),
    [
        ("The bus 31 has 12 free seats.", True),
        ("The bus 13 has 12 free seats.", False),
        ("The bus 13 has 12 free seats, the bus 31 has 9.", False),
        ("The bus 13 has 9 free seats, the bus 31 has 12.", True),
        ("On Thursday there are 12 free seats. On Friday there are 9.", False),
        ("On Thursday there are 9 free seats. On Friday there are 12.", True),
        ("There are 12 passengers.", None),
        ("12 seats are not free.", False),
        ("Dodici posti sono liberi nel pullman.", None),
    ],
)
def test_a_value_with_another_qualifier_than_the_goal_s_is_none(
    message: str, verdict: bool | None
) -> None:
    assert right("number", "12", message, BUS) is verdict


@pytest.mark.parametrize(
    ("message", "verdict"),
    [
        ("From Norr to Senn it takes 1 h 20 min.", True),
        ("From Senn to Norr it takes 1 h 20 min.", False),
        ("1h20", True),
        ("It took 1 h 20 min, but it has been moved to 2 h.", False),
        ("It was 2 h, but it has been changed to 1 h 20 min.", True),
    ],
)
def test_the_way_back_and_what_was_changed_are_no_answer(message: str, verdict: bool) -> None:
    assert right("duration", "1 h 20 min", message, LINE) is verdict


@pytest.mark.parametrize(
    ("message", "verdict"),
    [
        ("Ada Wren and Ole Moss have not paid.", True),
        ("Ada Wren and Ole Moss have paid.", False),
        ("Moss, Ole; Wren, Ada", True),
        ("Kim Byrd and Una Pike have paid; Ada Wren and Ole Moss have not.", True),
        ("Ada Wren, Ole Moss and Una Pike", False),
        ("Wren and Moss", None),
    ],
)
def test_a_list_is_right_only_with_the_property_that_is_asked_for(
    message: str, verdict: bool | None
) -> None:
    assert right("texts", SAILORS[:2], message, SAIL, SAILORS) is verdict


@pytest.mark.parametrize(
    ("kind", "value", "message", "goal", "verdict"),
    [
        ("number", "38", "38 miles", "How long is the path, in kilometres?", False),
        ("number", "38", "38 km (23.6 miles)", "How long is the path, in kilometres?", True),
        ("text", "14:35", "at 2:35 pm", "When is the last pickup?", True),
        ("text", "14:35", "at 2:35", "When is the last pickup?", None),
        ("text", "14:35", "at 2:35 am", "When is the last pickup?", False),
        ("number", "1894", "on 12 May 1894", "In which year was it opened?", True),
        ("date", "2026-05-08", "You have to pay by May 8, 2026.", "By when must I pay?", True),
        ("money", "€5.20", "5 euros and 20 cents", "What does it cost?", True),
    ],
)
def test_forms_and_units(
    kind: AnswerKind, value: str, message: str, goal: str, verdict: bool | None
) -> None:
    assert right(kind, value, message, goal) is verdict


def test_a_name_goes_without_the_noun_that_the_goal_has() -> None:
    rooms = ("Room Copper", "Room Amber", "Great Hall")
    goal = "In which room is the party?"
    assert right("text", "Room Copper", "In Copper.", goal, rooms)
    assert right("text", "Room Copper", "In Amber.", goal, rooms) is False
    assert right("text", "Room Copper", "In Copper.", "Where is the party?", rooms) is None


@pytest.mark.parametrize(
    ("message", "verdict"),
    [
        ("The answer is Ole Moss.", True),
        ("I looked it up in the list. The answer is Ole Moss. Anything else?", True),
        ("The manager is Ole Moss.", True),
        ("The deputy is Ole Moss.", None),
    ],
)
def test_an_answer_need_not_repeat_the_noun_that_is_asked_for(
    message: str, verdict: bool | None
) -> None:
    assert right("text", "Ole Moss", message, "Who is the manager of Ada Wren?") is verdict


@pytest.mark.parametrize(
    "message",
    [
        "Done! The answer is 3. I looked at the page that shows it.",
        "There are 3. It took some looking.",
        "It is 3. That is what used to be counted as the desk's.",
    ],
)
def test_one_digit_ends_a_sentence(message: str) -> None:
    """It is no initial, and what is said after it is another sentence."""
    assert right("number", "3", message, "How many articles does the desk have?") is True
