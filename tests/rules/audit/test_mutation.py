"""Mutation testing: a rule's false accepts and false rejects, with what slipped through."""

from __future__ import annotations

from typing import Any

import msgspec

from trajudge.rules.audit.mutate import (
    EQUIVALENT,
    MOST,
    NEAR_MISSES,
    TRACE_NEAR_MISSES,
    MutationCase,
    MutationReport,
    mutation_report,
)
from trajudge.rules.verdict import Assertion, Outcome, Verdict, verdict_of
from trajudge.rules.webarena import Task, Trace, WebArenaEvaluator


class Equality:
    """The strictest rule: the answer and the trace are those of the task."""

    def evaluate(self, task: Any, answer: object, trace: object) -> Verdict:
        outcome = Outcome.PASS if (answer, trace) == task else Outcome.FAIL
        return verdict_of([Assertion(name="all", outcome=outcome)])


class Anything:
    """The laxest rule: every run passes."""

    def evaluate(self, task: Any, answer: object, trace: object) -> Verdict:
        return verdict_of([Assertion(name="all", outcome=Outcome.PASS)])


class Undecided:
    """A rule that lacks what it needs."""

    def evaluate(self, task: Any, answer: object, trace: object) -> Verdict:
        return verdict_of([Assertion(name="all", outcome=Outcome.UNKNOWN, reason="no page")])


ANSWER = {"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": [{"n": 12, "city": "X"}]}
CASE = MutationCase(name="one", task=(ANSWER, None), answer=ANSWER)


def report(case: MutationCase, rule: Any) -> MutationReport:
    """Of two runs, for the variants of one tell nothing of others."""
    cases = [case, msgspec.structs.replace(case, name="two")]
    return mutation_report(cases, rule, NEAR_MISSES, EQUIVALENT)


def test_a_strict_rule_accepts_no_near_miss_and_rejects_other_forms() -> None:
    made = report(CASE, Equality())
    assert made.false_accepts.wrong == 0
    assert made.false_accepts.trials > 10
    assert made.false_accepts.low == 0
    assert made.false_rejects.wrong > 0
    wrong = {rate.mutator for rate in made.mutators if rate.expected == "pass" and rate.wrong}
    assert wrong == {"spaced", "json_text", "json_fence", "json_after_prose", "byte_order_mark"}


def test_a_lax_rule_accepts_every_near_miss_and_rejects_nothing() -> None:
    made = report(CASE, Anything())
    assert made.false_accepts.share == 1
    assert made.false_accepts.high == 1
    assert made.false_rejects.share == 0
    assert len(made.mistakes) == made.false_accepts.wrong
    assert {mistake.expected for mistake in made.mistakes} == {"fail"}


def test_near_misses_of_a_rejected_run_say_nothing() -> None:
    made = report(msgspec.structs.replace(CASE, task=None), Equality())
    assert made.false_accepts.trials == 0
    assert (made.false_accepts.share, made.false_accepts.low) == (None, None)
    original = next(rate for rate in made.mutators if rate.mutator == "original")
    assert (original.wrong, original.trials) == (2, 2)


def test_an_unknown_is_neither_accepted_nor_rejected() -> None:
    made = report(CASE, Undecided())
    assert made.false_rejects.trials == 0
    assert made.false_rejects.undecided > 0
    assert made.mistakes == ()


def test_substring_rules_fall_for_what_the_audit_says() -> None:
    record = {
        "task_id": 1,
        "intent": "How far?",
        "eval": {"eval_types": ["string_match"], "reference_answers": {"must_include": ["20 km"]}},
    }
    case = MutationCase(name="far", task=msgspec.convert(record, Task), answer="20 km")
    made = report(case, WebArenaEvaluator())
    fooled = {mistake.mutator: mistake.answer for mistake in made.mistakes}
    assert fooled == {"sign": "-20 km", "denial": "It is certainly not 20 km"}
    assert made.false_rejects.wrong == 0


def test_containment_falls_for_no_other_host_but_urls_run_on() -> None:
    record = {
        "task_id": 1,
        "intent": "Open the cart",
        "eval": {"eval_types": ["url_match"], "reference_url": "http://shop.test/cart"},
    }
    trace = Trace(url="http://shop.test/cart")
    task = msgspec.convert(record, Task)
    case = MutationCase(name="cart", task=task, answer=None, trace=trace, ends_there=True)
    made = mutation_report([case], WebArenaEvaluator(), TRACE_NEAR_MISSES, {})
    assert {rate.mutator: rate.wrong for rate in made.mutators} == {
        "original": 0,
        "wrong_host": 0,
        "stale_event": 0,
    }


def test_long_lists_are_tried_within_bounds() -> None:
    answer = list(range(1_000))
    made = report(MutationCase(name="long", task=None, answer=answer), Anything())
    assert all(rate.trials <= 2 * MOST for rate in made.mutators)


def test_a_report_is_a_json_value() -> None:
    made = report(CASE, Equality())
    assert msgspec.json.decode(msgspec.json.encode(made), type=MutationReport) == made
