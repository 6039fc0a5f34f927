"""A specification's own mistake makes a run unknown, unless the rest of it decides."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.rules.verified.tasks import HOSTS, answer, mutation, page, request, task, trace
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.state import State
from trajudge.rules.verified.tasks import BackendCheck

SOUND = VerifiedEvaluator(hosts=HOSTS)
BAD = "^(x$"
SLOW = "^(x|xx)+$"
LONG = "x" * 60 + "y"
HOME = page("/")
STRINGS = {"type": "array", "items": {"type": "string"}}
NUMBERS = {"type": "array", "items": {"type": "number"}}
OBJECTS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "price": {"type": "number"}},
    },
}


@pytest.mark.parametrize(
    ("expected", "schema", "said", "outcome"),
    [
        ([BAD], STRINGS, ["x"], "unknown"),
        ([SLOW], STRINGS, [LONG], "unknown"),
        ([BAD, "a"], STRINGS, ["x", "a"], "unknown"),
        ([BAD, "a"], STRINGS, ["x", "b"], "fail"),
        ([BAD, "a"], STRINGS, ["a"], "fail"),
        ([[BAD, "x"]], STRINGS, ["x"], "pass"),
        ([[BAD, "x"]], STRINGS, ["y"], "unknown"),
        (["five apples"], NUMBERS, [5], "unknown"),
        ([5], NUMBERS, ["five apples"], "fail"),
        ([{"name": BAD, "price": 3}], OBJECTS, [{"name": "x", "price": 3}], "unknown"),
        ([{"name": BAD, "price": 3}], OBJECTS, [{"name": "x", "price": 4}], "fail"),
        (["tea"], OBJECTS, [{"name": "x", "price": 4}], "unknown"),
        (["a"] * 1001, STRINGS, ["a"] * 1001, "unknown"),
        (["a"], STRINGS, ["a"] * 1001, "fail"),
    ],
)
def test_retrieved_data(expected: Any, schema: Any, said: Any, outcome: str) -> None:
    verdict = SOUND.evaluate(task(expected, schema), answer(said), trace(HOME))
    assert verdict.outcome.value == outcome
    assert bool(verdict.reasons) is (outcome != "pass")


@pytest.mark.parametrize("ordered", [True, False])
def test_an_open_item_is_open_in_any_order(ordered: bool) -> None:
    what = task(["a", BAD], STRINGS, ordered=ordered)
    assert SOUND.evaluate(what, answer(["a", "x"]), trace(HOME)).outcome is Outcome.UNKNOWN
    swapped = SOUND.evaluate(what, answer(["x", "a"]), trace(HOME)).outcome
    assert swapped is (Outcome.FAIL if ordered else Outcome.UNKNOWN)


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_many_hostile_texts_cost_no_more_than_a_few() -> None:
    """Each of 400 comparisons would take the pattern's whole time limit: 100 s in all."""
    verdict = SOUND.evaluate(task([SLOW] * 20), answer([LONG] * 20), trace(HOME))
    assert verdict.outcome is Outcome.UNKNOWN
    assert SOUND.evaluate(task([SLOW]), answer(["xx"]), trace(HOME)).outcome is Outcome.PASS


def test_a_failure_elsewhere_decides() -> None:
    verdict = SOUND.evaluate(task([BAD]), answer(["x"], status="NOT_FOUND_ERROR"), trace(HOME))
    assert verdict.outcome is Outcome.FAIL
    assert [reason.partition(":")[0] for reason in verdict.reasons] == ["answer.status"]


URL = "__SHOPPING__/p"
SENT = request("/p?q=x", "POST", form="a=x&b=1", headers={"x-kind": "tea"})


@pytest.mark.parametrize(
    ("expected", "outcome"),
    [
        ({"post_data": {"a": BAD}}, "unknown"),
        ({"post_data": {"a": BAD, "b": "1"}}, "unknown"),
        ({"post_data": {"a": BAD, "b": "2"}}, "fail"),
        ({"post_data": {"^(a$": "x"}}, "unknown"),
        ({"post_data": {"a": ["x", BAD]}}, "pass"),
        ({"post_data": {"$.(a": "x"}}, "unknown"),
        ({"headers": {"X-Kind": BAD}}, "unknown"),
        ({"headers": {"X-Kind": "^coffee$"}, "post_data": {"a": BAD}}, "fail"),
        ({"query_params": {"q": [BAD]}}, "unknown"),
        ({"query_params": {"q": [BAD], "r": ["1"]}}, "fail"),
        ({"url": [f"{URL}?q=x", "^__SHOPPING__/(p$"]}, "pass"),
        ({"url": [f"{URL}?q=y", "^__SHOPPING__/(p$"]}, "unknown"),
        ({"url": "^__SHOPPING__/(p$"}, "unknown"),
    ],
)
def test_a_request(expected: dict[str, Any], outcome: str) -> None:
    url = {"url": f"{URL}?q=x"} if "query_params" not in expected else {"url": URL}
    check = {"expected": {**url, "http_method": "POST", **expected}}
    verdict = SOUND.evaluate(mutation(check), answer(task_type="mutate"), trace(HOME, SENT))
    assert verdict.outcome.value == outcome, verdict.reasons


