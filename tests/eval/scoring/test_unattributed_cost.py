"""What a run paid on top of the cost that its judgments state."""

from __future__ import annotations

from math import nan
from pathlib import Path

import pytest

from tests.eval.cases import call, said
from trajudge.eval.scoring.records import UnattributedCost
from trajudge.eval.scoring.usage import unattributed_cost
from trajudge.eval.store.table import PAYMENTS, CallColumns, JudgmentTable
from trajudge.judges.engine.budget import Payments

CAPTION, VERDICT, OTHER = "a" * 64, "b" * 64, "c" * 64


def calls_of(caption: float | None, verdict: float | None) -> CallColumns:
    calls = (call(caption, request=CAPTION, stage="caption"), call(verdict, request=VERDICT))
    return JudgmentTable.of([said(1, True, calls=calls), said(2, True, calls=calls)]).calls


@pytest.fixture
def payments(tmp_path: Path) -> Payments:
    return Payments(tmp_path / PAYMENTS)


def test_failed_attempts_and_replies_of_no_judgment_come_on_top(payments: Payments) -> None:
    calls = calls_of(0.5, 0.25)
    assert unattributed_cost(payments.path, calls) == UnattributedCost()
    payments.paid(CAPTION, 0.5)
    payments.paid(VERDICT, 0.25)
    assert unattributed_cost(payments.path, calls) == UnattributedCost()
    payments.paid(VERDICT, 0.125)
    payments.paid(OTHER, 1.0)
    assert unattributed_cost(payments.path, calls) == UnattributedCost(dollars=1.125)
    assert unattributed_cost(payments.path, calls, {OTHER: 1.0}) == UnattributedCost(dollars=0.125)


def test_a_reply_in_a_batch_was_cheaper_than_its_judgment_says(payments: Payments) -> None:
    payments.paid(CAPTION, 0.25)
    assert unattributed_cost(payments.path, calls_of(0.5, 0.25)) == UnattributedCost(rebate=0.25)


def test_of_attempts_of_unknown_price_one_is_the_reply(payments: Payments) -> None:
    payments.paid(CAPTION, None)
    payments.paid(VERDICT, 0.25)
    calls = calls_of(None, 0.25)
    assert unattributed_cost(payments.path, calls) == UnattributedCost()
    payments.paid(CAPTION, None)
    payments.paid(OTHER, None)
    assert unattributed_cost(payments.path, calls) == UnattributedCost(unpriced=2)
    assert unattributed_cost(payments.path, calls, {OTHER: nan}) == UnattributedCost(unpriced=1)


def test_a_reply_that_was_paid_before_its_price_was_forgotten_is_attributed(
    payments: Payments,
) -> None:
    payments.paid(CAPTION, 0.5)
    assert unattributed_cost(payments.path, calls_of(None, 0.25)) == UnattributedCost(presumed=0.5)
