"""The original harness's verdicts, and how it compares texts and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import table
from trajudge.rules.verdict import Outcome
from trajudge.rules.webarena import AnswerQuestion, Run, StoredPage, Task, Trace, WebArenaEvaluator
from trajudge.rules.webarena.evaluator import (
    alternatives,
    clean,
    evaluate_runs,
    must_include,
    post_address,
    render,
    satisfies,
    unresolved,
    url_match,
    whole_number,
    words,
)
from trajudge.rules.webarena.tasks import DIALECTS
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


SHOP = "http://shop.test"
ORIGINAL, CHORE, VISUAL, LITE = (
    DIALECTS[name].harness
    for name in ("webarena", "webchorearena", "visualwebarena", "webarena-lite")
)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("  Yes ", "yes"),
        ("'Yes'", "yes"),
        ('"Yes"', "yes"),
        ("'\"Yes\"'", '"yes"'),
        ("'Yes\"", "'yes\""),
        ("", ""),
        ("'", ""),
    ],
)
def test_cleaning_lowers_strips_and_takes_one_pair_of_quotes(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@pytest.mark.parametrize(
    "text",
    [
        *("2 ", " 2. ", "2, 3", "is 2. then", "(2)", "'2'", '"2"', "$2", "2%", "2:", "2;3"),
        *("2's", "*2*", "two--2", "2...", "a: 2"),
    ],
)
def test_one_character_is_found_where_it_stands_alone(text: str) -> None:
    assert must_include("2", text, ORIGINAL, lone=True)


@pytest.mark.parametrize("text", ["12", "2.5", "1,2", "2/3", "2-3", "2:30", "~2", "x2", "n'2", ""])
def test_one_character_is_not_found_inside_a_word(text: str) -> None:
    assert not must_include("2", text, ORIGINAL, lone=True)


# What NLTK 3.10.4 makes of them; it writes `` and '' for a quotation mark.
TOKENS = {
    "the tea, 2 cups.": ["the", "tea", ",", "2", "cups", "."],
    "it's $12.99 (new)": ["it", "'s", "$", "12.99", "(", "new", ")"],
    "don't cannot gonna": ["do", "n't", "can", "not", "gon", "na"],
    "2/3 1,200 10:30": ["2/3", "1,200", "10:30"],
    "a--b ... well-known": ["a", "--", "b", "...", "well-known"],
    "e.g. at u.s. shops!": ["e.g.", "at", "u.s.", "shops", "!"],
    "rock 'n roll's end'": ["rock", "'n", "roll", "'s", "end", "'"],
    "50% off; #1 @home": ["50", "%", "off", ";", "#", "1", "@", "home"],
    "d'ye see more'n that": ["d", "'ye", "see", "more", "'n", "that"],
}


@pytest.mark.parametrize("text", TOKENS)
def test_words_are_those_of_the_penn_treebank(text: str) -> None:
    assert words(text) == TOKENS[text]


@table(
    "reference text        visual lite",
    """
    tea       | green teapot  | no   | no
    tea       | green tea.    | yes  | yes
    12.99     | it is $12.99  | yes  | yes
    $12       | it is $12.99  | yes  | yes
    5         | 4/5           | no   | yes
    green tea | green teapot  | yes  | yes
    tea       | Tea           | no   | no
    """,
)
def test_a_reference_of_one_word_must_be_a_word(
    reference: str, text: str, visual: str, lite: str
) -> None:
    assert must_include(reference, text, VISUAL) is (visual == "yes")
    assert must_include(reference, text, LITE) is (lite == "yes")


@given(st.characters(), st.text())
def test_no_text_is_ever_a_pattern(character: str, text: str) -> None:
    if must_include(character, text, VISUAL):
        assert clean(character, strips=False) in text


@given(st.text())
def test_a_text_includes_itself(text: str) -> None:
    assert must_include(text, clean(text), ORIGINAL)


@pytest.mark.parametrize("unit", ["2", "2.", "2.)", "'", "2'", ",2", "--"])
def test_time_grows_with_the_length_and_no_faster(unit: str) -> None:
    """Quadratic time would run into the test's own time limit."""
    text = "x" + unit * (400_000 // len(unit)) + "x"
    assert "7" in words(text + " 7")
    assert "7" not in words(text + "7x")


@table(
    "number condition held",
    """
    12  | >= 12  | True
    11  | >= 12  | False
    12  | > 12   | True
    70  | < 70   | True
    71  | <= 70  | False
    10  | == 10  | True
    1e-8  | == 0 | True
    1e-8  | <= 0 | True
    1e-8  | < 0  | False
    -1e-8 | >= 0 | True
    -1e-8 | > 0  | False
    2e-8  | == 0 | False
    10  | == x   | None
    10  | about  | None
    10  | 5 < 20 | None
    """,
)
def test_a_condition_is_met_as_in_visualwebarena(number: str, condition: str, held: str) -> None:
    """Its strict signs have a tolerance that lets the bound itself through."""
    assert str(satisfies(float(number), condition)) == held


@table(
    "text number",
    """
    1,200 | 1200
    -3    | -3
    12.5  | None
    $12   | None
    """,
)
def test_a_number_is_an_integer_with_or_without_commas(text: str, number: str) -> None:
    assert str(whole_number(f" {text} ")) == number


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        (f"{SHOP}/cart/", f"{SHOP}/cart"),
        (f"{SHOP}/cart", f"{SHOP}/cart?page=2#top"),
        (f"{SHOP}/find?q=tea", f"{SHOP}/find?page=1&q=tea"),
        (f"{SHOP}/product/1", f"{SHOP}/product/12"),  # contained, which is the weakness
        (f"{SHOP}/a |OR| {SHOP}/b", f"{SHOP}/b/c"),
        (f"{SHOP}/a?x=1 |OR| {SHOP}/b?x=2", f"{SHOP}/a?x=2"),  # pooled, which is another
        ("__SHOPPING__/cart", "__SHOPPING__/cart"),
        (f"{SHOP}/x//", f"{SHOP}/x"),
        (f"{SHOP}/x", f"{SHOP}/x//"),
    ],
)
def test_urls_that_match(reference: str, found: str) -> None:
    assert url_match(alternatives(reference), found, ORIGINAL) == (True, "")


