"""Which last messages are right: declared ones by their values, others where they hold one."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.environments.verify.last_messages import LastMessage, real_messages, written_messages
from tests.tables import table
from trajudge.environments.chromium.action_syntax import BadAction, parse, spoken
from trajudge.environments.model import schema
from trajudge.environments.model.spec import AnswerKind, AnswerSpec, Scenario
from trajudge.environments.model.state import AppState
from trajudge.environments.model.wording import with_answer_form
from trajudge.environments.verify.answers import answered
from trajudge.environments.verify.truth import ResolvedAnswer, query_answer, reply, written

MUGS = ("Oak Mug", "Dark Oak Mug", "Slate Mug", "Wool Throw", "Café Table", "May")
VALUES: dict[AnswerKind, str] = {
    "money": "$45.00",
    "number": "12",
    "date": "2026-03-02",
    "duration": "1 h 35 min",
    "text": "Oak Mug",
    "code": "A7KQ2MXB4T",
}


def right(kind: AnswerKind, message: str | None, unit: str = "") -> bool | None:
    (fact,) = answered([ResolvedAnswer(kind, (VALUES[kind],), MUGS, unit)], message)
    return fact.right


def rates(messages: Iterable[LastMessage]) -> tuple[int, int, int]:
    """Count definite errors, messages that are left open though a person is sure, and all."""
    counted = Counter((one.read, one.verdict) for one in messages)
    errors = sum(n for (read, verdict), n in counted.items() if read not in (None, verdict))
    unread = sum(
        n for (read, verdict), n in counted.items() if read is None and verdict is not None
    )
    return errors, unread, counted.total()


def test_one_message_in_a_hundred_is_judged_otherwise_than_by_a_person() -> None:
    errors, unread, count = rates(written_messages())
    assert count == 492
    assert errors <= 4
    assert unread <= 90


def test_of_the_declared_answers_next_to_none_is_open() -> None:
    written = [one for one in written_messages() if "nswer" in one.text and one.asked]
    assert len(written) > 180
    errors, unread, _ = rates(written)
    assert (errors, unread) == (0, 1)


def test_real_messages_are_read_rightly_or_left_open(real_data: Path) -> None:
    errors, unread, count = rates(real_messages(real_data))
    assert count == 203
    assert errors <= 2
    assert unread <= 119


@table(
    "kind action verdict",
    """
    money    | answer('$45.00')               | True
    money    | answer(45)                     | True
    money    | answer('45,00 $')              | True
    money    | answer(45.01)                  | False
    money    | answer('-$45.00')              | False
    money    | answer('€45.00')               | False
    money    | answer(['$45.00', '$46.00'])   | False
    number   | answer('twelve')               | True
    number   | answer(13)                     | False
    number   | answer('12 or 13')             | False
    number   | answer('at least 12')          | None
    number   | answer('many')                 | False
    date     | answer('March 2, 2026')        | True
    date     | answer('2.3.2026')             | True
    date     | answer('3/2/2026')             | None
    date     | answer('2026-03-03')           | False
    date     | answer('2026-02-30')           | None
    duration | answer('95 min')               | True
    duration | answer('1:35')                 | True
    duration | answer('1h35')                 | True
    duration | answer(95)                     | None
    duration | answer('1 h 36 min')           | False
    text     | answer('the oak mug')          | True
    text     | answer('Mug, Oak')             | True
    text     | answer('Dark Oak Mug')         | False
    text     | answer('Oak')                  | None
    text     | answer(['Oak Mug', 'Wool'])    | False
    code     | answer('a7kq2mxb4t')           | True
    code     | answer('A7KQ2MXB4U')           | False
    text     | answer(None)                   | False
    money    | answer('')                     | False
    """,
)
def test_a_declared_answer_is_compared_by_its_value(
    kind: AnswerKind, action: str, verdict: str
) -> None:
    assert str(right(kind, spoken(action))) == verdict


@table(
    "kind message verdict",
    """
    money    | It is $45.00, that is, $45       | True
    money    | It costs $46.                    | False
    money    | It costs $45.00 or $46.00        | None
    money    | It does not cost $45.00.         | None
    money    | It costs over $45.00.            | None
    number   | There are 12 on 2026-03-02.      | True
    number   | There are 12 on two pages.       | None
    number   | Order AF-12 came at 9:30.        | None
    date     | On March 2.                      | None
    text     | It is the Oak Mug.               | True
    text     | It is the Dark Oak Mug.          | False
    text     | The Oak Mug, not the Slate Mug   | None
    text     | Sorry, there are Oak Mugs only   | None
    code     | The code is A7KQ2MXB4T.          | True
    code     | A7KQ2MXB4T PROCESSING            | True
    code     | A7KQ2MXB4T, B7KQ2MXB4T           | None
    """,
)
def test_prose_is_read_where_it_holds_one_value_beyond_doubt(
    kind: AnswerKind, message: str, verdict: str
) -> None:
    assert str(right(kind, message)) == verdict


@table(
    "kind message verdict",
    """
    money    | I could not find it.             | False
    money    | There is nothing of the kind.    | False
    money    | Twelve hundred dollars           | None
    number   | I could not find it.             | False
    date     | It was in the spring.            | False
    text     | I could not find it.             | False
    text     | I could not find the oak one     | None
    texts    | I could not find any.            | False
    texts    | The Oak Mug is one of them       | None
    code     | The order 12 is cancelled.       | False
    none     | I could not find it.             | None
    """,
)
def test_prose_without_a_value_is_no_answer(kind: AnswerKind, message: str, verdict: str) -> None:
    asked = [ResolvedAnswer(kind, (VALUES.get(kind, "Oak Mug"),), MUGS)]
    assert str(answered(asked, message)[0].right) == verdict
    assert answered([ResolvedAnswer("number", ("0",))], "There are none.")[0].right is None


def test_a_number_is_compared_in_the_unit_that_is_asked() -> None:
    assert right("number", "Answer: 0.012 kg", "grams") is True
    assert right("number", "Answer: 12 kg", "grams") is False
    assert right("number", "12 hours", "grams") is None
    assert right("number", "12 hours") is None


def test_a_word_is_a_name_if_it_is_spelled_as_one() -> None:
    asked = [ResolvedAnswer("text", ("May",), MUGS)]
    assert answered(asked, "It was in May.")[0].right is True
    assert answered(asked, "You may see it there.")[0].right is None
    assert answered(asked, spoken("answer('may')"))[0].right is True


def test_a_list_declares_several_names_or_several_kinds() -> None:
    both = [ResolvedAnswer("texts", ("Oak Mug", "Slate Mug"), MUGS)]
    for action, verdict in (
        ("answer(['Slate Mug', 'Oak Mug'])", True),
        ("answer('Slate Mug and the Oak Mug')", True),
        ("answer(['Slate Mug'])", False),
        ("answer(['Slate Mug', 'Oak Mug', 'Glass Vase'])", False),
        ("answer(['Slate Mug', 'Oak Mug', 'Wool Throw'])", False),
    ):
        assert answered(both, spoken(action))[0].right is verdict, action
    assert answered(both, "They are Oak Mug and Slate Mug.")[0].right is None, "a set is not one"
    several = [
        ResolvedAnswer("code", ("A7KQ2MXB4T",)),
        ResolvedAnswer("number", ("3",)),
        ResolvedAnswer("text", ("Oak Mug",), MUGS),
    ]
    for said, verdicts in (
        (spoken("answer(['A7KQ2MXB4T', 3, 'Oak Mug'])"), [True, True, True]),
        ("Done.\nAnswer: A7KQ2MXB4T; 3; Oak Mug", [True, True, True]),
        (spoken("answer(['A7KQ2MXB4T', 4, 'Oak Mug'])"), [True, False, True]),
        (spoken("answer(['A7KQ2MXB4T', 3])"), [False, False, False]),
        ("The Oak Mug, 3 of it, with the code A7KQ2MXB4T", [True, True, True]),
    ):
        assert [fact.right for fact in answered(several, said)] == verdicts, said


@pytest.mark.parametrize(
    ("kind", "cell", "text"),
    [
        ("money", 123_456, "$1,234.56"),
        ("number", 3.0, "3"),
        ("number", 2.5, "2.5"),
        ("duration", 45, "45 min"),
        ("duration", 60, "1 h 0 min"),
        ("duration", 135, "2 h 15 min"),
        ("duration", "two hours", "two hours"),
        ("text", 7, "7"),
    ],
)
def test_an_answer_is_written_as_a_reader_would(
    kind: AnswerKind, cell: float | str, text: str
) -> None:
    assert written(kind, cell) == text


def test_a_question_has_one_answer_and_a_list_all_that_there_are() -> None:
    state = AppState((schema.table("mug", id="token", name="text"),))
    state.load({"mug": [("a", "Oak"), ("b", "Elm"), ("c", "Oak")]})

    def values(kind: AnswerKind, where: str) -> tuple[str, ...]:
        sql = f"SELECT name FROM mug WHERE {where} ORDER BY id"
        return query_answer(AnswerSpec(kind, sql), state, {}).values

    assert values("texts", "true") == ("Oak", "Elm")
    assert [values("text", where) for where in ("true", "name = 'Oak'", "false")] == [
        (), ("Oak",), ()
    ]  # fmt: skip
    assert values("none", "true") == ("None",)
    state.close()
    right = (
        *(ResolvedAnswer("texts", ("a", "b")), ResolvedAnswer("code", ("K1",))),
        *(ResolvedAnswer("money", ("$1",)), ResolvedAnswer("code", ("K2",))),
    )
    assert reply("It is {answer} ({code}).", {}, right) == "It is a, b and $1 (K1 and K2)."


def test_that_it_is_not_possible_is_declared() -> None:
    asked = [ResolvedAnswer("none", ("None",))]
    for said in (spoken("answer(None)"), "It is for managers only.\nAnswer: not possible"):
        assert answered(asked, said)[0].right is True
    assert answered(asked, "Answer: done")[0].right is False
    assert answered(asked, "It is not possible.")[0].right is None


def test_without_a_right_answer_in_the_state_nothing_is_right() -> None:
    (fact,) = answered([ResolvedAnswer("money", ())], "Answer: $45.00")
    assert (fact.right, fact.reason) == (False, "the state has no right answer")


@pytest.mark.parametrize("message", [None, "", "  ", "Answer: ", "Answer: N/A", "Answer: done"])
@pytest.mark.parametrize("kind", VALUES)
def test_nothing_and_constants_are_wrong(kind: AnswerKind, message: str | None) -> None:
    assert right(kind, message) is False


@pytest.mark.slow
@pytest.mark.parametrize(
    "message",
    [
        "9" * 9_999,
        "$" * 3_999,
        "1," * 1_999,
        "1:11" * 999,
        "1 h " * 999,
        "oak " * 999,
        "a\u0301" + "\u0301" * 3_000,
        "\ufdfa" * 3_999,
        '{"answer":' * 390,
        '{"answer": ' + "[" * 1_900 + "]" * 1_900 + "}",
        '{"answer": 1e999999}',
        '{"answer": ' + "9" * 3_900 + "}",
        "Answer: " + "9" * 3_900,
        "\ud800",
        "x" * 10_000_000,
        "twenty " * 570,
        "A7KQ2MXB4-" * 390,
        "March 1 of " * 360,
    ],
    ids=range(18),
)
def test_hostile_messages_are_read_soon(message: str) -> None:
    started = time.thread_time()  # of this thread alone: a busy machine takes none of it
    for kind in VALUES:
        assert right(kind, message) is not True
    assert time.thread_time() - started < 5  # seconds; linear work takes a few hundredths


@given(st.text(max_size=300), st.sampled_from(list(VALUES)), st.booleans())
def test_any_text_is_judged_without_an_error(message: str, kind: AnswerKind, line: bool) -> None:
    assert right(kind, f"Answer: {message}" if line else message) in {True, False, None}


@given(st.integers(0, 10**7))
def test_every_amount_is_right_as_text_and_as_json(cents: int) -> None:
    text = f"${cents // 100:,}.{cents % 100:02}"
    asked = [ResolvedAnswer("money", (text,))]
    for said in (text, f"Answer: {text}", json.dumps({"answer": cents / 100})):
        assert answered(asked, said)[0].right is True
    assert answered(asked, json.dumps({"answer": (cents + 1) / 100}))[0].right is False


def test_an_action_that_does_not_end_the_run_says_nothing() -> None:
    assert spoken("click('12')") is None
    assert spoken("answer(") is None
    assert spoken("send_msg_to_user('12')") == "12"
    assert spoken("answer(value='é')") == '{"answer": "é"}'
    assert spoken("answer(None)") == '{"answer": null}'


@table(
    "text",
    r"""
    answer()
    answer([[1]])
    answer(True)
    answer(1e999)
    answer(['\ud800'])
    answer({'a': 1})
    click(None)
    """,
)
def test_what_declares_no_value_is_no_action(text: str) -> None:
    with pytest.raises(BadAction):
        parse(text)


def goal(*answers: AnswerSpec) -> str:
    scenario = Scenario("one", ("Look.",), {}, lambda _: [], (), answers)
    return with_answer_form("Look.", scenario)


def test_every_goal_says_how_to_declare_the_answer() -> None:
    assert goal(AnswerSpec("money")) == (
        "Look. End with the action answer(value), or with a message whose last line is "
        '"Answer: value". The value is the amount in dollars; it is None if the task is not '
        "possible."
    )
    assert "The value is the number of grams;" in goal(AnswerSpec("number", unit="grams"))
    assert (
        "a list: the operation code, then the date as year-month-day (in a line, with semicolons "
        "between them);" in goal(AnswerSpec("code"), AnswerSpec("date"))
    )
    assert 'The value is "done";' in goal()
    assert goal() == goal(AnswerSpec("none")), "what is not possible is asked in the same words"
