"""A declared answer is compared by its type and not read as prose."""

from __future__ import annotations

import pytest

from tests.environments.verify.answers import MUGS, right
from tests.tables import table
from trajudge.environments.apps import load_app
from trajudge.environments.chromium.action_syntax import BadAction, parse, spoken
from trajudge.environments.model.spec import AnswerKind
from trajudge.environments.model.wording import with_answer_form
from trajudge.environments.verify.answers import answered
from trajudge.environments.verify.truth import ResolvedAnswer


@table(
    "kind value action",
    """
    money    | $45.00     | answer('$45.00')
    money    | $45.00     | answer(45)
    number   | 1188624    | answer(1188624)
    number   | 12         | answer('12')
    number   | 12         | answer('twelve')
    date     | 2026-03-02 | answer('2026-03-02')
    date     | 2026-03-02 | answer('March 2, 2026')
    duration | 1 h 35 min | answer('95 min')
    text     | Oak Mug    | answer('oak mug')
    code     | A7KQ2MXB4T | answer('A7KQ2MXB4T')
    """,
)
def test_a_declared_answer_is_its_value(kind: AnswerKind, value: str, action: str) -> None:
    assert right(kind, value, spoken(action), among=MUGS) is True


@table(
    "kind value action",
    """
    money    | $45.00     | answer(45.01)
    money    | $45.00     | answer(['$45.00', '$46.00'])
    money    | $45.00     | answer('€45.00')
    number   | 12         | answer(13)
    number   | 12         | answer('not 12')
    number   | 12         | answer('12 or 13')
    number   | 12         | answer('at least 12')
    date     | 2026-03-02 | answer('2026-03-03')
    duration | 1 h 35 min | answer('1 h 36 min')
    text     | Oak Mug    | answer('Slate Mug')
    text     | Oak Mug    | answer('not the Oak Mug')
    text     | Oak Mug    | answer(['Oak Mug', 'Glass Vase'])
    code     | A7KQ2MXB4T | answer('A7KQ2MXB4U')
    """,
)
def test_a_declared_answer_is_no_other_value(kind: AnswerKind, value: str, action: str) -> None:
    assert right(kind, value, spoken(action), among=MUGS) is False


def test_a_list_declares_several_names_or_several_kinds() -> None:
    both = ("Oak Mug", "Slate Mug")
    assert right("texts", both, spoken("answer(['Slate Mug', 'Oak Mug'])"), among=MUGS)
    assert right("texts", both, spoken("answer(['Slate Mug'])"), among=MUGS) is False
    asked = [
        ResolvedAnswer("code", ("A7KQ2MXB4T",)),
        ResolvedAnswer("number", ("3",)),
        ResolvedAnswer("text", ("Oak Mug",), MUGS),
    ]
    facts = answered(asked, spoken("answer(['A7KQ2MXB4T', 3, 'Oak Mug'])"), "")
    assert [fact.right for fact in facts] == [True, True, True]
    facts = answered(asked, spoken("answer(['A7KQ2MXB4T', 4, 'Oak Mug'])"), "")
    assert [fact.right for fact in facts] == [True, False, False], "4 is no name either"


def test_an_action_that_does_not_end_the_run_says_nothing() -> None:
    assert spoken("click('12')") is None
    assert spoken("answer(") is None
    assert spoken("send_msg_to_user('12')") == "12"
    assert spoken("answer(value='é')") == '{"answer": "é"}'


@table(
    "text",
    r"""
    answer()
    answer([[1]])
    answer(True)
    answer(1e999)
    answer(['\ud800'])
    answer({'a': 1})
    """,
)
def test_what_declares_no_value_is_no_action(text: str) -> None:
    with pytest.raises(BadAction):
        parse(text)


def test_the_goal_says_how_to_declare_what_it_asks_for() -> None:
    shop = load_app("shop")
    said = with_answer_form("How much?", shop.scenario("price"))
    assert said == (
        "How much? End with the action answer(value), and nothing else in it: the amount as text "
        "with its currency."
    )
    both = with_answer_form("Order it.", shop.scenario("buy-best"))
    assert both.endswith(
        "a list: the operation code as text, the amount as text with its currency."
    )
    assert with_answer_form("Wish.", shop.scenario("wish")) == "Wish."