def test_one_of_several_requests_that_passes_is_enough() -> None:
    check = {
        "last_event_only": False,
        "expected": {"url": URL, "http_method": "POST", "post_data": {"a": ["tea", SLOW]}},
    }
    what, said = mutation(check), answer(task_type="mutate")
    slow, right = (request("/p", "POST", form=f"a={text}") for text in (LONG, "tea"))
    assert SOUND.evaluate(what, said, trace(HOME, slow)).outcome is Outcome.UNKNOWN
    assert SOUND.evaluate(what, said, trace(HOME, slow, right)).outcome is Outcome.PASS


def test_a_request_that_may_be_the_forbidden_one_leaves_its_absence_open() -> None:
    check = {
        "should_not_exist": True,
        "expected": {"url": URL, "http_method": "POST", "post_data": {"a": BAD}},
    }
    what, said = mutation(check), answer(task_type="mutate")
    sent = request("/p", "POST", form="a=x")
    assert SOUND.evaluate(what, said, trace(HOME)).outcome is Outcome.PASS
    assert SOUND.evaluate(what, said, trace(HOME, sent)).outcome is Outcome.UNKNOWN


def test_the_release_keeps_its_verdicts() -> None:
    release = VerifiedEvaluator(mode=Mode.RELEASE, hosts=HOSTS)
    assert release.evaluate(task([BAD]), answer(["x"]), trace(HOME)).outcome is Outcome.FAIL


def test_a_shape_decides_against_an_answer_and_never_for_it() -> None:
    shape = task(["^[A-Z]{4}$"], STRINGS, shape_only=True)
    outcomes = [
        SOUND.evaluate(shape, said, trace(HOME)).outcome.value
        for said in (answer(["ABCD"]), answer(["abc"]), answer([]), None)
    ]
    assert outcomes == ["unknown", "fail", "fail", "fail"]
    release = VerifiedEvaluator(Mode.RELEASE, HOSTS)
    assert release.evaluate(shape, answer(["ABCD"]), trace(HOME)).outcome is Outcome.PASS


CHANGES = ("^__SHOPPING__/do/[^/]+$",)
ORDER = {
    "changing_urls": CHANGES,
    "last_event_only": False,
    "expected": {"url": "__SHOPPING__/do/order", "http_method": "POST", "response_status": 303},
}


@pytest.mark.parametrize(
    ("sent", "outcome"),
    [
        ([("order", 303)], "pass"),
        ([("order", 200), ("order", 303)], "pass"),
        ([("order", 303), ("order", 303)], "unknown"),
        ([("order", 303), ("cancel", 303)], "unknown"),
        ([("note", 303), ("order", 303)], "unknown"),
        ([("order", 303), ("order?other=1", 303)], "unknown"),
        ([("order", 303), ("page/dismiss", 303)], "pass"),
        ([("note", 303), ("cancel", 303)], "fail"),
        ([], "fail"),
    ],
)
@pytest.mark.parametrize("last", [True, False])
def test_a_further_change_of_the_site_leaves_the_requests_open(
    sent: list[tuple[str, int]], outcome: str, last: bool
) -> None:
    run = trace(HOME, *(request(f"/do/{name}", "POST", status) for name, status in sent))
    said = answer(task_type="mutate")
    order = {**ORDER, "last_event_only": last}
    assert SOUND.evaluate(mutation(order), said, run).outcome.value == outcome
    state = State(after={"orders": 1})
    with_state = {"evaluator": "BackendStateEvaluator", "probe": "p", "expected": {"$.orders": 1}}
    asked = mutation(order)
    asked = msgspec.structs.replace(
        asked, eval=(*asked.eval, msgspec.convert(with_state, BackendCheck))
    )
    held = SOUND.evaluate(asked, said, run, {"p": state}).outcome.value
    assert held == ("fail" if outcome == "fail" else "pass")
