"""What passes, what fails and what is left open, in both modes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.verified.tasks import (
    HOSTS,
    answer,
    mutation,
    navigation,
    page,
    request,
    task,
    trace,
)
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome, Verdict
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import Trace, load_trace
from trajudge.rules.verified.state import State
from trajudge.rules.verified.tasks import BackendCheck, Task, load_tasks

SOUND = VerifiedEvaluator(hosts=HOSTS)
RELEASE = VerifiedEvaluator(mode=Mode.RELEASE, hosts=HOSTS)
HOME = page("/")
NUMBERS = {"type": "array", "items": {"type": "number"}}
MUTATED = answer(task_type="mutate")
NAVIGATED = answer(task_type="navigate")


def judge(
    what: Task, said: Any, *entries: dict[str, Any], by: VerifiedEvaluator = SOUND
) -> Outcome:
    return by.evaluate(what, said, trace(*entries) if entries else trace(HOME)).outcome


def failed(verdict: Verdict) -> list[str]:
    return [item.name for item in verdict.assertions if item.outcome is not Outcome.PASS]


@pytest.mark.real_data
@pytest.mark.parametrize("mode", list(Mode))
def test_the_demo_has_its_published_result(real_data: Path, mode: Mode) -> None:
    folder = real_data / "webarena"
    tasks = {task.task_id: task for task in load_tasks(folder / "webarena-verified.json")}
    published = json.loads((folder / "demo/108/eval_result.json").read_text())
    verdict = VerifiedEvaluator(mode=mode).evaluate(
        tasks[108],
        (folder / "demo/108/agent_response.json").read_bytes(),
        load_trace(folder / "demo/108/network.har"),
    )
    assert float(verdict.outcome is Outcome.PASS) == published["score"] == 1.0
    if mode is Mode.RELEASE:
        data = verdict.assertions[-1]
        theirs = published["evaluators_results"][0]
        assert data.expected_normalised == theirs["expected"]["retrieved_data"]
        assert data.found_normalised == theirs["actual_normalized"]["retrieved_data"]


@pytest.mark.parametrize(
    ("data", "schema", "said", "sound", "release"),
    [
        ([3], NUMBERS, ["3"], "pass", "pass"),
        ([3], NUMBERS, 3, "pass", "pass"),
        ([3], NUMBERS, [4], "fail", "fail"),
        ([3], NUMBERS, [3, 3], "fail", "fail"),
        ([3], NUMBERS, [], "fail", "fail"),
        (["a"], None, ["^.*$"], "fail", "pass"),
        ([["a", "ab"], "a"], None, ["a", "ab"], "pass", "fail"),
        ([["a", "b"]], None, ["b"], "pass", "pass"),
        (["a"], None, [["b", "a"]], "fail", "pass"),
        (None, {"type": "null"}, "N/A", "pass", "fail"),
    ],
)
def test_retrieved_data(data: Any, schema: Any, said: Any, sound: str, release: str) -> None:
    what = task(data, schema)
    assert judge(what, answer(said)) == sound
    assert judge(what, answer(said), by=RELEASE) == release


def test_missing_and_nested_data_are_shown_as_the_agent_gave_them() -> None:
    none = SOUND.evaluate(task(["a"]), answer(None), trace(HOME))
    surplus = SOUND.evaluate(task(None, {"type": "null"}), answer(["a"]), trace(HOME))
    assert [one.reasons for one in (none, surplus)] == [
        ("answer.retrieved_data: nothing was retrieved",),
        ("answer.retrieved_data: nothing was to be retrieved",),
    ]
    nested = SOUND.evaluate(task([["B", "C"]]), answer([["B", "C"]]), trace(HOME)).assertions[-1]
    assert nested.expected_normalised == [["b", "c"]]
    assert nested.found_normalised == [["B", "C"]]


def test_order_matters_only_where_the_task_says_so() -> None:
    assert judge(task(["a", "b"]), answer(["b", "a"])) is Outcome.PASS
    assert judge(task(["a", "b"], ordered=True), answer(["b", "a"])) is Outcome.FAIL


def test_objects_need_the_same_keys() -> None:
    schema = {
        "type": "array",
        "items": {"type": "object", "properties": {"n": {"type": "number"}}},
    }
    what = task([{"n": 1}], schema)
    assert judge(what, answer([{"n": "1"}])) is Outcome.PASS
    assert judge(what, answer(['{"n": 1}'])) is Outcome.PASS
    assert judge(what, answer([{"n": 1, "m": 2}])) is Outcome.FAIL
    assert judge(what, answer([{"m": 1}])) is Outcome.FAIL
    verdict = SOUND.evaluate(what, answer([{"n": 2}]), None)
    assert failed(verdict) == ["answer.retrieved_data[0].n"]


def test_a_task_is_achievable_unless_another_status_is_expected() -> None:
    without_answer = msgspec.structs.replace(task(["a"]), eval=())
    missing = task(None, status="NOT_FOUND_ERROR")
    found = [what.achievable for what in (task(["a"]), without_answer, missing)]
    assert found == [True, True, False]


def test_a_status_is_a_status_and_no_pattern() -> None:
    what = task(["a"])
    assert judge(what, {**answer(["a"]), "status": "^.*$"}) is Outcome.FAIL
    assert judge(what, {**answer(["a"]), "status": "^.*$"}, by=RELEASE) is Outcome.PASS
    assert failed(SOUND.evaluate(what, "no json", None)) == ["parse_failure.no_object"]


LAST = {"expected": {"url": "__SHOPPING__/cart"}}


@pytest.mark.parametrize(
    ("entries", "sound", "release"),
    [
        ([page("/cart")], "pass", "fail"),  # nothing: the release asks for a click
        ([page("/cart", 304)], "pass", "fail"),
        ([page("/cart"), page("/other")], "fail", "fail"),
        ([page("/cart"), page("/ad", dest="iframe")], "pass", "fail"),
        ([page("/cart"), request("/poll")], "pass", "pass"),
        ([page("/cart?a=1")], "fail", "fail"),
        ([page("/cart?a=")], "pass", "pass"),
        ([page("/cart", base="http://other.example")], "fail", "fail"),
    ],
)
def test_the_final_page(entries: list[dict[str, Any]], sound: str, release: str) -> None:
    assert judge(navigation(LAST), NAVIGATED, HOME, *entries) == sound
    if entries[0]["response"]["status"] == 200 and len(entries) == 2 and release == "pass":
        assert judge(navigation(LAST), NAVIGATED, HOME, *entries, by=RELEASE) == release


POST = {
    "expected": {
        "url": "__SHOPPING__/post",
        "http_method": "POST",
        "response_status": 302,
        "post_data": {"title": "Tea", "qty": None},
    }
}


@pytest.mark.parametrize(
    ("entry", "part"),
    [
        (request("/post", "POST", 302, form="title=tea"), None),
        (request("/post/", "POST", 302, form="title=tea&other=1"), None),
        (request("/post", "POST", 302, form="title=Coffee&title=Tea"), None),
        (request("/post", "POST", 302, body={"title": "Tea"}), None),
        (request("/post", "POST", 302, form="title=tea&qty=1"), "post_data.qty"),
        (request("/post", "POST", 302, form="title=^.*$"), "post_data.title"),
        (request("/post", "POST", 302), "post_data.title"),
        (request("/post", "POST", 200, form="title=tea"), "status"),
        (request("/post", "PUT", 302, form="title=tea"), "url"),
        (request("/pos", "POST", 302, form="title=tea"), "url"),
    ],
)
def test_a_form(entry: dict[str, Any], part: str | None) -> None:
    verdict = SOUND.evaluate(mutation(POST), MUTATED, trace(HOME, entry))
    assert failed(verdict) == ([] if part is None else [f"network.1.{part}"])


def test_two_requests_of_one_form_are_two_events_in_any_order() -> None:
    def of(name: str) -> dict[str, Any]:
        expected = {**POST["expected"], "post_data": {"title": name}}
        return {"expected": expected}

    what = mutation(of("one"), of("two"))
    sent = [request("/post", "POST", 302, form=f"title={name}") for name in ("two", "one")]
    assert judge(what, MUTATED, HOME, *sent) is Outcome.PASS
    assert judge(what, MUTATED, HOME, *sent, by=RELEASE) is Outcome.FAIL
    assert judge(what, MUTATED, HOME, sent[0]) is Outcome.FAIL
    assert judge(what, MUTATED, HOME, sent[0], sent[0]) is Outcome.FAIL


def test_the_last_of_several_attempts_counts() -> None:
    right, wrong = (request("/post", "POST", 302, form=f"title={it}") for it in ("tea", "pea"))
    assert judge(mutation(POST), MUTATED, HOME, wrong, right) is Outcome.PASS
    assert judge(mutation(POST), MUTATED, HOME, right, wrong) is Outcome.FAIL
    anyone = {**POST, "last_event_only": False}
    assert judge(mutation(anyone), MUTATED, HOME, right, wrong) is Outcome.PASS


def test_what_must_not_be_sent() -> None:
    never = {
        "should_not_exist": True,
        "expected": {
            "url": "__SHOPPING__/contact",
            "http_method": "POST",
            "post_data": {"to": "x"},
        },
    }
    what = mutation(never)
    assert judge(what, MUTATED, HOME) is Outcome.PASS
    assert judge(what, MUTATED, HOME, request("/contact", "POST", form="to=x")) is Outcome.FAIL
    other = request("/contact", "POST", form="to=y")
    assert judge(what, MUTATED, HOME, other) is Outcome.PASS
    assert judge(what, MUTATED, HOME, other, by=RELEASE) is Outcome.FAIL


@pytest.mark.parametrize(
    ("query", "outcome"),
    [
        ("?q=Green+Tea&sort=asc", "pass"),
        ("?sort=asc&q=green%20tea", "pass"),
        ("?q=green tea&sort=asc&page=2", "pass"),
        ("?q=green tea", "fail"),
        ("?q=tea&sort=asc", "fail"),
        ("?q=green tea&sort=asc&extra=1", "fail"),
        ("?q=green tea&q=black tea&sort=asc", "fail"),
    ],
)
def test_a_query(query: str, outcome: str) -> None:
    check = {
        "ignored_query_params_patterns": ["^PAGE$"],
        "expected": {
            "url": "__SHOPPING__/search",
            "query_params": {"q": ["green tea"], "sort": "^asc|desc$"},
        },
    }
    assert judge(navigation(check), NAVIGATED, HOME, page(f"/search{query}")) == outcome


def test_a_query_in_base64_in_the_path() -> None:
    check = {
        "decode_base64_query": True,
        "expected": {"url": "__SHOPPING__/report/filter", "query_params": {"from": ["2/1/2023"]}},
        "query_params_schema": {
            "type": "object",
            "properties": {
                "from": {"type": "array", "items": {"type": "string", "format": "date"}}
            },
        },
    }
    packed = "ZnJvbT0wMi8wMS8yMDIz"  # from=02/01/2023
    what = navigation(check)
    assert judge(what, NAVIGATED, HOME, page(f"/report/filter/{packed}/")) is Outcome.PASS
    assert judge(what, NAVIGATED, HOME, page("/report/filter/")) is Outcome.FAIL


def test_headers_cookies_and_replies() -> None:
    check = {
        "expected": {
            "url": "__SHOPPING__/star",
            "http_method": "POST",
            "headers": {"referer": "__SHOPPING__/item?id=3", "Cookie": "^(?!.*fast=1).*$"},
            "response_content": {"stars": 5, "$.items[0].name": "Tea"},
            "response_cookies": {"note": "^.*added.*$"},
        }
    }
    headers = {"Referer": "http://shop.example:7770/item?id=3"}
    reply = {"mimeType": "application/json", "text": '{"stars": 5, "items": [{"name": "tea"}]}'}
    cookies = [{"name": "note", "value": "It%20was%20added"}]
    entry = request("/star", "POST", headers=headers, content=reply, cookies=cookies)
    what = mutation(check)
    assert judge(what, MUTATED, HOME, entry) is Outcome.PASS
    fast = request("/star", "POST", headers={**headers, "cookie": "fast=1"}, content=reply)
    verdict = SOUND.evaluate(what, MUTATED, trace(HOME, fast))
    assert failed(verdict) == ["network.1.headers.cookie", "network.1.cookies.note"]
    unrecorded = request("/star", "POST", headers=headers, cookies=cookies)
    assert judge(what, MUTATED, HOME, unrecorded) is Outcome.UNKNOWN


def test_without_a_trace_network_checks_are_unknown_and_answers_are_not() -> None:
    verdict = SOUND.evaluate(mutation(POST, ORDER), MUTATED, None)
    assert verdict.outcome is Outcome.UNKNOWN
    assert failed(verdict) == ["network.1", "network.2"]
    assert SOUND.evaluate(mutation(POST), "nothing", None).outcome is Outcome.FAIL
    assert SOUND.evaluate(task(["a"]), answer(["a"]), None).outcome is Outcome.PASS
    assert RELEASE.evaluate(task(["a"]), answer(["a"]), None).outcome is Outcome.FAIL


def test_a_trace_of_another_site_is_one_sentence() -> None:
    elsewhere = trace(page("/", base="https://news.example"))
    verdict = SOUND.evaluate(mutation(POST), MUTATED, elsewhere)
    assert verdict.reasons == (
        "network.1.url: no POST of __SHOPPING__/post: test holds requests to "
        "https://news.example alone",
    )


def test_activity_asks_for_a_page_of_the_tasks_site() -> None:
    active = VerifiedEvaluator(hosts=HOSTS, activity=True)
    what = task(["a"])
    assert active.evaluate(what, answer(["a"]), trace(HOME)).outcome is Outcome.PASS
    there = trace(page("/", base="https://news.example"))
    assert failed(active.evaluate(what, answer(["a"]), there)) == ["activity"]
    assert active.evaluate(what, answer(["a"]), None).outcome is Outcome.UNKNOWN


def test_a_bad_pattern_of_the_specification_is_unknown() -> None:
    check = {"expected": {"url": "^__SHOPPING__/(x$", "http_method": "POST"}}
    verdict = SOUND.evaluate(mutation(check), MUTATED, trace(HOME, request("/x", "POST")))
    assert verdict.outcome is Outcome.UNKNOWN
    assert "not a regular expression" in verdict.reasons[0]


_JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(_JSON, st.text(max_size=80), st.text(max_size=80), st.sampled_from(list(Mode)))
def test_nothing_raises_whatever_the_agent_says_or_sends(
    data: Any, form: str, path: str, mode: Mode
) -> None:
    evaluator = VerifiedEvaluator(mode=mode, hosts=HOSTS)
    sent: Trace = trace(HOME, request(f"/post{path}", "POST", 302, form=form), page(path))
    for what in (task(["a"]), task([3], NUMBERS), mutation(POST), navigation(LAST)):
        assert isinstance(evaluator.evaluate(what, answer(data), sent), Verdict)


def test_an_entry_that_cannot_be_read_leaves_open_what_it_may_decide() -> None:
    bad: dict[str, Any] = {"request": {"method": "POST"}, "response": {"status": 200}}
    form = {"expected": {"url": "__SHOPPING__/p", "http_method": "POST", "post_data": {"a": "x"}}}
    sent = request("/p", "POST", form="a=x")
    evaluator = VerifiedEvaluator(hosts=HOSTS)
    done = answer(None, "mutate")

    def outcome(check: dict[str, Any], *entries: dict[str, Any]) -> tuple[str, str]:
        verdict = evaluator.evaluate(mutation(check), done, trace(page("/"), *entries))
        return verdict.outcome.value, " ".join(verdict.reasons)

    assert outcome(form, sent, bad)[0] == "pass"
    assert outcome(form)[0] == "fail"
    unknown, reason = outcome(form, bad)
    assert unknown == "unknown"
    assert "entry 2 holds no method or no address" in reason
    assert outcome({**form, "should_not_exist": True}, bad)[0] == "unknown"
    assert outcome({**form, "should_not_exist": True})[0] == "pass"


def test_headers_may_be_an_object_and_a_status_text() -> None:
    entry = page("/cart")
    entry["request"]["headers"] = {"Accept": "text/html", "sec-fetch-dest": "document"}
    entry["response"]["status"] = "200"
    task = navigation({"expected": {"url": "__SHOPPING__/cart"}})
    made = VerifiedEvaluator(hosts=HOSTS).evaluate(
        task, answer(None, "navigate"), trace(page("/"), entry)
    )
    assert made.outcome.value == "pass"


BAD = "^(x$"
SLOW = "^(x|xx)+$"
LONG = "x" * 60 + "y"
STRINGS = {"type": "array", "items": {"type": "string"}}
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
def test_retrieved_data_of_an_open_specification(
    expected: Any, schema: Any, said: Any, outcome: str
) -> None:
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


@pytest.mark.parametrize("further", [1, 2])
def test_further_changes_are_counted(further: int) -> None:
    sent = [request("/do/order", "POST", 303)] * (1 + further)
    assert SOUND.evaluate(mutation(ORDER), MUTATED, trace(HOME, *sent)).reasons == (
        f"network.others: {further} further request{'s' if further == 2 else ''} changed the site, "
        "and may have repeated or undone the expected change: check its state",
    )
