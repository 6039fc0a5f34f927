"""Pitfalls that the published audit does not name: what is never read, and what matches too much.

Every detector looks at text with fixed, linear patterns; no text of a task is ever a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from msgspec import UNSET

from trajudge.rules.findings import Finding
from trajudge.rules.weaknesses.references import Reference, page_checks, references
from trajudge.rules.webarena.model import ReferenceAnswers, Task
from trajudge.rules.webarena.strings import OR, clean, must_include
from trajudge.rules.webarena.urls import alternatives, base_and_query

_MARKER = re.compile(r"\|\s{0,3}or\s{0,3}\|", re.IGNORECASE)
_PATTERN = re.compile(r"^\^|\.[*+]|\\[dwsbDWSB]|\[[^\]\n]{1,40}\][*+]|\(\?[:=!imsP<]")
_NUMBER_AT_EDGE = re.compile(r"^\d|\d$")
_POLARITY = frozenset({"yes", "no", "true", "false", "not"})


def _finding(task: Task, category: str, at: tuple[str, object], problem: str, mend: str) -> Finding:
    return Finding(task.task_id, category, *at, problem, mend)


def dead_marker(task: Task) -> Iterator[Finding]:
    """Alternatives that the harness reads as text, because of their place or their form."""
    for reference in references(task):
        honoured = (reference.where, reference.how) == ("page", "must_include")
        if _dead(reference.text, honoured=honoured):
            yield _marker(task, reference.field, reference.text)
    url = task.eval.reference_url or ""
    if _dead(url, honoured=True):
        yield _marker(task, "eval.reference_url", url)


def _dead(text: str, *, honoured: bool) -> bool:
    """Tell whether a marker is left once the honoured ones are split off."""
    parts = text.split(OR) if honoured else [text]
    return any(_MARKER.search(part) for part in parts)


def _marker(task: Task, field: str, value: str) -> Finding:
    problem = '"|OR|" is read as text here, so no alternative can match.'
    mend = 'Alternatives work in reference_url and page must_include only, as " |OR| ".'
    return _finding(task, "dead_marker", (field, value), problem, mend)


def dead_field(task: Task) -> Iterator[Finding]:
    """Find checks that are written down and never made."""
    spec = task.eval
    answers = spec.reference_answers
    written = {
        # An empty object is none: other tools write one where only the address counts.
        "string_match": ("eval.reference_answers", answers != ReferenceAnswers() and answers),
        "url_match": ("eval.reference_url", spec.reference_url),
        "program_html": ("eval.program_html", spec.program_html),
    }
    for name, (field, value) in written.items():
        if value and name not in spec.eval_types:
            shown = value if isinstance(value, str) else "..."
            problem = f"It is never read, because eval_types does not name {name}."
            yield _finding(task, "dead_field", (field, shown), problem, f"Add {name} or remove it.")
    for place, check in page_checks(task):
        contents = check.required_contents
        if contents.exact_match is not UNSET and contents.must_include is not UNSET:
            at = (f"{place}.required_contents.must_include", list(contents.must_include))
            problem = "It is never read, because exact_match stands beside it."
            yield _finding(task, "dead_field", at, problem, "Make two entries of them.")


def vacuous(task: Task) -> Iterator[Finding]:
    """Find checks that every run passes, or that check nothing at all."""
    listed = list(references(task))
    referenced = {
        "string_match": ("eval.reference_answers", any(one.where == "answer" for one in listed)),
        "url_match": ("eval.reference_url", bool(task.eval.reference_url)),
        "program_html": ("eval.program_html", any(one.where == "page" for one in listed)),
    }
    if not task.eval.eval_types:
        yield _vacuous(task, ("eval.eval_types", []), "No check is named, so nothing is checked.")
    for check in task.eval.eval_types:
        field, has_reference = referenced[check]
        if not has_reference:
            yield _vacuous(task, (field, ""), f"{check} is named and has no reference.")
    for reference in listed:
        if reference.how == "must_include" and not clean(reference.text):
            at = (reference.field, reference.text)
            yield _vacuous(task, at, "A blank reference is part of every text.")
        elif (reference.where, reference.how, reference.text) == ("page", "exact_match", ""):
            at = (reference.field, reference.text)
            yield _vacuous(task, at, "A page without the element reads as blank, and passes.")


def _vacuous(task: Task, at: tuple[str, object], problem: str) -> Finding:
    return _finding(task, "vacuous", at, problem, "Write what the run must have reached.")


def literal_pattern(task: Task) -> Iterator[Finding]:
    """Find references written as regular expressions, which the harness compares literally."""
    texts = [(reference.field, reference.text) for reference in references(task)]
    texts.append(("eval.reference_url", task.eval.reference_url or ""))
    for field, text in texts:
        if _PATTERN.search(text):
            problem = "It looks like a regular expression and is compared letter by letter."
            mend = "Write the text itself, or alternatives where they are read."
            yield _finding(task, "literal_pattern", (field, text), problem, mend)


def number_run_on(task: Task) -> Iterator[Finding]:
    """Substrings with a digit at the edge: "10" is part of "100" and "2" of "12"."""
    for reference in references(task):
        text = clean(reference.text)
        if reference.how != "must_include" or reference.held_to_tokens or len(text) > 12:
            continue
        if _NUMBER_AT_EDGE.search(text):
            at = (reference.field, reference.text)
            problem = f"Longer numbers contain it, such as {_longer(text)!r}."
            mend = "Compare the number as a number."
            yield _finding(task, "number_run_on", at, problem, mend)


def _longer(text: str) -> str:
    return f"1{text}" if text[0].isdigit() else f"{text}0"


def polarity(task: Task) -> Iterator[Finding]:
    """Yes and no as substrings: "Yes, the answer is no" holds both, "know" holds no."""
    for reference in references(task):
        if reference.how == "must_include" and clean(reference.text) in _POLARITY:
            at = (reference.field, reference.text)
            problem = "An answer that says both, or a word that contains it, passes."
            yield _finding(task, "polarity", at, problem, "Compare a boolean, or the whole answer.")


def redundant(task: Task) -> Iterator[Finding]:
    """Find references that another one of the same list contains: they check nothing more."""
    for reference in references(task):
        if reference.how != "must_include" or not clean(reference.text):
            continue
        for index, other in enumerate(reference.among):
            within = clean(reference.text) in clean(other)
            if within and not reference.field.endswith(f"[{index}]") and OR not in other:
                at = (reference.field, reference.text)
                problem = f"{other!r} contains it, so its own occurrence is never checked."
                mend = "Count occurrences, or compare a list of values."
                yield _finding(task, "redundant", at, problem, mend)
                break


def answer_leak(task: Task) -> Iterator[Finding]:
    """Answers that stand in the question: the intent, or the numbers in it, would pass."""
    answers = task.eval.reference_answers
    if answers is None or answers.must_include is UNSET or not answers.must_include:
        return
    alone = len(answers.must_include) == 1
    numbers = " ".join(re.findall(r"\d+", task.intent))
    for said in (clean(task.intent), numbers):
        if all(must_include(text, said, tokens=alone) for text in answers.must_include):
            at = ("eval.reference_answers.must_include", list(answers.must_include))
            problem = f"Repeating words or numbers of the intent passes: {said[:80]!r}."
            mend = "Compare the whole answer, or choose an instance whose answer is not in it."
            yield _finding(task, "given_away", at, problem, mend)
            return


def url_run_on(task: Task) -> Iterator[Finding]:
    """Find reference URLs that end with a digit: ``/product/1`` is part of ``/product/12``."""
    if "url_match" not in task.eval.eval_types:
        return
    for url in alternatives(task.eval.reference_url or ""):
        base, query = base_and_query(url)
        if base[-1:].isdigit() and not query:
            problem = f"Other pages' addresses contain it, such as {base + '0'!r}."
            mend = "Compare the whole path."
            yield _finding(task, "url_run_on", ("eval.reference_url", url), problem, mend)


def pooled_queries(task: Task) -> Iterator[Finding]:
    """Alternative urls with queries: one's address with another's query passes."""
    urls = alternatives(task.eval.reference_url or "")
    if "url_match" not in task.eval.eval_types or len(urls) == 1:
        return
    if any(base_and_query(url)[1] for url in urls):
        at = ("eval.reference_url", task.eval.reference_url)
        problem = "The queries are pooled: every name is asked of every alternative."
        mend = "Compare each alternative as a whole."
        yield _finding(task, "pooled_queries", at, problem, mend)


def one_character(task: Task) -> Iterator[Finding]:
    """Find references of one character to which the one-character rule does not apply."""
    for reference in references(task):
        if _loose_character(reference):
            at = (reference.field, reference.text)
            problem = "One character is part of almost every text, and here need not stand alone."
            mend = "Write more of the text, or compare the whole value."
            yield _finding(task, "one_character", at, problem, mend)


def _loose_character(reference: Reference) -> bool:
    single = len(clean(reference.text)) == 1
    return single and reference.how == "must_include" and not reference.held_to_tokens


PITFALLS: Mapping[str, Callable[[Task], Iterator[Finding]]] = {
    "dead_marker": dead_marker,
    "dead_field": dead_field,
    "vacuous": vacuous,
    "literal_pattern": literal_pattern,
    "number_run_on": number_run_on,
    "polarity": polarity,
    "redundant": redundant,
    "given_away": answer_leak,
    "url_run_on": url_run_on,
    "pooled_queries": pooled_queries,
    "one_character": one_character,
}
