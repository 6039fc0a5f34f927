"""What the mutators change: one thing, at every place where they can, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.rules.audit.mutate import (
    EQUIVALENT,
    NEAR_MISSES,
    OTHER_HOST,
    TRACE_EQUIVALENT,
    TRACE_NEAR_MISSES,
    MutationCase,
)
from trajudge.rules.webarena import StoredPage, Trace


def answers(mutator: str, answer: Any, **facts: Any) -> list[Any]:
    change = {**NEAR_MISSES, **EQUIVALENT}[mutator]
    case = MutationCase(name="case", task=None, answer=answer, **facts)
    return [variant.answer for variant in change(case)]


@pytest.mark.parametrize(
    ("mutator", "answer", "variants"),
    [
        ("sign", 36.39, [-36.39]),
        ("sign", "$36.39", ["$-36.39"]),
        ("sign", "-5", ["5"]),
        ("sign", 0, []),
        ("sign", "0.00", []),
        ("sign", "Gate 1", []),
        ("sign", "2023-05-01", []),
        ("sign", True, []),
        ("digit", 12, [22]),
        ("digit", -9.5, [-8.5]),
        ("digit", "about 1,200 items", ["about 2,200 items"]),
        ("longer_number", "2", ["20"]),
        ("longer_number", 2.5, [20.5]),
        ("longer_number", "v2", []),
        ("unit", "2.0km", ["2.0mi"]),
        ("unit", "35 minutes", ["35 hours"]),
        ("unit", "$5", ["€5"]),
        ("unit", "I am here", []),
        ("opposite", " Yes", ["no"]),
        ("opposite", False, [True]),
        ("denial", "Sprite", ["It is certainly not Sprite"]),
        ("missing_item", [1, 2], [[2], [1]]),
        ("missing_item", {"a": 1, "b": 2}, [{"b": 2}, {"a": 1}]),
        ("repeated_item", [1, 2], [[1, 1]]),
        ("repeated_item", [1, 1], []),
        ("exchanged_fields", {"a": 1, "b": 2, "c": 3}, [{"a": 2, "b": 1, "c": 3}]),
        ("spaced", ["x"], [["  x\n"]]),
        ("nothing", "x", [None, ""]),
    ],
)
def test_one_thing_changes(mutator: str, answer: Any, variants: list[Any]) -> None:
    assert answers(mutator, answer) == variants


def test_every_place_has_its_turn() -> None:
    assert answers("digit", [1, {"a": 2}]) == [[2, {"a": 2}], [1, {"a": 3}]]


def test_order_is_a_near_miss_or_harmless_as_the_task_has_it() -> None:
    assert answers("order", [1, 2], ordered=True) == [[2, 1]]
    assert answers("any_order", [1, 2], ordered=True) == []
    assert answers("order", [1, 2]) == []
    assert answers("any_order", [1, 2]) == [[2, 1]]


RESPONSE = {"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": [7]}


def test_of_a_response_object_only_its_data_are_answers() -> None:
    assert answers("digit", RESPONSE) == [{**RESPONSE, "retrieved_data": [8]}]
    assert answers("denial", RESPONSE) == []
    assert len(answers("status", RESPONSE)) == 5
    assert len(answers("task_type", RESPONSE)) == 2


@pytest.mark.parametrize("form", ["json_text", "json_fence", "json_after_prose", "byte_order_mark"])
def test_other_forms_hold_the_same_object(form: str) -> None:
    (text,) = answers(form, RESPONSE)
    inner = text[text.index("{") : text.rindex("}") + 1]
    assert json.loads(inner) == RESPONSE


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(json_values, st.booleans())
def test_no_answer_upsets_a_mutator_and_none_is_changed_in_place(
    answer: Any, ordered: bool
) -> None:
    before = repr(answer)
    for mutator in (*NEAR_MISSES.values(), *EQUIVALENT.values()):
        list(mutator(MutationCase(name="any", task=None, answer=answer, ordered=ordered)))
    assert repr(answer) == before


MONSTERS = [10**5000, float("inf"), float("nan"), "9" * 10**6, "1." * 10**5, "-" * 10**6]


@pytest.mark.parametrize("answer", MONSTERS, ids=["int", "inf", "nan", "9s", "points", "signs"])
def test_monstrous_numbers_are_left_alone_or_changed_but_never_hang(answer: Any) -> None:
    for mutator in NEAR_MISSES.values():
        list(mutator(MutationCase(name="any", task=None, answer=answer)))


EVENTS = [
    {"request": {"method": "GET", "url": "http://shop.test/tea?x=1"}, "response": {"status": 200}},
    {"request": {"method": "POST", "url": "http://shop.test/cart"}, "response": {"status": 302}},
]


def traces(mutator: str, trace: Any, **facts: Any) -> list[Any]:
    change = {**TRACE_NEAR_MISSES, **TRACE_EQUIVALENT}[mutator]
    case = MutationCase(name="case", task=None, answer=None, trace=trace, **facts)
    return [variant.trace for variant in change(case)]


def test_the_decisive_event_is_the_one_that_changes() -> None:
    (moved,) = traces("wrong_host", EVENTS)
    assert moved[0] == EVENTS[0]
    assert moved[1]["request"]["url"] == f"http://{OTHER_HOST}/cart"
    (first,) = traces("wrong_method", EVENTS, decisive=(0,))
    assert first[0]["request"]["method"] == "POST"
    assert first[1] == EVENTS[1]
    (failed,) = traces("failed_request", EVENTS)
    assert failed[1]["response"]["status"] == 500
    assert traces("dropped_event", EVENTS) == [EVENTS[:1]]
    assert EVENTS[1]["response"] == {"status": 302}
    assert len(traces("dropped_event", EVENTS, decisive=(0, 1))) == 2
    assert traces("dropped_event", EVENTS, decisive=()) == []
    assert traces("dropped_event", EVENTS, decisive=(0, 2)) == []


def test_a_stale_event_is_a_mistake_only_where_the_run_must_end_there() -> None:
    assert traces("stale_event", EVENTS) == []
    (left,) = traces("stale_event", EVENTS, ends_there=True)
    assert left[:2] == EVENTS
    assert left[2]["request"]["url"] == "http://shop.test/"


def test_static_files_around_a_run_are_harmless() -> None:
    assert traces("asset_first", EVENTS)[0][1:] == EVENTS
    assert traces("asset_last", EVENTS)[0][:2] == EVENTS


def test_the_last_url_and_the_stored_pages_change_too() -> None:
    page = StoredPage(url="http://shop.test/cart", html="<p>tea</p>", values={"x": "1"})
    trace = Trace(url="http://shop.test/cart?a=1", pages=(page,))
    assert traces("wrong_host", trace) == []
    assert traces("wrong_host", trace, ends_there=True)[0].url == f"http://{OTHER_HOST}/cart?a=1"
    assert traces("stale_event", trace, ends_there=True)[0].url == "http://shop.test/"
    (blank,) = traces("unchanged_page", trace)
    assert blank.pages == (StoredPage(url=page.url, html="", values={"x": ""}),)
    placeholder = Trace(url="__SHOPPING__/cart")
    assert traces("wrong_host", placeholder, ends_there=True)[0].url == f"http://{OTHER_HOST}/cart"
    assert traces("stale_event", placeholder, ends_there=True)[0].url == "__SHOPPING__/"


@pytest.mark.parametrize("trace", [None, [], "har", {"log": {}}, [1], Trace()])
def test_what_is_no_known_trace_has_no_variants(trace: Any) -> None:
    for name in (*TRACE_NEAR_MISSES, *TRACE_EQUIVALENT):
        assert traces(name, trace, ends_there=True) == []
