"""Which last messages are right: the answer and no other candidate."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.environments.verify.answers import MUGS, right
from trajudge.environments.model.spec import AnswerKind
from trajudge.environments.verify.answers import answered
from trajudge.environments.verify.truth import ResolvedAnswer

MONTHS = ("October", "November", "December")


@pytest.mark.parametrize(
    ("kind", "value", "message", "verdict"),
    [
        ("money", "$1,234.50", "$1,234.50", True),
        ("money", "$1,234.50", "You paid $1234.50 in all.", True),
        ("money", "$1,234.50", "1234.50", True),
        ("money", "$1,234.50", "It came to 1,234.50 dollars.", True),
        ("money", "$1,234.50", "USD 1,234.50", True),
        ("money", "$45.00", "45", True),
        ("money", "$45.00", "The 3 orders from 2026-02-01 (AF-1234) come to $45.", True),
        ("money", "$45.00", "It is $45.00, that is, $45", True),
        ("money", "$45.00", '{"answer": 45}', True),
        ("money", "$45.00", '```json\n{"answer": "$45.00"}\n```', True),
        ("money", "$45.00", "$45.00 or 46", None),
        ("money", "$45.00", "$45.00, 46, 47, 48", None),
        ("money", "$45.00", "$45.00, 46, 47, 48, 49", False),
        ("money", "$45.00", "$45.00 or $46.00", False),
        ("money", "$45.00", "45.00 46.00", False),
        ("money", "$45.00", '{"answer": "$45.00", "other": "$46.00"}', False),
        ("money", "$45.00", "-$45.00", False),
        ("money", "$45.00", "€45.00", False),
        ("money", "$45.00", "$45,00,1", False),
        ("number", "12", "There are 12 of them.", True),
        ("number", "12", "12", True),
        ("number", "12", "twelve", True),
        ("number", "12", "12 (twelve)", True),
        ("number", "12", "１２", True),
        ("number", "12", "There are 12 on two pages.", True),
        ("number", "12", "12 or 13", False),
        ("number", "12", "11-13", False),
        ("number", "12", "112", False),
        ("number", "12", "-12", False),
        ("number", "4.3", "It has 4.3 of 5 stars.", True),
        ("number", "4.3", "4.3/5 since 2 March 2026, order AF-9 was the 2nd", True),
        ("number", "1200", "1,200", True),
        ("number", "4", "4. All the best.", True),
        ("number", "3", "4. All the best.", False),
        ("number", "12", "1. I opened the list.\n2. It has 12 rows.", True),
        ("number", "2", "1. I opened the list.\n2. It has 12 rows.", False),
        ("number", "12", '{"answer": [12, 13]}', False),
        ("date", "2026-03-02", "It was on 2026-03-02.", True),
        ("date", "2026-03-02", "It was on March 2, 2026.", True),
        ("date", "2026-03-02", "2nd of March 2026", True),
        ("date", "2026-03-22", "03/22/2026", True),
        ("date", "2026-03-02", "03/02/2026", None),
        ("date", "2026-03-02", "March 2", None),
        ("date", "2026-03-02", "March 3", False),
        ("date", "2026-03-02", "March 2026", False),
        ("date", "2026-03-02", "2026-03-02 or 2026-03-03", False),
        ("duration", "1 h 35 min", "It takes 1 hour and 35 minutes.", True),
        ("duration", "1 h 35 min", "95 min", True),
        ("duration", "1 h 35 min", "1:35", True),
        ("duration", "1 h 35 min", "95", False),
        ("duration", "1 h 35 min", "95 minutes or 96 minutes", False),
        ("code", "A7KQ2MXB4T", "The code is A7KQ2MXB4T.", True),
        ("code", "A7KQ2MXB4T", "a7kq2-mxb4t", True),
        ("code", "A7KQ2MXB4T", "A7KQ2MXB4T PROCESSING", None),
        ("code", "A7KQ2MXB4T", "A7KQ2MXB4T PROCESSING DEPARTMENT ABCDEFGHIJ", None),
        ("code", "A7KQ2MXB4T", "A7KQ2MXB4T DEPARTMENT ABCDEFGHIJ KLMNOPQRST UVWXYZABCD", False),
        ("code", "A7KQ2MXB4T", "A7KQ2MXB4T, B7KQ2MXB4T", False),
        ("code", "A7KQ2MXB4T", "B7KQ2MXB4T", False),
        ("code", "A7KQ2MXB4T", "xA7KQ2MXB4Tx", False),
        ("code", "A7KQ2MXB4T", "Done.", False),
    ],
)  # fmt: skip
def test_values(kind: AnswerKind, value: str, message: str, verdict: bool | None) -> None:
    assert right(kind, value, message) is verdict


@pytest.mark.parametrize(
    ("value", "message", "verdict"),
    [
        ("Oak Mug", "It is the Oak Mug.", True),
        ("Oak Mug", "  OAK   MUG ", True),
        ("Oak Mug", "It is the Dark Oak Mug.", False),
        ("Dark Oak Mug", "It is the Dark Oak Mug.", True),
        ("Oak Mug", "Oak Mug, Slate Mug", False),
        ("Oak Mug", "Oak Mugs", False),
        ("Café Table", "CAFE\u0301 TABLE", True),
        ("Oak Mug", '{"answer": ["Oak Mug"]}', True),
        ("Oak Mug", '{"answer": ["Oak Mug", "Glass Vase"]}', False),
        (("Oak Mug", "Slate Mug"), "Slate Mug and Oak Mug", True),
        (("Oak Mug", "Slate Mug"), "- Slate Mug\n- Oak Mug\n", True),
        (("Oak Mug", "Slate Mug"), "Slate Mug", False),
        (("Oak Mug", "Slate Mug"), "Slate Mug, Oak Mug, Wool Throw", False),
        (("Oak Mug", "Slate Mug"), '{"answer": ["Slate Mug", "Oak Mug"]}', True),
    ],
)
def test_names(value: str | tuple[str, ...], message: str, verdict: bool | None) -> None:
    kind: AnswerKind = "text" if isinstance(value, str) else "texts"
    assert right(kind, value, message, among=MUGS) is verdict


def test_a_text_that_is_one_of_no_names_must_stand_in_the_message() -> None:
    assert right("text", "42 Mill Road", "42 Mill Road.")
    assert right("text", "42 Mill Road", '{"answer": "42 mill road"}')
    assert right("text", "42 Mill Road", "It is 42 Mill Road.")
    assert right("text", "42 Mill Road", "It is not 42 Mill Road.") is False
    assert right("text", "42 Mill Road", "It is 42 Mill Roadside.") is False


def test_what_the_goal_states_is_no_other_candidate() -> None:
    goal = "Which is cheaper than $50.00, has 4 stars and is not the Slate Mug?"
    assert right("text", "Oak Mug", "Not the Slate Mug but the Oak Mug.", goal, MUGS)
    assert right("money", "$45.00", "$45.00 is less than $50.00.", goal)
    assert right("number", "12", "12 have 4 stars.", goal)
    assert right("number", "12", "12 have 5 stars.", goal) is None


def test_an_answer_that_the_goal_states_still_has_to_be_the_only_one() -> None:
    goal = "Is the Oak Mug or the Slate Mug cheaper?"
    assert right("text", "Oak Mug", "Oak Mug", goal, MUGS)
    assert right("text", "Oak Mug", "Slate Mug", goal, MUGS) is False
    assert right("text", "Oak Mug", "The Oak Mug is cheaper than the Slate Mug.", goal, MUGS)
    assert (
        right("text", "Oak Mug", "The Slate Mug is cheaper than the Oak Mug.", goal, MUGS) is False
    )
    assert right("text", "Oak Mug", "Wool Throw", goal, MUGS) is False


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("October", "The cheapest months: October and November"),
        ("October", "It was cheapest in October, November."),
        (("October", "December"), "In these months: October, November, December."),
    ],
)
def test_the_words_before_a_list_lift_no_value_above_the_others(
    value: str | tuple[str, ...], message: str
) -> None:
    """Found by holding rules to these labels: a list of all months passed for two of them."""
    kind: AnswerKind = "text" if isinstance(value, str) else "texts"
    assert right(kind, value, message, "In which months was it cheapest?", MONTHS) is not True


def test_a_value_that_is_said_once_more_outside_of_a_list_is_the_answer() -> None:
    message = "October and November were compared: it was cheapest in October."
    assert right("text", "October", message, "In which month was it cheapest?", MONTHS)


def test_answers_of_one_kind_stand_together_and_kinds_are_told_apart() -> None:
    asked = [
        ResolvedAnswer("text", ("October",), MONTHS),
        ResolvedAnswer("number", ("3",)),
        ResolvedAnswer("number", ("7",)),
    ]
    facts = answered(asked, "3 in October and 7 later", "")
    assert [(fact.kind, fact.right) for fact in facts] == [("names", True), ("number", True)]
    assert answered(asked, "3 in October", "")[1].reason == "incomplete"


def test_without_a_right_answer_in_the_state_nothing_is_right() -> None:
    (fact,) = answered([ResolvedAnswer("money", ())], "$45.00", "")
    assert (fact.right, fact.reason) == (False, "the state has no right answer")


@pytest.mark.parametrize("message", [None, "", "   ", "yes", "no", "N/A", "Done.", "null", "{}"])
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("money", "$45.00"), ("number", "12"), ("date", "2026-03-02"), ("duration", "5 min"),
        ("text", "Oak Mug"), ("texts", "Oak Mug"), ("code", "A7KQ2MXB4T"),
    ],
)  # fmt: skip
def test_nothing_and_constants_are_never_right(
    kind: AnswerKind, value: str, message: str | None
) -> None:
    assert right(kind, value, message, among=MUGS) is False


@pytest.mark.slow
@pytest.mark.parametrize(
    "message",
    [
        "9" * 9_999,
        "$" * 9_999,
        "1," * 4_999,
        "1:11" * 2_499,
        "1 h " * 2_499,
        "oak " * 2_499,
        "a\u0301" + "\u0301" * 9_000,
        "\ufdfa" * 9_999,
        '{"answer":' * 900,
        '{"answer": ' + "[" * 4_000 + "]" * 4_000 + "}",
        '{"answer": 1e999999}',
        '{"answer": ' + "9" * 9_000 + "}",
        "\ud800",
        "x" * 10_000_000,
        "twenty " * 1_400,
        "A7KQ2MXB4-" * 999,
        "March 1 of " * 900,
    ],
    ids=range(17),
)
def test_hostile_messages_are_wrong_soon(message: str) -> None:
    started = time.thread_time()  # of this thread alone: a busy machine takes none of it
    for kind, value in (
        ("money", "$45.00"), ("number", "12"), ("date", "2026-03-02"), ("duration", "5 min"),
        ("text", "Oak Mug"), ("code", "A7KQ2MXB4T"),
    ):  # fmt: skip
        assert right(kind, value, message, among=MUGS) is not True  # type: ignore[arg-type]
    assert time.thread_time() - started < 5  # seconds; linear work takes a few hundredths


@given(st.text(max_size=300), st.sampled_from(["money", "number", "date", "duration", "text"]))
def test_any_text_is_judged_without_an_error(message: str, kind: AnswerKind) -> None:
    assert right(kind, "12:01" if kind == "text" else _VALUES[kind], message) in {True, False, None}


_VALUES = {"money": "$45.00", "number": "12", "date": "2026-03-02", "duration": "5 min"}


@given(st.integers(0, 10**7))
def test_every_amount_is_right_as_text_and_as_json_and_wrong_beside_another(cents: int) -> None:
    text = f"${cents // 100:,}.{cents % 100:02}"
    assert right("money", text, text)
    assert right("money", text, json.dumps({"answer": cents / 100}))
    assert right("money", text, f"{text} or $99,999,999.99") is False
