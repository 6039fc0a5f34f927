"""The categories of WebArena Verified's audit, under the definitions that give its counts.

Source: WebArena Verified, Table 1, section 3.2 and Table 14. On the 812 published tasks they are
held to 92, 164, 176, 36 and 118, and the unions to 340 and 506. Two definitions differ from the
paper's words: its 506 is the union of all substring checks of answers and pages, blank locators
included, where Table 14 as written gives 340; and ``outerText`` counts anywhere in the locator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import UNSET

from trajudge.rules.findings import Finding
from trajudge.rules.weaknesses.references import page_checks, references
from trajudge.rules.webarena.model import UNACHIEVABLE, Task

Detector = Callable[[Task], Iterator[Finding]]


def page_content(task: Task) -> Iterator[Finding]:
    """Page checks with a blank locator: the text counts wherever on the page it stands."""
    for place, check in page_checks(task):
        if not check.locator.strip():
            yield Finding(
                task_id=task.task_id,
                category="page_content",
                field=f"{place}.locator",
                value=check.locator,
                problem="The whole page is searched, so the text counts in any field.",
                mend="Name the element that must hold the text.",
            )


def page_substring(task: Task) -> Iterator[Finding]:
    """Page checks by ``must_include``, whatever the locator."""
    for place, check in page_checks(task):
        if check.required_contents.must_include is not UNSET:
            yield Finding(
                task_id=task.task_id,
                category="page_substring",
                field=f"{place}.required_contents.must_include",
                value=list(check.required_contents.must_include),
                problem="Any text around the references is accepted.",
                mend="Compare the element's whole value, with its type.",
            )


def locator_substring(task: Task) -> Iterator[Finding]:
    """Page checks by ``must_include`` on an element's ``outerText``."""
    for place, check in page_checks(task):
        if check.required_contents.must_include is not UNSET and "outerText" in check.locator:
            yield Finding(
                task_id=task.task_id,
                category="locator_substring",
                field=f"{place}.locator",
                value=check.locator,
                problem="The text of the element and of all in it is searched for a substring.",
                mend="Read the one field that matters and compare its whole value.",
            )


def response_substring(task: Task) -> Iterator[Finding]:
    """Answers judged by ``must_include``."""
    answers = task.eval.reference_answers
    if answers is not None and answers.must_include is not UNSET:
        yield Finding(
            task_id=task.task_id,
            category="response_substring",
            field="eval.reference_answers.must_include",
            value=list(answers.must_include),
            problem="Any answer that contains the references passes, also one that denies them.",
            mend="Ask for a structured answer and compare typed values.",
        )


def unachievable(task: Task) -> Iterator[Finding]:
    """Tasks whose right answer is "N/A"."""
    for reference in references(task):
        if reference.how == "fuzzy_match" and reference.among == (UNACHIEVABLE,):
            yield Finding(
                task_id=task.task_id,
                category="unachievable",
                field=reference.field,
                value=reference.text,
                problem='A run that did nothing and answers "N/A" passes.',
                mend="Ask for a status that names the reason, and for evidence of a search.",
            )


def llm_evaluation(task: Task) -> Iterator[Finding]:
    """Tasks that a language model judges, "N/A" included (a model reads other answers)."""
    answers = task.eval.reference_answers
    if answers is not None and answers.fuzzy_match is not UNSET:
        value = answers.fuzzy_match
        yield Finding(
            task_id=task.task_id,
            category="llm_evaluation",
            field="eval.reference_answers.fuzzy_match",
            value=value if isinstance(value, str) else list(value),
            problem="The verdict depends on a language model.",
            mend="Compare typed values, such as durations or addresses.",
        )


PUBLISHED: Mapping[str, Detector] = {
    "page_content": page_content,
    "page_substring": page_substring,
    "locator_substring": locator_substring,
    "response_substring": response_substring,
    "unachievable": unachievable,
    "llm_evaluation": llm_evaluation,
}
UNIONS: Mapping[str, tuple[str, ...]] = {
    "any_substring": ("locator_substring", "response_substring"),
    "permissive": ("page_substring", "response_substring"),
}
