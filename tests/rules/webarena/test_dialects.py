"""Each dialect by its own harness: expectations are what the published evaluators return.

They were run on these very tasks: WebChoreArena e612218, VisualWebArena 89f5af2, WebArena-Lite
9055fc2 (their ``evaluation_harness/evaluators.py``), with NLTK 3.10.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from trajudge.rules.verdict import Outcome
from trajudge.rules.webarena import AnswerQuestion, StoredPage, Task, Trace, WebArenaEvaluator

PASS, FAIL, UNKNOWN = Outcome.PASS, Outcome.FAIL, Outcome.UNKNOWN
URL = "http://shop.test/cart"
RULES = WebArenaEvaluator()


def task(dialect: str, *checks: str, **spec: Any) -> Task:
    record = {"task_id": 7, "intent": "How many?", "eval": {"eval_types": checks, **spec}}
    return msgspec.structs.replace(msgspec.convert(record, Task), dialect=dialect)


def page(
    dialect: str, contents: Mapping[str, Any], locator: str = "", *others: dict[str, Any]
) -> Task:
    check: dict[str, Any] = {"url": "last", "locator": locator, "required_contents": contents}
    if others:
        check["or"] = others
    return task(dialect, "program_html", program_html=[check])


@pytest.mark.parametrize(
    ("references", "answer", "score"),
    [
        ({"must_include": ["12 |or| twelve"]}, "Twelve", 1.0),
        ({"must_include": ["12 |OR| twelve"]}, "twelve", 1.0),
        ({"must_include": ["12|or|twelve"]}, "twelve", 0.0),
        ({"must_include": ["12 |or| twelve"]}, "13", 0.0),
        ({"must_include": ["tea", "milk", "rum"]}, "tea and rum", 2 / 3),
        ({"must_include": ["tea", "milk"], "exact_match": "tea"}, "tea", 0.5),
        ({"must_include": ["tea", "milk"], "exact_match": "rum"}, "tea", 0.0),
        ({"must_include": ["2"]}, "12", 0.0),
        # An alternative of one character is looked for in itself there: every answer passes.
        ({"must_include": ["2 |or| two"]}, "none", 1.0),
        ({"must_include": ["2 |or| two", "x"]}, "none", 0.0),
        ({"exact_match": "N/A"}, "n/a", 1.0),
    ],
)
def test_webchorearena_reads_alternatives_and_gives_a_share(
    references: Mapping[str, Any], answer: str, score: float
) -> None:
    made = RULES.evaluate(
        task("webchorearena", "string_match", reference_answers=references), answer, None
    )
    assert made.score == pytest.approx(score)
    assert made.outcome is (PASS if score == 1 else FAIL)


def test_webchorearena_knows_other_addresses_and_other_pages() -> None:
    spec = task(
        "webchorearena",
        "url_match",
        reference_url="http://Shop.test/other",
        **{"or": [{"reference_url": "http://SHOP.test/Cart"}]},
    )
    assert RULES.evaluate(spec, "", Trace(url=URL)).outcome is PASS
    assert RULES.evaluate(spec, "", Trace(url="http://shop.test/x")).outcome is FAIL
    other = {"url": "last", "locator": "", "required_contents": {"must_include": ["tea", "milk"]}}
    checks = page("webchorearena", {"must_include": ["rum", "gin", "tea"]}, "", other)
    for html, score in (("tea, milk", 1.0), ("tea", 0.5), ("gin, rum", 2 / 3), ("", 0.0)):
        trace = Trace(url=URL, pages=(StoredPage(url=URL, html=html),))
        made = RULES.evaluate(checks, None, trace)
        assert made.score == pytest.approx(score)
    assert RULES.evaluate(checks, None, Trace(url=URL)).score is None


def test_what_is_unknown_leaves_no_share() -> None:
    references = {"must_include": ["tea"], "fuzzy_match": "a cup of tea"}
    spec = task("webchorearena", "string_match", reference_answers=references)
    assert RULES.evaluate(spec, "tea", None).score is None
    assert RULES.evaluate(spec, "milk", None).score == 0.0
    assert RULES.evaluate(task("webarena", "string_match"), "milk", None).score is None


ANSWERS: list[tuple[dict[str, Any], str, Outcome]] = [
    ({"must_include": ["1 |OR| one"]}, "One of them", PASS),
    ({"must_include": ["tea"]}, "teapots", FAIL),
    ({"must_include": ["green tea"]}, "green teapots", PASS),
    ({"must_include": ["$12"]}, "it is $12.99", PASS),
    ({"must_exclude": ["tea"]}, "teapots", PASS),
    ({"must_exclude": ["tea"]}, "a tea", FAIL),
    ({"one_of": ["rum", "tea"]}, "teapots", PASS),
    ({"one_of": ["rum", "tea"]}, "gin", FAIL),
    ({"required_values": [">= 12", "< 700"]}, "1,2", PASS),
    ({"required_values": [">= 12"]}, "11", FAIL),
    ({"required_values": ["== 3 |OR| == 4"]}, "4", PASS),
    ({"required_values": [">= 12"]}, "12.5", FAIL),
    ({"exact_match": "tea"}, "tea ", FAIL),
    ({"fuzzy_match": "N/A"}, "N/A", PASS),
    ({"fuzzy_match": "N/A"}, "There is none", UNKNOWN),
]


@pytest.mark.parametrize("dialect", ["visualwebarena", "webarena-lite"])
@pytest.mark.parametrize(("references", "answer", "outcome"), ANSWERS)
def test_visualwebarena_compares_words_values_and_lists(
    dialect: str, references: Mapping[str, Any], answer: str, outcome: Outcome
) -> None:
    spec = task(dialect, "string_match", reference_answers=references)
    assert RULES.evaluate(spec, answer, None).outcome is outcome


@pytest.mark.parametrize(
    ("contents", "locator", "outcome"),
    [
        ({"must_include": ["tea |OR| rum"]}, "", PASS),
        ({"must_include": ["te"]}, "", FAIL),
        # No entity is resolved.
        ({"must_include": ["tea & milk"]}, "", FAIL),
        ({"must_exclude": ["rum"]}, "", PASS),
        ({"must_exclude": ["tea"]}, "", FAIL),
        ({"must_include": ["tea"], "must_exclude": ["tea"]}, "", PASS),
        ({"required_values": ["<= 12.5"]}, "func:price(__page__)", PASS),
        ({"required_values": ["> 13"]}, "func:price(__page__)", FAIL),
        ({"required_values": ["> 1"]}, "document.count", FAIL),
        ({"exact_match": "x"}, "func:gone(__page__)", FAIL),
        ({"must_exclude": ["x"]}, "lambda:(() => null)", FAIL),
        ({"fuzzy_match": "tea"}, "", UNKNOWN),
        ({"must_include": ["x"]}, "func:never(__page__)", UNKNOWN),
    ],
)
def test_visualwebarena_reads_pages_its_own_way(
    contents: Mapping[str, Any], locator: str, outcome: Outcome
) -> None:
    values = {"document.count": "1.5", "lambda:(() => null)": None}
    stored = StoredPage(url=URL, html="<p>tea &amp; milk</p>", values=values)
    results = {"price(__page__)": "12.5", "gone(__page__)": None}
    trace = Trace(url=URL, pages=(stored,), results=results)
    spec = page("visualwebarena", contents, locator)
    assert RULES.evaluate(spec, None, trace).outcome is outcome


def test_what_needs_a_picture_is_unknown_and_never_failed() -> None:
    query = {"eval_image_class": ".x", "eval_image_url": "last", "eval_vqa": []}
    spec = task("visualwebarena", "page_image_query", page_image_query=[query, query])
    made = RULES.evaluate(spec, None, Trace(url=URL))
    assert (made.outcome, len(made.assertions)) == (UNKNOWN, 2)
    assert "pictures of the page decide this" in made.reasons[0]


@pytest.mark.parametrize(
    ("dialect", "asked"),
    [
        ("webarena", ["an hour", "by car"]),
        ("visualwebarena", ["an hour", "by car"]),
        ("webchorearena", ["an hour; by car"]),
        ("webarena-lite", ["an hour, by car"]),
    ],
)
def test_a_judge_model_is_asked_as_there(dialect: str, asked: list[str]) -> None:
    questions: list[AnswerQuestion] = []

    def judge(question: AnswerQuestion) -> bool:
        questions.append(question)
        return True

    spec = task(dialect, "string_match", reference_answers={"fuzzy_match": ["an hour", "by car"]})
    assert WebArenaEvaluator(judge=judge).evaluate(spec, "60 min", None).outcome is PASS
    assert [question.reference for question in questions] == asked
