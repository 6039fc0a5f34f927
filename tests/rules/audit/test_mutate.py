"""Mutation testing: what is changed, what slips through, and the command's report."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.commands import rules_mutate as main
from tests.rules.verified.tasks import SHOP, answer, mutation, page, request, task
from tests.samples import narrow
from tests.tables import mistakes
from trajudge.rules.audit.mutate import (
    EQUIVALENT,
    MOST,
    NEAR_MISSES,
    OTHER_HOST,
    TRACE_EQUIVALENT,
    TRACE_NEAR_MISSES,
    Misjudgment,
    MutationCase,
    MutationReport,
    mutation_report,
    report_screen,
)
from trajudge.rules.verdict import Assertion, Outcome, Verdict, verdict_of
from trajudge.rules.verified.tasks import task_record
from trajudge.rules.webarena import StoredPage, Task, Trace, WebArenaEvaluator
from trajudge.util.commands import OK, USAGE_ERROR

CART = {"expected": {"url": "__SHOPPING__/cart", "http_method": "POST", "post_data": {"n": "2"}}}
LAX = {"expected": {"url": "^.*/cart.*$", "http_method": "POST"}}
NEVER = {"should_not_exist": True, "expected": {"url": "__SHOPPING__/pay", "http_method": "POST"}}
NUMBERS = {"type": "array", "items": {"type": "number"}}
STRICT = [task([12], NUMBERS, task_id=1), mutation(CART, NEVER, task_id=2)]


def _tasks(folder: Path, *tasks: Any) -> Path:
    path = folder / "tasks.json"
    path.write_text(json.dumps([task_record(one) for one in tasks]))
    return path


def _run(folder: Path, task_id: int, said: Any, *entries: dict[str, Any]) -> None:
    own = folder / str(task_id)
    own.mkdir(parents=True)
    (own / "agent_response.json").write_text(said if isinstance(said, str) else json.dumps(said))
    (own / "network.har").write_text(json.dumps({"log": {"entries": list(entries)}}))


def _report(folder: Path, *words: str) -> dict[str, Any]:
    assert main([*words, "--out", str(folder / "out")]) == OK
    found: dict[str, Any] = json.loads((folder / "out/mutation.json").read_text())["report"]
    return found


def _trials(report: dict[str, Any]) -> dict[str, tuple[int, int]]:
    return {rate["mutator"]: (rate["wrong"], rate["trials"]) for rate in report["mutators"]}


def test_a_strict_specification_is_fooled_by_nothing(tmp_path: Path) -> None:
    report = _report(tmp_path, "--tasks", str(_tasks(tmp_path, *STRICT)))
    assert report["false_accepts"]["wrong"] == report["false_rejects"]["wrong"] == 0
    assert report["false_accepts"]["low"] == 0 < report["false_accepts"]["high"]
    assert _trials(report).keys() >= {
        *("sign", "digit", "missing_item", "status", "wrong_host", "dropped_event"),
        *("request: path", "request: post_data", "forbidden_request", "json_after_prose"),
    }


def test_a_lax_specification_is_fooled_and_the_mistakes_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _tasks(tmp_path, mutation(LAX, task_id="lax"))
    report = _report(tmp_path, "--tasks", str(path))
    wrong = {name for name, (count, _) in _trials(report).items() if count}
    assert wrong == {"wrong_host", "request: path"}
    shown = capsys.readouterr().out
    assert "task lax: accepted wrong_host" in shown
    assert "false accepts: " in shown
    rows = list(csv.DictReader((tmp_path / "out/mutation.csv").open()))
    assert {(row["case"], row["change"], row["must"]) for row in rows} == {
        ("lax", name, "fail") for name in wrong
    }


def test_the_release_rejects_what_any_reader_would_accept(tmp_path: Path) -> None:
    words = ("--tasks", str(_tasks(tmp_path, *STRICT)), "--mode", "release-1.2.3")
    assert _trials(_report(tmp_path, *words))["byte_order_mark"] == (2, 2)


def test_recorded_runs_are_changed_where_their_checks_hold(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    _run(runs, 1, f"It is {json.dumps(answer([12]))}", page("/"))
    sent = request("/cart", "POST", form="n=2")
    _run(runs, 2, answer(task_type="mutate"), page("/"), sent, page("/done"))
    words = ("--tasks", str(_tasks(tmp_path, *STRICT)), "--runs", str(runs))
    found = _trials(_report(tmp_path, *words, "--site", f"shopping={SHOP}"))
    assert found["original"] == (0, 2)
    assert found["digit"] == found["dropped_event"] == found["request: post_data"] == (0, 1)
    assert found["forbidden_request"] == (0, 1)


def test_a_request_that_was_sent_twice_is_not_decisive(tmp_path: Path) -> None:
    sent = request("/cart", "POST", form="n=2")
    _run(tmp_path / "runs", 2, answer(task_type="mutate"), page("/"), sent, sent)
    words = ("--tasks", str(_tasks(tmp_path, *STRICT)), "--runs", str(tmp_path / "runs"))
    assert "dropped_event" not in _trials(_report(tmp_path, *words))


def test_a_run_that_the_rule_fails_is_a_false_rejection_unless_left_out(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    _run(runs, 1, answer(["a dozen"]), page("/"))
    _run(runs, 2, answer(task_type="mutate"), page("/"), request("/cart", "POST", form="n=2"))
    words = ("--tasks", str(_tasks(tmp_path, *STRICT)), "--runs", str(runs))
    assert _trials(_report(tmp_path, *words))["original"] == (1, 2)
    assert _trials(_report(tmp_path, *words, "--passing-only"))["original"] == (0, 1)


ORIGINAL = [
    {
        "task_id": 1,
        "intent": "How far?",
        "eval": {"eval_types": ["string_match"], "reference_answers": {"must_include": ["20 km"]}},
    },
    {
        "task_id": 2,
        "intent": "Open the cart.",
        "eval": {
            "eval_types": ["url_match", "program_html"],
            "reference_url": "__SHOPPING__/cart |OR| __SHOPPING__/basket",
            "program_html": [
                {
                    "url": "last",
                    "locator": "document.title",
                    "required_contents": {"must_include": ["tea |OR| coffee"]},
                },
                {
                    "url": "func:latest()",
                    "locator": "",
                    "required_contents": {"exact_match": "__SHOPPING__/x"},
                },
            ],
        },
    },
]


def test_original_tasks_have_built_runs_that_pass(tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(ORIGINAL))
    found = _trials(_report(tmp_path, "--tasks", str(path)))
    assert found["original"] == (0, 2)
    assert found["denial"] == found["sign"] == (1, 1)
    assert found["wrong_host"] == found["stale_event"] == found["unchanged_page"] == (0, 1)
    runs = tmp_path / "runs.jsonl"
    runs.write_text('{"task_id": 1, "answer": "It is 20 km"}\n')
    recorded = _trials(_report(tmp_path, "--tasks", str(path), "--runs", str(runs)))
    assert (recorded["original"], recorded["denial"]) == ((0, 1), (1, 1))


def test_a_folder_without_a_run_that_passes_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(tmp_path / "runs", 1, "nothing", page("/"))
    tasks = str(_tasks(tmp_path, *STRICT))
    words = ["--tasks", tasks, "--runs", str(tmp_path / "runs"), "--passing-only"]
    assert main(words) == USAGE_ERROR
    assert f"{tmp_path / 'runs'}: no run to change" in capsys.readouterr().err


@pytest.mark.parametrize(("more", "full"), [(0, False), (2, False), (2, True)])
def test_the_first_five_misjudgments_are_shown(more: int, full: bool) -> None:
    made = [
        Misjudgment(case=str(number), mutator="digit", expected="fail", answer="x")
        for number in range(5 + more)
    ]
    none = mutation_report([], WebArenaEvaluator(), {}, {})
    report = msgspec.structs.replace(none, mistakes=tuple(made))
    shown = report_screen("t", report, 6, out=None, full=full, width=100)
    assert ("and 1 more misjudgments" in shown) is full
    assert ("and 2 more misjudgments" in shown) is (bool(more) and not full)
    assert "more misjudgments" in shown or not more


@mistakes(
    """
    --mode original => --mode original: verified tasks have sound
    --runs /nonexistent => no such folder
    --site shopping => write SITE=URL
    --site shoping=http://a.test => shoping=http://a.test: no task has such a site: use one of
    """
)
def test_a_mistake_is_one_sentence(
    tmp_path: Path, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--tasks", str(_tasks(tmp_path, *STRICT)), *words]) == USAGE_ERROR
    assert sentence in capsys.readouterr().err


@narrow
@pytest.mark.slow
@pytest.mark.real_data
def test_the_published_tasks(
    tmp_path: Path,
    real_data: Path,
    screen_lines: Callable[[], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is accepted falsely is open in the specifications: the linter names each of them."""
    monkeypatch.chdir(tmp_path)  # a line is as long as the path that it names
    # On a slow machine lines of progress come, which a terminal takes off its screen again.
    monkeypatch.setattr("trajudge.util.terminal.PLAIN_EVERY", 1e6)
    report = _report(Path(), "--tasks", str(real_data / "webarena/webarena-verified.json"))
    assert report["false_rejects"]["wrong"] == 0
    assert {name: count for name, (count, _) in _trials(report).items() if count} == {
        "request: path": 42,
        "wrong_host": 20,
        "request: post_data": 8,
        "request: header": 3,
    }
    assert report["false_accepts"]["trials"] > 14_000
    assert "false accepts: " in screen_lines()[0]


def test_the_finding_and_the_worst_change_stand_first_and_all_changes_behind_full(
    tmp_path: Path, screen_lines: Callable[[], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--tasks", str(_tasks(tmp_path, *STRICT, mutation(LAX, task_id="lax")))]
    assert main(words) == OK
    lines = screen_lines()
    assert lines[0].startswith("tasks.json, sound rules: false accepts: ")
    assert lines[1].startswith("false rejects: 0.0 [")
    head = next(number for number, line in enumerate(lines) if line.startswith("change "))
    assert lines[head + 1].startswith(("request: path ", "wrong_host "))
    assert any(line.startswith("task lax: accepted wrong_host:") for line in lines)
    assert main([*words, "--show", "0"]) == OK
    assert "2 more misjudgments" in capsys.readouterr().out
    assert main([*words, "--full"]) == OK
    shown = capsys.readouterr().out
    assert shown.startswith("tasks.json, sound rules: false accepts: ")
    assert "--full" not in shown
    assert shown.count("\ntask lax: accepted ") == 2


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
