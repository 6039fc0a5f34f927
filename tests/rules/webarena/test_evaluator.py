"""The verdict on a run: what the harness would say, and unknown where it would have to look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.rules.verdict import Outcome
from trajudge.rules.webarena import AnswerQuestion, Run, StoredPage, Task, Trace, WebArenaEvaluator
from trajudge.rules.webarena.evaluator import evaluate_runs
from trajudge.util.errors import UserError

PASS, FAIL, UNKNOWN = Outcome.PASS, Outcome.FAIL, Outcome.UNKNOWN
SITES = {"__SHOPPING__": "http://shop.test"}
RULES = WebArenaEvaluator(sites=SITES)


def task(*checks: str, **spec: Any) -> Task:
    record = {"task_id": 7, "intent": "How many?", "eval": {"eval_types": checks, **spec}}
    return msgspec.convert(record, Task)


def answered(references: Mapping[str, Any], note: str = "") -> Task:
    return task("string_match", reference_answers=references, string_note=note)


def page_task(contents: Mapping[str, Any], *, url: str = "last", locator: str = "") -> Task:
    check = {"url": url, "locator": locator, "required_contents": contents}
    return task("program_html", program_html=[check])


@pytest.mark.parametrize(
    ("references", "answer", "outcome"),
    [
        ({"exact_match": "Sprite"}, ' "sprite" ', PASS),
        ({"exact_match": "Sprite"}, "A Sprite", FAIL),
        ({"must_include": ["Yes"]}, "Yes, The final answer is No", PASS),
        ({"must_include": ["2"]}, "2 000", PASS),
        ({"must_include": ["2"]}, "12", FAIL),
        ({"must_include": ["2", "3"]}, "123", PASS),
        ({"must_include": ["2", "4"]}, "123", FAIL),
        ({"must_include": ["65 |OR| 3"]}, "3", FAIL),
        ({"exact_match": "a", "must_include": ["b"]}, "a", FAIL),
        ({"must_include": ["x"]}, None, FAIL),
        ({"fuzzy_match": ["an hour"]}, "", FAIL),
        ({"fuzzy_match": "N/A"}, "n/a", PASS),
    ],
)
def test_answers_are_held_against_the_references(
    references: Mapping[str, Any], answer: str | None, outcome: Outcome
) -> None:
    assert RULES.evaluate(answered(references), answer, None).outcome is outcome


def test_a_failure_names_what_was_expected_and_found() -> None:
    verdict = RULES.evaluate(answered({"must_include": ["Tea", "Milk"]}), "'TEA'", None)
    first, second = verdict.assertions
    assert first.outcome is PASS
    assert (second.name, second.expected) == ("answer.must_include.1", "Milk")
    assert (second.expected_normalised, second.found_normalised) == ("milk", "tea")
    assert verdict.reasons == ("answer.must_include.1: 'tea' does not match 'Milk'",)


@pytest.mark.parametrize(("decision", "outcome"), [(True, PASS), (False, FAIL), (None, UNKNOWN)])
def test_a_judge_model_decides_what_is_fuzzy(decision: bool | None, outcome: Outcome) -> None:
    asked = []

    def judge(question: AnswerQuestion) -> bool | None:
        asked.append(question)
        return decision

    rules = WebArenaEvaluator(judge=judge)
    assert rules.evaluate(answered({"fuzzy_match": ["an hour"]}), "60 min", None).outcome is outcome
    unachievable = answered({"fuzzy_match": "N/A"}, note="no such product")
    assert rules.evaluate(unachievable, "There is none", None).outcome is outcome
    assert asked == [
        AnswerQuestion("equivalent", "How many?", "an hour", "60 min"),
        AnswerQuestion("same_reason", "How many?", "no such product", "there is none"),
    ]


def test_without_a_judge_model_fuzzy_is_unknown_but_a_wrong_word_still_fails() -> None:
    assert RULES.evaluate(answered({"fuzzy_match": ["1h"]}), "60 min", None).outcome is UNKNOWN
    both = answered({"must_include": ["Park"], "fuzzy_match": ["1h"]})
    assert RULES.evaluate(both, "60 min", None).outcome is FAIL


@pytest.mark.parametrize(
    ("trace", "outcome"),
    [
        (Trace(url="http://shop.test/cart"), PASS),
        (Trace(url="__SHOPPING__/cart/"), PASS),
        (Trace(url="http://shop.test/"), FAIL),
        (Trace(url="about:blank"), FAIL),
        (Trace(), UNKNOWN),
        (None, UNKNOWN),
    ],
)
def test_the_last_url_decides_if_it_was_recorded(trace: Trace | None, outcome: Outcome) -> None:
    spec = task("url_match", reference_url="__SHOPPING__/cart", url_note="GOLD in PRED")
    rules = RULES if trace and trace.url and "://" in trace.url else WebArenaEvaluator()
    assert rules.evaluate(spec, "", trace).outcome is outcome


def test_a_real_address_says_nothing_about_a_placeholder_without_one() -> None:
    spec = task("url_match", reference_url="__SHOPPING__/cart")
    verdict = WebArenaEvaluator().evaluate(spec, "", Trace(url="http://10.0.0.1/cart"))
    assert verdict.outcome is UNKNOWN
    assert "__SHOPPING__ has no address" in verdict.reasons[0]


def test_an_unknown_rule_for_urls_is_no_fail() -> None:
    spec = task("url_match", reference_url="__SHOPPING__/cart", url_note="EXACT")
    assert RULES.evaluate(spec, "", Trace(url="http://shop.test/cart")).outcome is UNKNOWN


CART = StoredPage(
    url="http://shop.test/cart",
    html="<p>Tea &amp; Milk, 2 000</p>",
    values={"document.title": "Cart"},
)


@pytest.mark.parametrize(
    ("contents", "locator", "outcome"),
    [
        ({"must_include": ["tea & milk"]}, "", PASS),
        ({"must_include": ["tea", "rum"]}, "", FAIL),
        ({"must_include": ["rum |OR| milk"]}, "", PASS),
        ({"exact_match": "cart"}, "document.title", PASS),
        ({"exact_match": "car |OR| cart"}, "document.title", FAIL),
        ({"exact_match": "cart", "must_include": ["never read"]}, "document.title", PASS),
        ({"must_include": ["x"]}, "document.body.outerText", UNKNOWN),
        ({}, "", UNKNOWN),
    ],
)
@pytest.mark.parametrize("url", ["last", "__SHOPPING__/cart/"])
def test_stored_pages_are_read_and_missing_ones_are_unknown(
    contents: Mapping[str, Any], locator: str, outcome: Outcome, url: str
) -> None:
    trace = Trace(url="http://shop.test/cart", pages=(CART,))
    spec = page_task(contents, locator=locator, url=url)
    assert RULES.evaluate(spec, None, trace).outcome is outcome
    assert RULES.evaluate(spec, None, None).outcome is UNKNOWN


def test_helpers_are_never_run_but_their_recorded_results_are_read() -> None:
    spec = page_task({"exact_match": "80"}, locator="func:rating('B1')")
    page = StoredPage(url="http://shop.test")
    recorded = Trace(url="http://shop.test", pages=(page,), results={"rating('B1')": "80"})
    assert RULES.evaluate(spec, None, recorded).outcome is PASS
    assert RULES.evaluate(spec, None, Trace(url="http://shop.test")).outcome is UNKNOWN
    order = page_task({"must_include": ["tea"]}, url="func:latest_order()")
    orders = Trace(url="x", pages=(CART,), results={"latest_order()": CART.url})
    assert RULES.evaluate(order, None, orders).outcome is PASS


def test_the_address_of_a_post_needs_no_helper() -> None:
    spec = page_task({"must_include": ["hello"]}, url="func:reddit_get_post_url('__last_url__')")
    page = StoredPage(url="http://r.test/f/books/12/", html="Hello")
    trace = Trace(url="http://r.test/f/books/12/a-title#comment", pages=(page,))
    assert RULES.evaluate(spec, None, trace).outcome is PASS


def test_last_means_the_page_that_the_check_before_opened() -> None:
    checks = [
        {"url": "__SHOPPING__/cart", "locator": "", "required_contents": {"must_include": ["tea"]}},
        {"url": "last", "locator": "", "required_contents": {"must_include": ["milk"]}},
    ]
    spec = task("program_html", program_html=checks)
    trace = Trace(url="http://shop.test/elsewhere", pages=(CART,))
    assert RULES.evaluate(spec, None, trace).outcome is PASS


def test_a_task_without_checks_is_unknown() -> None:
    assert RULES.evaluate(task(), "anything", None).outcome is UNKNOWN


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(json_values, st.none() | st.text())
def test_no_answer_and_no_url_raises(answer: object, url: str | None) -> None:
    spec = task(
        "string_match",
        "url_match",
        reference_answers={"must_include": ["2"], "fuzzy_match": ["x"]},
        reference_url="__SHOPPING__/a |OR| http://[x",
    )
    RULES.evaluate(spec, answer, Trace(url=url))


@pytest.mark.parametrize("answer", [{"n": 10**5000}, ["\udcff"], "\udcff", {1: object()}, b"\xff"])
def test_no_answer_is_too_strange_to_be_judged_and_written_down(answer: object) -> None:
    verdict = RULES.evaluate(answered({"must_include": ["tea"]}), answer, None)
    assert verdict.outcome is FAIL
    msgspec.json.encode(verdict)


def test_a_huge_answer_is_judged_and_not_kept() -> None:
    verdict = RULES.evaluate(answered({"must_include": ["needle"]}), "hay " * 12_500_000, None)
    assert verdict.outcome is FAIL
    assert len(msgspec.json.encode(verdict)) < 10_000


def test_runs_are_judged_in_their_order_and_must_belong_to_a_task() -> None:
    spec = answered({"exact_match": "3"})
    judged = list(evaluate_runs([spec], [Run(task_id="7", answer="3"), Run(task_id=7)], RULES))
    assert [(task_id, verdict.outcome) for task_id, verdict in judged] == [(7, PASS), (7, FAIL)]
    with pytest.raises(UserError, match="task id 8 is in no task file"):
        list(evaluate_runs([spec], [Run(task_id=8)], RULES))
