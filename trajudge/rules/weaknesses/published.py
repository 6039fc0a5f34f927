"""The categories of WebArena Verified's audit, under the definitions that give its counts.

Source: WebArena Verified, Table 1, section 3.2 and Table 14. On the 812 published tasks they are
held to 92, 164, 176, 36 and 118, and the unions to 340 and 506. Two definitions differ from the
paper's words: its 506 is the union of all substring checks of answers and pages, blank locators
included, where Table 14 as written gives 340; and ``outerText`` counts anywhere in the locator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from msgspec import UNSET

from trajudge.rules.findings import Finding
from trajudge.rules.weaknesses.references import page_checks, references
from trajudge.rules.webarena.model import UNACHIEVABLE, Task

Detector = Callable[[Task], Iterator[Finding]]
Fields = Iterator[tuple[str, object]]


class _Category(NamedTuple):
    """A weakness: the fields of a task that have it, each with its value; what is wrong with them,
    and the fix, in a sentence each."""

    fields: Callable[[Task], Fields]
    problem: str
    mend: str


def _page_content(task: Task) -> Fields:
    """Page checks with a blank locator: the text counts wherever on the page it stands."""
    for place, check in page_checks(task):
        if not check.locator.strip():
            yield f"{place}.locator", check.locator


def _page_substring(task: Task) -> Fields:
    """Page checks by ``must_include``, whatever the locator."""
    for place, check in page_checks(task):
        contents = check.required_contents
        if contents.must_include is not UNSET:
            yield f"{place}.required_contents.must_include", list(contents.must_include)


def _locator_substring(task: Task) -> Fields:
    """Page checks by ``must_include`` on an element's ``outerText``."""
    for place, check in page_checks(task):
        if check.required_contents.must_include is not UNSET and "outerText" in check.locator:
            yield f"{place}.locator", check.locator


def _response_substring(task: Task) -> Fields:
    """Answers judged by ``must_include``."""
    answers = task.eval.reference_answers
    if answers is not None and answers.must_include is not UNSET:
        yield "eval.reference_answers.must_include", list(answers.must_include)


def _unachievable(task: Task) -> Fields:
    """Tasks whose right answer is "N/A"."""
    for reference in references(task):
        if reference.how == "fuzzy_match" and reference.among == (UNACHIEVABLE,):
            yield reference.field, reference.text


def _llm_evaluation(task: Task) -> Fields:
    """Tasks that a language model judges, "N/A" included (a model reads other answers)."""
    answers = task.eval.reference_answers
    if answers is not None and answers.fuzzy_match is not UNSET:
        value = answers.fuzzy_match
        shown = value if isinstance(value, str) else list(value)
        yield "eval.reference_answers.fuzzy_match", shown


_CATEGORIES: Mapping[str, _Category] = {
    "page_content": _Category(
        _page_content,
        "The whole page is searched, so the text counts in any field.",
        "Name the element that must hold the text.",
    ),
    "page_substring": _Category(
        _page_substring,
        "Any text around the references is accepted.",
        "Compare the element's whole value, with its type.",
    ),
    "locator_substring": _Category(
        _locator_substring,
        "The text of the element and of all in it is searched for a substring.",
        "Read the one field that matters and compare its whole value.",
    ),
    "response_substring": _Category(
        _response_substring,
        "Any answer that contains the references passes, also one that denies them.",
        "Ask for a structured answer and compare typed values.",
    ),
    "unachievable": _Category(
        _unachievable,
        'A run that did nothing and answers "N/A" passes.',
        "Ask for a status that names the reason, and for evidence of a search.",
    ),
    "llm_evaluation": _Category(
        _llm_evaluation,
        "The verdict depends on a language model.",
        "Compare typed values, such as durations or addresses.",
    ),
}


def _find(name: str, task: Task) -> Iterator[Finding]:
    """Yield what one category finds in a task."""
    category = _CATEGORIES[name]
    for at in category.fields(task):
        yield Finding(task.task_id, name, *at, category.problem, category.mend)


PUBLISHED: Mapping[str, Detector] = {name: partial(_find, name) for name in _CATEGORIES}
UNIONS: Mapping[str, tuple[str, ...]] = {
    "any_substring": ("locator_substring", "response_substring"),
    "permissive": ("page_substring", "response_substring"),
}
