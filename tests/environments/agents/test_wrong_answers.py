"""Wrong answers are what other tasks would have, or what a wrong row says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.environments.cases import sound
from trajudge.environments.agents.wrong_answers import Guess, Values, Wrong, made_up, misread
from trajudge.environments.model.binding import bind, parameters
from trajudge.environments.model.operation_codes import ALPHABET, LENGTH
from trajudge.environments.model.spec import AnswerSpec
from trajudge.environments.serving.run import ServedRun, open_run
from trajudge.environments.verify.truth import query_answer


@pytest.fixture
def days() -> Iterator[ServedRun]:
    """A run whose answer is a number of days."""
    run = open_run(sound("absent-days", "helpdesk").config, b"k")
    yield run
    run.state.close()


@pytest.fixture
def price() -> Iterator[ServedRun]:
    run = open_run(sound("price").config, b"k")
    yield run
    run.state.close()


def drawn(
    run: ServedRun, wrong: Wrong, answer: AnswerSpec, right: Values, times: int = 300
) -> Counter[Values]:
    rng = np.random.default_rng(0)
    guess = Guess(run.scenario, run.state, run.bound, rng)
    return Counter(wrong(guess, answer, right) for _ in range(times))


def test_a_count_is_misread_by_one_or_from_the_wrong_row(days: ServedRun) -> None:
    (answer,) = days.scenario.answers
    row = query_answer(answer, days.state, parameters(days.bound)).values
    for right in (("70",), ("x",), ("70", "71")):
        shares = {text: n / 3000 for text, n in drawn(days, misread, answer, right, 3000).items()}
        if right == ("70",):
            assert shares == {
                ("69",): pytest.approx(0.25, abs=0.02),
                ("71",): pytest.approx(0.25, abs=0.02),
                row: pytest.approx(0.5, abs=0.02),
            }
        else:
            assert shares == {row: 1}
    assert row not in drawn(days, misread, answer, row)  # where the row is the right one


def test_what_is_made_up_is_right_of_another_task(price: ServedRun) -> None:
    (answer,) = price.scenario.answers
    (slot,) = price.scenario.slots
    others = {
        query_answer(
            answer, price.state, parameters(bind(price.scenario, {slot: at}, price.state))
        ).values
        for at in np.linspace(0, 0.999, 200)
    }
    right = query_answer(answer, price.state, parameters(price.bound)).values
    assert drawn(price, made_up, answer, right).keys() <= others - {right}


def test_what_holds_after_a_run_is_invented(days: ServedRun) -> None:
    (answer,) = days.scenario.answers
    for wrong in (made_up, misread):
        found = drawn(days, wrong, replace(answer, when="after"), ("x",), 1000)
        assert {int(text) for (text,) in found} == {*range(2, 60)}


def test_a_code_is_copied_or_invented(days: ServedRun) -> None:
    answer = AnswerSpec("code", "ticket")
    assert drawn(days, misread, answer, ("K7",)) == {("K7",): 300}
    for found in (drawn(days, misread, answer, ()), drawn(days, made_up, answer, ("K7",))):
        assert len(found) == 300
        assert all(re.fullmatch(f"[{ALPHABET}]{{{LENGTH}}}", text) for (text,) in found)
