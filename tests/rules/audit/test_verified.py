"""WebArena Verified in the auditors' tools: runs are built, changed, and linted."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.verified.tasks import answer, mutation, navigation, task
from trajudge.rules.audit.blind import blind_scores
from trajudge.rules.audit.suites import suite
from trajudge.rules.audit.verified import (
    example,
    expected_data,
    expected_document,
    findings,
    mutants,
    start_trace,
    synthesise,
    text_findings,
)
from trajudge.rules.limits import InvalidValue, fullmatch
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.tasks import load_tasks, task_record
from trajudge.rules.webarena.tasks import DIALECTS

A_BODY_OF_A_GET = 423
POST = {"expected": {"url": "__SHOPPING__/p", "http_method": "POST", "post_data": {"a": "x"}}}


@pytest.mark.parametrize(
    "pattern",
    [
        r"^.*(?=.*white)(?=.*desk).* has been added.*$",
        r"^__GITLAB__/api/v4/projects/\d+/members$",
        r"^(update|create)$",
        r"^(?!.*_engine=(?:bicycle|foot)).*$",
        r"^swatch%5Boption_\d+%5D%5B0%5D=Brown[^x]+\w{3}$",
    ],
)
def test_an_example_matches_its_pattern(pattern: str) -> None:
    found = example(pattern)
    assert found is not None
    assert fullmatch(pattern, found)


@pytest.mark.parametrize("pattern", [r"^(?=a)b$", r"^(?!.*).*$", r"^($"])
def test_a_pattern_that_matches_nothing_has_no_example(pattern: str) -> None:
    assert example(pattern) is None


@given(st.from_regex(r"\^[a-z.*+?()|\\d]{0,12}\$", fullmatch=True))
def test_an_example_of_any_pattern_matches_or_is_none(pattern: str) -> None:
    found = example(pattern)
    try:
        assert found is None or fullmatch(pattern, found)
    except InvalidValue:
        pytest.fail("an example of a pattern that is none")


def test_a_run_is_built_and_every_change_is_noticed() -> None:
    what = mutation(POST)
    made = synthesise(what)
    assert made.satisfiable
    assert made.run is not None
    evaluator = VerifiedEvaluator(hosts=made.run.hosts)
    changed = list(mutants(what, made.run))
    assert {change.change for change in changed} >= {
        "answer.status",
        "answer.task_type",
        "request 1 left out",
        "request 1 host",
        "request 1 post_data a",
    }
    for change, run in changed:
        verdict = evaluator.evaluate(what, run.answer, run.trace)
        assert verdict.outcome is Outcome.FAIL, change


def test_each_request_is_changed_in_its_own_place() -> None:
    """A run opens the site, sends the requests that change it, and ends on the last page."""
    last, first, second = (
        {"expected": {"url": f"__SHOPPING__/{name}", "http_method": method}}
        for name, method in (("last", "GET"), ("first", "POST"), ("second", "POST"))
    )
    what = mutation(last, first, second)
    run = synthesise(what).run
    assert run is not None
    paths = [entry["request"]["url"].rpartition("/")[2] for entry in run.entries]
    assert paths == ["", "first", "second", "last"]
    for change, changed in mutants(what, run):
        if change.startswith("request") and change.endswith("left out"):
            assert changed.entries == tuple(
                entry for at, entry in enumerate(run.entries) if f"request {at} left out" != change
            )
    assert {change for change, _ in mutants(what, run)} >= {
        f"request {at} left out" for at in (1, 2, 3)
    }


def test_expected_data_is_the_first_of_alternatives() -> None:
    point = {"type": "string", "format": "coordinates"}
    assert expected_data(point, [40.5, -79.5], {}) == [40.5, -79.5]
    assert expected_data(point, [[40.5, -79.5], [1, 2]], {}) == [40.5, -79.5]
    assert expected_data({"type": "string"}, ["a", "b"], {}) == "a"
    assert expected_data({"type": "array"}, ["a", ["b", "c"]], {}) == ["a", "b"]


def test_an_expected_document_has_each_value_at_its_path() -> None:
    several = {"type": "array", "items": {"type": "string"}}
    schema = {"type": "object", "properties": {"$.a[*].b": several, "$.list": several}}
    check = {"expected": POST["expected"], "post_data_schema": schema}
    fields = {"$.a[*].b": ["x", "y"], "$.c[*].d": "word", "$.list": ["p", "q"], "$.no": None}
    assert expected_document(fields, mutation(check).network_checks[0], {}) == {
        "a": [{"b": "x"}, {"b": "y"}],
        "c": [{"d": "word"}],
        "list": ["p", "q"],
    }


def test_the_start_pages_are_the_task_s_or_those_of_its_sites() -> None:
    opened = [
        [event.url for event in start_trace(navigation(start_urls=urls)).events]
        for urls in (["__SHOPPING__/a", "__SHOPPING__/b"], [])
    ]
    (site,) = opened[1]
    assert opened[0] == [f"{site}/a", f"{site}/b"]


@pytest.mark.parametrize("status", [99, 100])
def test_a_status_below_100_is_no_answer(status: int) -> None:
    check = {"expected": {"url": "__SHOPPING__/p", "http_method": "POST"}}
    what = mutation(check, {"expected": {**check["expected"], "response_status": status}})
    found = [(one.field, one.value) for one in text_findings(what) if one.category == "unanswered"]
    assert found == ([("eval network 2", 99)] if status == 99 else [])


def test_a_task_that_no_run_can_pass_is_found_with_its_reason() -> None:
    never = {
        "should_not_exist": True,
        "expected": {"url": "__SHOPPING__/p", "http_method": "POST"},
    }
    made = synthesise(mutation(POST, never))
    assert not made.satisfiable
    assert "absence" in made.reason
    contradiction = {"expected": {**POST["expected"], "post_data": {"a": "^(?=b)c$"}}}
    bodily = {"expected": {**POST["expected"], "http_method": "GET"}}
    assert "a GET is asked to send a" in synthesise(mutation(bodily)).reason
    assert "no text was found" in synthesise(mutation(contradiction)).reason


@pytest.mark.parametrize(
    ("check", "category"),
    [
        ({"url": "^.*/p$", "http_method": "POST"}, "host_unbound"),
        ({"url": "^__SHOPPING__/p/.*$", "http_method": "POST"}, "open_ended"),
        ({"url": "__SHOPPING__/TASK_7_PAGE_ID"}, "unwritten"),
        ({"url": "__SHOPPING__/p", "http_method": "POST", "response_status": -1}, "unanswered"),
        ({"url": "__SHOPPING__/p", "http_method": "POST", "post_data": {"a": "^.*$"}}, "vacuous"),
        ({"url": "__SHOPPING__/p", "post_data": {"a": "^.*(?!x$).*$"}}, "one_sided"),
        ({"url": "__SHOPPING__/{{id}}", "http_method": "POST"}, "unfilled"),
        ({"url": "__SHOPPING__/p", "http_method": "POST", "post_data": {"a": [1]}}, "unsat"),
    ],
)
def test_a_weak_specification_is_found(check: dict[str, object], category: str) -> None:
    found = {finding.category for finding in findings(mutation({"expected": check}))}
    assert any(name.startswith(category) for name in found), found


@pytest.mark.parametrize(
    ("pattern", "category"),
    [
        ("^(?!main$).+$", set()),
        (r"^(?!.*_engine=(?:bicycle|foot)).*$", set()),
        ("^((?!main$).+)$", set()),
        ("^.*(?!delete$).*$", {"vacuous", "one_sided"}),
        ("^(?!$).*$", set()),
        ("^.+$", {"vacuous"}),
    ],
)
def test_a_pattern_that_refuses_something_is_not_vacuous(pattern: str, category: set[str]) -> None:
    check = {"url": "__SHOPPING__/p", "http_method": "POST", "post_data": {"a": pattern}}
    assert {it.category for it in findings(mutation({"expected": check}))} == category


def test_checks_of_another_repository_than_the_intents_are_found() -> None:
    def found(repository: str, url: str) -> set[str]:
        named = {"repo": repository, "label": "help wanted"}
        check = {"expected": {"url": url, "http_method": "POST"}}
        made = mutation(check, sites=["gitlab"], instantiation_dict=named)
        return {it.category for it in findings(made)}

    assert found("a/b.com", "__GITLAB__/c/d/-/issues") == {"other_target"}
    assert found("a/b.com", r"^__GITLAB__/c/d\.io/-/issues$") == {"other_target"}
    assert not found("a/b.com", "__GITLAB__/A/b.com/-/issues")
    assert not found("a/b.com", "__GITLAB__/projects")


def test_a_strong_specification_has_no_findings() -> None:
    assert list(findings(mutation(POST))) == []
    assert [it.category for it in findings(task(["a"]))] == ["no_evidence"]
    start = navigation({"expected": {"url": "__SHOPPING__"}})
    assert "idle" in {it.category for it in findings(start)}


@pytest.mark.slow
@pytest.mark.real_data
def test_all_812_synthetic_runs_pass_and_their_changes_fail(real_data: Path) -> None:
    survivors: Counter[str] = Counter()
    changes = 0
    for one in load_tasks(real_data / "webarena" / "webarena-verified.json"):
        made = synthesise(one)
        assert made.satisfiable is (one.task_id != A_BODY_OF_A_GET), (one.task_id, made.reason)
        if made.run is None:
            continue
        evaluator = VerifiedEvaluator(hosts=made.run.hosts)
        for change, run in mutants(one, made.run):
            changes += 1
            if evaluator.evaluate(one, run.answer, run.trace).outcome is not Outcome.FAIL:
                survivors[re.sub(r"\d+ ", "", change)] += 1
    assert changes > 7_500
    # What is left is open in the specifications themselves: the linter names each of them.
    assert survivors == {
        "request path": 42,
        "request host": 20,
        "request left out": 10,
        "request method": 10,
        "request post_data _method": 6,
        "request header Cookie": 3,
        "request post_data branch_name": 1,
        "request post_data submission[forum]": 1,
    }


UNSATISFIABLE_IN_RELEASE = {
    "a slash before the query, which the release takes off": {339, 340, 341},
    "a body asked of a GET": {A_BODY_OF_A_GET},
    "asked for by a script, and the release waits for the load of a page": {
        *range(676, 681),
        *range(737, 742),
        759,
        760,
    },
    "a key that the package itself leaves out": {319},
    "two pages that are both the last": {429},
    "links of a markdown text keep their host": {562, 563, 564, 565, 566},
    "two events that are both the last": {567, 568, 569, 570, 742, 743, 745, 746},
    "an unfilled place of the template": {604, 611, 612, 613, 614},
    "a list of one item is an error": {699, 700, 811},
}


@pytest.mark.real_data
def test_the_tasks_that_the_release_cannot_pass(real_data: Path) -> None:
    tasks = load_tasks(real_data / "webarena" / "webarena-verified.json")
    found = {one.task_id for one in tasks if not synthesise(one, Mode.RELEASE).satisfiable}
    assert found == set().union(*UNSATISFIABLE_IN_RELEASE.values())


SUITE = suite(DIALECTS["verified"])


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.json"
    record = task_record(task(["yes"]))
    for check in record["eval"]:
        check["expected"].pop("unset", None)
    path.write_text(json.dumps([record]))
    return path


@pytest.mark.parametrize("mode", SUITE.modes)
def test_an_agent_that_looks_at_nothing_wins_what_asks_for_no_evidence(mode: str) -> None:
    what = task(["yes"])
    verdict = SUITE.evaluator(mode).evaluate(what, answer(["yes"]), SUITE.idle_trace(what))
    assert verdict.outcome is (Outcome.FAIL if mode == "sound-activity" else Outcome.PASS)


# The agents that win anything, by what they answer.
WINNERS = (
    *("retrieve:ACTION_NOT_ALLOWED_ERROR", "retrieve:PERMISSION_DENIED_ERROR"),
    *("retrieve:NOT_FOUND_ERROR", "mutate:ACTION_NOT_ALLOWED_ERROR", "navigate:SUCCESS"),
    *("zero", "yes", "no", "numbers_only", "quoted_words"),
)


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.parametrize(
    ("mode", "idle", "opening"), [("sound-activity", 0, 69), ("sound", 59, 69)]
)
def test_what_naive_agents_win(real_data: Path, mode: str, idle: int, opening: int) -> None:
    """Evidence of a visit is no evidence of work: opening the start page is a visit."""
    tasks = load_tasks(real_data / "webarena" / "webarena-verified.json")
    by_name = {agent.name.removeprefix("status:"): agent for agent in SUITE.agents}

    def won(prefix: str) -> int:
        found = blind_scores(
            tasks,
            SUITE.evaluator(mode),
            [by_name[f"{prefix}{name}"] for name in WINNERS],
            SUITE.idle_trace,
            start_trace_of=SUITE.start_trace,
        )
        return len({task_id for score in found for task_id in score.passed})

    assert (won(""), won("start_page:")) == (idle, opening)


@pytest.mark.parametrize("mode", SUITE.modes)
def test_an_agent_that_opens_the_start_page_wins_what_asks_for_no_more(mode: str) -> None:
    start = navigation({"expected": {"url": "__SHOPPING__"}}, start_urls=["__SHOPPING__"])
    cart = navigation({"expected": {"url": "__SHOPPING__/cart"}}, start_urls=["__SHOPPING__"])
    agents = [agent for agent in SUITE.agents if agent.name.endswith("navigate:SUCCESS")]
    scores = blind_scores(
        [start, cart],
        SUITE.evaluator(mode),
        agents,
        SUITE.idle_trace,
        start_trace_of=SUITE.start_trace,
    )
    passed = {score.agent: len(score.passed) for score in scores}
    assert passed == {"status:navigate:SUCCESS": 0, "start_page:navigate:SUCCESS": 1}
