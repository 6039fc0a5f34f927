"""The pitfalls that the published audit does not name, each on the smallest task that holds it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.rules.audit.lint import PITFALLS, weaknesses
from trajudge.rules.webarena import Task


def task(*checks: str, intent: str = "?", **spec: Any) -> Task:
    record = {"task_id": 1, "intent": intent, "eval": {"eval_types": checks, **spec}}
    return msgspec.convert(record, Task)


def said(intent: str = "?", **references: Any) -> Task:
    return task("string_match", intent=intent, reference_answers=references)


def ends_at(url: str) -> Task:
    return task("url_match", reference_url=url)


def page(locator: str = "document.x.value", **contents: Any) -> Task:
    entry = {"url": "last", "locator": locator, "required_contents": contents}
    return task("program_html", program_html=[entry])


def pitfalls(spec: Task) -> list[tuple[str, str]]:
    found = [(finding.category, finding.field) for finding in weaknesses([spec])]
    return [(category, field) for category, field in found if category in PITFALLS]


UNREAD_URL = task("string_match", reference_answers={"exact_match": "tea"}, reference_url="x")
ANSWER = "eval.reference_answers"
PAGE = "eval.program_html[0].required_contents"


@pytest.mark.parametrize(
    ("spec", "category", "field"),
    [
        (said(exact_match="tea |OR| milk"), "dead_marker", f"{ANSWER}.exact_match"),
        (said(must_include=["milk", "a |OR| b"]), "dead_marker", f"{ANSWER}.must_include[1]"),
        (said(fuzzy_match=["tea |OR| milk"]), "dead_marker", f"{ANSWER}.fuzzy_match[0]"),
        (page(exact_match="tea |OR| milk"), "dead_marker", f"{PAGE}.exact_match"),
        (page(must_include=["tea |or| milk"]), "dead_marker", f"{PAGE}.must_include[0]"),
        (ends_at("__A__/tea|OR|__A__/milk"), "dead_marker", "eval.reference_url"),
        (UNREAD_URL, "dead_field", "eval.reference_url"),
        (page(exact_match="tea", must_include=["milk"]), "dead_field", f"{PAGE}.must_include"),
        (task(), "vacuous", "eval.eval_types"),
        (task("url_match"), "vacuous", "eval.reference_url"),
        (task("string_match", reference_answers={}), "vacuous", ANSWER),
        (said(must_include=[]), "vacuous", ANSWER),
        (said(must_include=["''", "tea"]), "vacuous", f"{ANSWER}.must_include[0]"),
        (page(exact_match=""), "vacuous", f"{PAGE}.exact_match"),
        (page(), "vacuous", "eval.program_html"),
        (said(exact_match="^tea.*$"), "literal_pattern", f"{ANSWER}.exact_match"),
        (ends_at(r"__A__/tea/\d+"), "literal_pattern", "eval.reference_url"),
        (said(must_include=["12"]), "number_run_on", f"{ANSWER}.must_include[0]"),
        (page(must_include=["$12"]), "number_run_on", f"{PAGE}.must_include[0]"),
        (said(must_include=["Yes"]), "polarity", f"{ANSWER}.must_include[0]"),
        (said(must_include=["tea", "green tea"]), "redundant", f"{ANSWER}.must_include[0]"),
        (said("On 3/2?", must_include=["2"]), "given_away", f"{ANSWER}.must_include"),
        (said("Is tea green?", must_include=["Tea"]), "given_away", f"{ANSWER}.must_include"),
        (ends_at("__A__/tea/1"), "url_run_on", "eval.reference_url"),
        (ends_at("__A__/a?x=tea |OR| __A__/b"), "pooled_queries", "eval.reference_url"),
        (page(must_include=["x"]), "one_character", f"{PAGE}.must_include[0]"),
    ],
)
def test_a_trap_is_found_where_it_stands(spec: Task, category: str, field: str) -> None:
    assert (category, field) in pitfalls(spec)


@pytest.mark.parametrize(
    "spec",
    [
        said(exact_match="tea"),
        said("How many?", must_include=["2"]),
        said(must_include=["tea", "milk"]),
        said(fuzzy_match="N/A"),
        page(must_include=["tea |OR| milk"]),
        page(exact_match="tea [2 cups] (of 3.5 dl)?"),
        ends_at("__A__/tea |OR| __A__/milk"),
        ends_at("__A__/find?q=12"),
        task("url_match", reference_url="__A__/tea", reference_answers={}),
    ],
)
def test_honest_specifications_have_no_traps(spec: Task) -> None:
    assert pitfalls(spec) == []


@given(st.lists(st.text(), min_size=1), st.text(), st.text())
def test_no_text_in_a_task_upsets_the_detectors(texts: list[str], url: str, intent: str) -> None:
    page_check = {"url": url, "locator": url, "required_contents": {"must_include": texts}}
    spec = task(
        "string_match",
        "url_match",
        intent=intent,
        reference_answers={"must_include": texts, "fuzzy_match": texts},
        reference_url=url,
        program_html=[page_check],
    )
    list(weaknesses([spec]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["|" * 10**6, "[" * 10**6, "[a]" * 10**6, "\\" * 10**6, "1" * 10**6]
)
def test_long_text_takes_no_longer_than_it_should(text: str) -> None:
    list(weaknesses([said(exact_match=text, must_include=[text]), ends_at(text)]))