@pytest.mark.parametrize(
    ("reference", "found", "reason"),
    [
        (f"{SHOP}/cart", f"{SHOP}/", "none of the reference addresses"),
        (f"{SHOP}/cart", "about:blank", "none of the reference addresses"),
        (f"{SHOP}/find?q=tea", f"{SHOP}/find?q=coffee", "the query's 'q'"),
        (f"{SHOP}/find?q=tea", f"{SHOP}/find", "the query's 'q'"),
        (f"{SHOP}/a|OR|{SHOP}/b", f"{SHOP}/b", "none of the reference addresses"),
        (f"{SHOP}/Cart", f"{SHOP}/cart", "none of the reference addresses"),
        # A slash before the query, and a doubled one in the path, count as in the harness.
        (f"{SHOP}/x/?state=opened", f"{SHOP}/x?state=opened", "none of the reference addresses"),
        (f"{SHOP}//?a=1", f"{SHOP}/?a=1", "none of the reference addresses"),
        (f"{SHOP}/x//y", f"{SHOP}/x/y", "none of the reference addresses"),
        (f"{SHOP}/a/b", f"{SHOP}/a//b", "none of the reference addresses"),
    ],
)
def test_urls_that_do_not_match_and_why(reference: str, found: str, reason: str) -> None:
    matched, why = url_match(alternatives(reference), found, ORIGINAL)
    assert not matched
    assert reason in why


@table(
    "reference found note held",
    """
    http://a.test/x | http://a.test/x/      | EXACT        | True
    http://a.test/x | http://a.test/x//     | EXACT        | False
    http://a.test/x | http://a.test/x//     | GOLD in PRED | True
    http://a.test/x | http://a.test/xy?q=1  | GOLD in PRED | True
    http://a.test/x | http://a.test/x?q=1   | EXACT        | False
    http://localhost:1/x | http://127.0.0.1:1/x | EXACT    | True
    http://a.test/X | http://a.test/x       | EXACT        | False
    http://a.test/x | http://a.test/x       | PART         | None
    """,
)
def test_visualwebarena_compares_addresses_as_texts(
    reference: str, found: str, note: str, held: str
) -> None:
    """One slash at the end does not count; the original harness takes all of them off."""
    for harness in (VISUAL, LITE):
        assert str(url_match([reference], found, harness, note)[0]) == held


def test_a_placeholder_needs_an_address() -> None:
    assert render("__SHOPPING__/cart", {"__SHOPPING__": SHOP}) == f"{SHOP}/cart"
    assert render("__SHOPPING__/cart", {}) == "__SHOPPING__/cart"
    assert unresolved("__SHOPPING__/cart", SHOP) == "__SHOPPING__"
    assert unresolved(f"{SHOP}/cart", SHOP) is None


@table(
    "url post",
    """
    http://r.test/f/books/12/a-title?x#y | http://r.test/f/books/12/
    __REDDIT__/f/books/12/a-title        | __REDDIT__/f/books/12/
    http://r.test/f/books/12             | http://r.test/f/books/12/
    http://r.test/f/books                | http://r.test/f/books
    http://r.test/user/x/12              | http://r.test/user/x/12
    http://[broken                       | http://[broken
    """,
)
def test_a_post_is_found_in_the_urls_of_its_comments(url: str, post: str) -> None:
    assert post_address(url) == post


@given(st.text(), st.text())
def test_no_url_raises(reference: str, found: str) -> None:
    for harness in (ORIGINAL, CHORE, VISUAL):
        url_match(alternatives(reference), found, harness)
    post_address(found)


def test_a_broken_host_is_compared_as_text() -> None:
    assert url_match(["http://[broken"], "http://[broken/x", ORIGINAL)[0]


@pytest.mark.parametrize(
    ("dialect", "checks", "score"),
    [
        ("webarena", ["string_match"], None),
        ("webchorearena", ["string_match"], 0.5),
        ("webchorearena", [], None),
    ],
)
def test_a_score_is_that_of_a_harness_that_has_shares(
    dialect: str, checks: list[str], score: float | None
) -> None:
    references = {"must_include": ["tea", "milk"]}
    spec = {"eval_types": checks, "reference_answers": references if checks else None}
    record = {"task_id": 1, "intent": "?", "eval": spec}
    task = msgspec.structs.replace(msgspec.convert(record, Task), dialect=dialect)
    assert WebArenaEvaluator().evaluate(task, "tea", None).score == score


def test_a_task_is_achievable_unless_the_answer_is_to_say_that_it_is_not() -> None:
    references: list[Any] = [None, {"fuzzy_match": ["tea"]}, {"fuzzy_match": "N/A"}]
    made = [task("string_match", reference_answers=each).achievable for each in references]
    assert made == [True, True, False]
