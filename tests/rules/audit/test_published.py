"""The published audit's categories: on a small task each, and its counts on the real tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from trajudge.rules.audit.lint import CATEGORIES, UNIONS, counts, weaknesses
from trajudge.rules.webarena import Task, load_tasks


def task(**spec: Any) -> Task:
    return msgspec.convert({"task_id": 1, "intent": "?", "eval": {"eval_types": [], **spec}}, Task)


def categories(spec: Task) -> set[str]:
    return {finding.category for finding in weaknesses([spec])} - {"vacuous", "dead_field"}


def page(locator: str, **contents: Any) -> Task:
    entry = {"url": "last", "locator": locator, "required_contents": contents}
    return task(program_html=[entry])


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        (page("", exact_match="tea"), {"page_content"}),
        (page("  ", must_include=["tea"]), {"page_content", "page_substring"}),
        (page("document.x.value", must_include=["tea"]), {"page_substring"}),
        (page("document.x.value", exact_match="tea"), set()),
        (
            page("[...document.x].map(e => e.outerText)[0]", must_include=["tea"]),
            {"page_substring", "locator_substring"},
        ),
        (page("document.x.outerText", exact_match="tea"), set()),
        (task(reference_answers={"must_include": ["tea"]}), {"response_substring"}),
        (task(reference_answers={"exact_match": "tea"}), set()),
        (task(reference_answers={"fuzzy_match": ["tea"]}), {"llm_evaluation"}),
        (task(reference_answers={"fuzzy_match": "N/A"}), {"llm_evaluation", "unachievable"}),
    ],
)
def test_each_category_finds_its_own(spec: Task, found: set[str]) -> None:
    assert categories(spec) == found


def test_a_finding_names_task_field_value_and_mend() -> None:
    (finding,) = [
        one
        for one in weaknesses([page("document.a.outerText", must_include=["tea"])])
        if one.category == "locator_substring"
    ]
    assert (finding.task_id, finding.field) == (1, "eval.program_html[0].locator")
    assert finding.value == "document.a.outerText"
    assert finding.problem.endswith(".")
    assert finding.mend.endswith(".")


@pytest.mark.real_data
def test_the_papers_counts_are_those_of_the_published_tasks(real_data: Path) -> None:
    tasks = load_tasks(real_data / "webarena" / "test.raw.json")
    counted = counts(weaknesses(tasks), CATEGORIES, UNIONS)
    assert {count.category: len(count.tasks) for count in counted} == {
        "page_content": 92,
        "page_substring": 330,
        "locator_substring": 164,
        "response_substring": 176,
        "unachievable": 36,
        "llm_evaluation": 118,
        "pictures": 0,
        "unreadable": 0,
        "any_substring": 340,
        "permissive": 506,
        "dead_marker": 1,
        "dead_field": 1,
        "vacuous": 0,
        "literal_pattern": 0,
        "number_run_on": 122,
        "polarity": 5,
        "redundant": 6,
        "given_away": 4,
        "url_run_on": 14,
        "pooled_queries": 0,
        "one_character": 0,
    }
    which = {count.category: count.tasks for count in counted}
    assert which["dead_marker"] == (386,)
    assert which["dead_field"] == (247,)
    assert which["given_away"] == (133, 135, 206, 207)
