"""Linter for task specifications in WebArena's form and in REAL's; findings of any linter.

``PUBLISHED`` are the categories of WebArena Verified's audit (Table 1, section 3.2 and Table 14),
with the definitions that reproduce its counts on the 812 published tasks: 92, 164, 176, 36 and 118,
and 340 and 506 for the unions. Two definitions differ from the paper's text: its 506 is the union
of all substring checks of answers and pages, including blank locators, for which Table 14 as
written gives 340; and ``outerText`` counts anywhere in the locator.

``PITFALLS`` are trajudge's: fields that are never read, and checks that match too much. Detectors
search texts with fixed patterns that take linear time; a task's text is never used as a pattern.

REAL's checks compare the state of a site's replica before and after a run (``jmespath``), or call a
language model (``llm_boolean``) or a script; recorded runs do not include such a state.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import UNSET

from trajudge.rules.files import (
    TaskFlaw,
    brief,
    first,
    flaw_of,
    read_bytes,
    text_of,
    write_csv,
    write_json,
)
from trajudge.rules.webarena.evaluator import (
    GOLD_IN_PRED,
    OR,
    alternatives,
    base_and_query,
    clean,
    includes,
    must_include,
    options_of,
    words,
)
from trajudge.rules.webarena.tasks import (
    UNACHIEVABLE,
    PageCheck,
    ReferenceAnswers,
    RequiredContents,
    Task,
    raw_records,
)
from trajudge.util.files import DataFolder
from trajudge.util.tables import columns, folded, screen_width
from trajudge.util.terminal import count_of, one_line

_ROWS = 10
_COLUMNS = ("severity", "task_id", "category", "field", "value", "problem", "mend")


class Severity(StrEnum):
    """The effect of a weakness on verdicts, the worst first.

    ``error``: every honest run fails, or a run without actions passes. ``warning``: some wrong runs
    pass, or the released package rejects honest ones. ``note``: for information.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)


Severities = Mapping[str, Severity]
"""The severity of each category, in the order of the report."""


class Finding(msgspec.Struct, frozen=True):
    """One weakness. ``field`` is its path in the task, such as ``eval.program_html[0].locator``.

    ``value`` is the field's value; ``problem`` and ``mend`` are one sentence each.
    """

    task_id: int | str
    category: str
    field: str
    value: Any
    problem: str
    mend: str


class Flawed(Protocol):
    """The fields of a task that the linters need, in any dialect."""

    @property
    def task_id(self) -> int | str: ...
    @property
    def flaw(self) -> TaskFlaw | None: ...


AnyTask = TypeVar("AnyTask", bound=Flawed)


def unreadable_finding(task_id: int | str, flaw: TaskFlaw) -> Finding:
    """Return the finding for a task that cannot be read."""
    problem = f"No run of the task is judged, for it cannot be read: {flaw.problem}."
    return Finding(
        task_id, "unreadable", flaw.field, flaw.value, problem, "Write what schema.md says of it."
    )


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """The number of tasks with findings in a category; a union lists its categories and has
    their worst severity."""

    category: str
    severity: Severity
    tasks: tuple[int | str, ...]
    findings: int
    union_of: tuple[str, ...] = ()


class LintReport(NamedTuple):
    """All findings on a file of ``tasks`` tasks, in order, and their ``counts`` by category."""

    name: str
    dialect: str
    tasks: int
    findings: Sequence[Finding]
    counts: Sequence[Count]

    @property
    def severities(self) -> Mapping[str, Severity]:
        """The severity of each category."""
        return {count.category: count.severity for count in self.counts}

    def tasks_with(self, severity: Severity) -> int:
        """Count the tasks whose worst finding has this severity."""
        known, worst = self.severities, dict[int | str, int]()
        for one in self.findings:
            rank = known[one.category].rank
            worst[one.task_id] = min(rank, worst.get(one.task_id, rank))
        return list(worst.values()).count(severity.rank)


def counts(
    findings: Iterable[Finding], severities: Severities, unions: Mapping[str, tuple[str, ...]]
) -> tuple[Count, ...]:
    """Return one count for each category, including those without findings, then one for each
    union.

    A task counts once, whatever its number of findings.
    """
    listed, made = list(findings), []
    for category, parts in {**{one: (one,) for one in severities}, **unions}.items():
        results = [finding for finding in listed if finding.category in parts]
        made.append(
            Count(
                category=category,
                severity=min((severities[part] for part in parts), key=lambda one: one.rank),
                tasks=tuple(dict.fromkeys(finding.task_id for finding in results)),
                findings=len(results),
                union_of=parts if category in unions else (),
            )
        )
    return tuple(made)


def lint_screen(report: LintReport, most: int, out: Path | None, *, full: bool) -> str:
    """Lay out a summary, the categories, and ``most`` findings: the most severe ones, of these the
    rarest categories first.

    Without ``full`` it is one screen: at most ten categories, and findings without their fixes.
    """
    width = screen_width()
    lines = [line for text in _headline(report) for line in folded(text, width, most=3)]
    counts = [count for count in report.counts if count.findings]
    counts.sort(key=lambda one: (bool(one.union_of), one.severity.rank, -len(one.tasks)))
    shown = counts if full else counts[:_ROWS]
    if shown:
        head = ("severity", "category", "which", "tasks", "findings")
        lines += ["", *columns(head, list(map(_row, shown)), width, names=3)]
    if len(shown) < len(counts):
        lines.append(f"and {len(counts) - len(shown)} more: --full")
    if full and (none := [count.category for count in report.counts if not count.findings]):
        lines += folded(f"without findings: {', '.join(none)}", width)
    by_name = {count.category: count for count in report.counts}
    worst = sorted(report.findings, key=lambda one: _order(by_name[one.category]))[:most]
    lines += [""] if worst else []
    for one in worst:
        described = _described(one, by_name[one.category].severity, full=full)
        lines += folded(described, width, most=3 if full else 2)
    options = "--min-severity, --category" + ("" if full else ", --full")
    kept = f"in {one_line(str(out / 'lint.json'))} and lint.csv" if out else "--out DIR writes them"
    rest = f"{count_of(len(report.findings), 'finding')} in all: {kept}; fewer or more: {options}"
    return "\n".join([*lines, "", *folded(rest, width)]) + "\n"


def _headline(report: LintReport) -> Iterator[str]:
    """State in how many tasks verdicts are wrong, the worst first."""
    errors, warnings, notes = map(report.tasks_with, Severity)
    tasks = f"{count_of(report.tasks, 'task')} of {report.name} ({report.dialect})"
    if errors:
        yield (
            f"{errors:,} of {tasks} cannot be trusted: every honest run fails, or one that did "
            "nothing passes."
        )
    else:
        yield f"No weakness was found that turns the verdicts of any of {tasks}."
    if warnings or notes:
        refused = any(one.category == "unsatisfiable_in_release" for one in report.findings)
        released = ", or honest ones fail in the released package," if refused else ""
        passing = f"Some wrong runs pass{released} in {warnings:,} more; " if warnings else ""
        yield f"{passing}{notes:,} have notes alone."


def _row(count: Count) -> tuple[str, ...]:
    severity = "" if count.union_of else count.severity.value
    numbers = (str(len(count.tasks)), str(count.findings))
    return (severity, _label(count), first(count.tasks, 3), *numbers)


def _described(one: Finding, severity: Severity, *, full: bool) -> str:
    start, problem = f"{severity.value}: task {one.task_id}, {one.category}", _sentence(one.problem)
    if not full:
        return f"{start}: {problem}"
    return f"{start}, {one.field}: {brief(one.value)}: {problem} {_sentence(one.mend)}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _order(count: Count) -> tuple[int, int]:
    return count.severity.rank, count.findings


def _label(count: Count) -> str:
    return f"{count.category} = {' or '.join(count.union_of)}" if count.union_of else count.category


def write_findings(out: Path, report: LintReport) -> None:
    """Write ``lint.json`` and ``lint.csv``, in the order of the tasks. Raises UserError."""
    known = report.severities
    listed = [
        {"severity": known[one.category].value, **msgspec.structs.asdict(one)}
        for one in report.findings
    ]
    content = {"dialect": report.dialect, "counts": report.counts, "findings": listed}
    write_json(out / "lint.json", content)
    rows = (
        [text_of(one[name]) if name == "value" else one[name] for name in _COLUMNS]
        for one in listed
    )
    write_csv(out / "lint.csv", _COLUMNS, rows)


Where = Literal["answer", "page"]
_MARKER = re.compile(r"\|\s{0,3}or\s{0,3}\|", re.IGNORECASE)
_PATTERN = re.compile(r"^\^|\.[*+]|\\[dwsbDWSB]|\[[^\]\n]{1,40}\][*+]|\(\?[:=!imsP<]")
_NUMBER_AT_EDGE = re.compile(r"^\d|\d$")
_POLARITY = frozenset({"yes", "no", "true", "false", "not"})


class Reference(NamedTuple):
    """One reference: its check, its text, the value that it is compared with, and the other
    references of the list."""

    task: Task
    field: str
    where: Where
    how: str
    text: str
    among: tuple[str, ...]

    @property
    def options(self) -> list[str]:
        """The alternatives that the harness reads in the text."""
        if self.how == "required_values":
            return self.text.split(OR)
        if self.how != "must_include":
            return [self.text]
        entries = self.text.split(OR) if self.where == "page" else [self.text]
        if self.where == "answer" or self.task.harness.folds_options:
            return [one for entry in entries for one in options_of(entry, self.task.harness)]
        return entries

    @property
    def lone(self) -> bool:
        """Whether it is the answer's only reference."""
        return self.where == "answer" and len(self.among) == 1

    def is_word(self, text: str) -> bool:
        """Return True if the harness requires an option to be a separate word."""
        wanted = clean(text, strips=self.task.harness.strips)
        if self.task.harness.whole_words == "lone":
            return self.lone and len(wanted) == 1 and len(self.options) == 1
        return len(words(wanted)) == 1


def references(task: Task) -> Iterator[Reference]:
    """Yield all references for answers and pages, in the order of the specification."""
    answers = task.eval.reference_answers
    if answers is not None:
        for name in answers.__struct_fields__:
            yield from _listed(
                task, f"eval.reference_answers.{name}", "answer", name, getattr(answers, name)
            )
    for entry, check in page_checks(task):
        contents = check.required_contents
        for name in contents.given[:2]:
            field = f"{entry}.required_contents.{name}"
            yield from _listed(task, field, "page", name, getattr(contents, name))


def page_checks(task: Task) -> Iterator[tuple[str, PageCheck]]:
    """Yield the page checks with their fields, including those under ``or``."""
    for index, check in enumerate(task.eval.program_html):
        field = f"eval.program_html[{index}]"
        yield field, check
        others = () if check.alternatives is UNSET else check.alternatives
        for position, other in enumerate(others):
            yield f"{field}.or[{position}]", other


def _listed(task: Task, field: str, where: Where, how: str, texts: object) -> Iterator[Reference]:
    if isinstance(texts, str):
        yield Reference(task, field, where, how, texts, (texts,))
    elif isinstance(texts, tuple):
        for index, text in enumerate(texts):
            yield Reference(task, f"{field}[{index}]", where, how, text, texts)


class Weakness(NamedTuple):
    """The field with a weakness, its value, the problem and the fix; "" for the category's text."""

    field: str
    value: object
    problem: str = ""
    mend: str = ""


class Category(NamedTuple):
    """A kind of weakness: a detector, the problem and the fix in a sentence each."""

    find: Callable[[Task], Iterator[Weakness]]
    problem: str
    mend: str
    severity: Severity = Severity.WARNING


def _page_content(task: Task) -> Iterator[Weakness]:
    """Yield page checks with a blank locator, for which the text may be anywhere on the page."""
    for field, check in page_checks(task):
        if not check.locator.strip():
            yield Weakness(f"{field}.locator", check.locator)


def _page_substring(task: Task) -> Iterator[Weakness]:
    """Yield page checks by ``must_include``, with any locator."""
    for field, check in page_checks(task):
        texts = check.required_contents.must_include
        if texts is not UNSET:
            yield Weakness(f"{field}.required_contents.must_include", list(texts))


def _locator_substring(task: Task) -> Iterator[Weakness]:
    """Yield page checks by ``must_include`` on an element's ``outerText``."""
    for field, check in page_checks(task):
        if check.required_contents.must_include is not UNSET and "outerText" in check.locator:
            yield Weakness(f"{field}.locator", check.locator)


def _response_substring(task: Task) -> Iterator[Weakness]:
    """Yield answers that are checked by ``must_include``."""
    answers = task.eval.reference_answers
    if answers is not None and answers.must_include is not UNSET:
        yield Weakness("eval.reference_answers.must_include", list(answers.must_include))


def _unachievable(task: Task) -> Iterator[Weakness]:
    """Yield tasks whose right answer is "N/A"."""
    for one in references(task):
        if one.how == "fuzzy_match" and one.among == (UNACHIEVABLE,):
            yield Weakness(one.field, one.text)


def _llm_evaluation(task: Task) -> Iterator[Weakness]:
    """Yield tasks that a language model judges, including "N/A", for which a model reads other
    answers."""
    holders: list[tuple[str, ReferenceAnswers | RequiredContents | None]] = [
        ("eval.reference_answers", task.eval.reference_answers)
    ]
    for field, check in page_checks(task):
        if check.required_contents.given[:1] == ("fuzzy_match",):
            holders.append((f"{field}.required_contents", check.required_contents))
    for field, holder in holders:
        if holder is not None and holder.fuzzy_match is not UNSET:
            value = holder.fuzzy_match
            yield Weakness(f"{field}.fuzzy_match", value if isinstance(value, str) else list(value))


def _pictures(task: Task) -> Iterator[Weakness]:
    """Yield tasks that need a vision model or a comparison of images."""
    if "page_image_query" in task.eval.eval_types:
        queries = task.eval.page_image_query
        yield Weakness("eval.page_image_query", [] if queries is UNSET else list(queries))


PUBLISHED: Mapping[str, Category] = {
    "page_content": Category(
        _page_content,
        "The whole page is searched, so the text counts in any field.",
        "Name the element that must hold the text.",
    ),
    "page_substring": Category(
        _page_substring,
        "Any text around the references is accepted.",
        "Compare the element's whole value, with its type.",
    ),
    "locator_substring": Category(
        _locator_substring,
        "The text of the element and of all in it is searched for a substring.",
        "Read the one field that matters and compare its whole value.",
    ),
    "response_substring": Category(
        _response_substring,
        "Any answer that contains the references passes, also one that denies them.",
        "Ask for a structured answer and compare typed values.",
    ),
    "unachievable": Category(
        _unachievable,
        'A run that did nothing and answers "N/A" passes.',
        "Ask for a status that names the reason, and for evidence of a search.",
        Severity.ERROR,
    ),
    "llm_evaluation": Category(
        _llm_evaluation,
        "The verdict depends on a language model.",
        "Compare typed values, such as durations or addresses.",
        Severity.NOTE,
    ),
    "pictures": Category(
        _pictures,
        "The verdict depends on pictures of a page, which runs do not store: it is unknown here.",
        "Compare the picture's address, or the name of what it shows.",
        Severity.NOTE,
    ),
}
UNIONS: Mapping[str, tuple[str, ...]] = {
    "any_substring": ("locator_substring", "response_substring"),
    "permissive": ("page_substring", "response_substring"),
}


def _dead_marker(task: Task) -> Iterator[Weakness]:
    """Yield alternatives that the harness reads as plain text, because of their field or their
    form."""
    fields = "must_include" if task.harness.alternatives else "page must_include"
    mend = f'Alternatives work in reference_url and {fields} only, as " |OR| ".'
    for reference in references(task):
        if any(_MARKER.search(option) for option in reference.options):
            yield Weakness(reference.field, reference.text, mend=mend)
    url = task.eval.reference_url or ""
    if any(_MARKER.search(one) for one in alternatives(url)):
        yield Weakness("eval.reference_url", url, mend=mend)


def _dead_field(task: Task) -> Iterator[Weakness]:
    """Yield checks that are specified but never run."""
    spec = task.eval
    answers = spec.reference_answers
    pictures = () if spec.page_image_query is UNSET else spec.page_image_query
    written = {
        # An empty object is no check: other tools write one if only the address is checked.
        "string_match": ("eval.reference_answers", answers != ReferenceAnswers() and answers),
        "url_match": ("eval.reference_url", spec.reference_url),
        "program_html": ("eval.program_html", spec.program_html),
        "page_image_query": ("eval.page_image_query", pictures),
    }
    for name, (field, value) in written.items():
        if value and name not in spec.eval_types:
            problem = f"It is never read, because eval_types does not name {name}."
            given = value if isinstance(value, str) else "..."
            yield Weakness(field, given, problem, f"Add {name} or remove it.")
    for field, check in page_checks(task):
        first_given, *others = check.required_contents.given or ("",)
        for name in others:
            texts = getattr(check.required_contents, name)
            yield Weakness(
                f"{field}.required_contents.{name}",
                list(texts) if isinstance(texts, tuple) else texts,
                f"It is never read, because {first_given} stands beside it.",
                "Make two entries of them.",
            )


def _vacuous(task: Task) -> Iterator[Weakness]:
    """Yield checks that every run passes, or that check nothing."""
    listed = list(references(task))
    referenced = {
        "string_match": ("eval.reference_answers", any(one.where == "answer" for one in listed)),
        "url_match": ("eval.reference_url", bool(task.eval.reference_url)),
        "program_html": ("eval.program_html", any(one.where == "page" for one in listed)),
        "page_image_query": ("eval.page_image_query", bool(task.eval.page_image_query)),
    }
    if not task.eval.eval_types:
        yield Weakness("eval.eval_types", [], "No check is named, so nothing is checked.")
    for check in task.eval.eval_types:
        field, has_reference = referenced[check]
        if not has_reference:
            yield Weakness(field, "", f"{check} is named and has no reference.")
    for one in listed:
        problem = ""
        if one.how == "must_include":
            if any(not clean(option) for option in one.options):
                problem = "A blank reference is part of every text."
            elif _always_met(one):
                problem = "An alternative of one character is looked for in itself: all pass."
        elif (one.where, one.how, one.text) == ("page", "exact_match", ""):
            problem = "A page without the element reads as blank, and passes."
        if problem:
            yield Weakness(one.field, one.text, problem)


def _always_met(reference: Reference) -> bool:
    options = reference.options
    folds = reference.task.harness.folds_options and reference.lone and len(options) > 1
    return folds and any(len(one) == 1 for one in options)


def _literal_pattern(task: Task) -> Iterator[Weakness]:
    """Yield references written as regular expressions, which the harness compares literally."""
    texts = [(reference.field, reference.text) for reference in references(task)]
    for field, text in (*texts, ("eval.reference_url", task.eval.reference_url or "")):
        if _PATTERN.search(text):
            yield Weakness(field, text)


def _substrings(task: Task) -> Iterator[Reference]:
    return (one for one in references(task) if one.how == "must_include")


def _number_run_on(task: Task) -> Iterator[Weakness]:
    """Yield substrings with a digit at the edge: "10" is part of "100", and "2" of "12"."""
    for reference in _substrings(task):
        for option in reference.options:
            text = clean(option)
            if not reference.is_word(option) and len(text) <= 12 and _NUMBER_AT_EDGE.search(text):
                longer = f"1{text}" if text[0].isdigit() else f"{text}0"
                problem = f"Longer numbers contain it, such as {longer!r}."
                yield Weakness(reference.field, reference.text, problem)
                break


def _polarity(task: Task) -> Iterator[Weakness]:
    """Yield yes and no as substrings: "Yes, the answer is no" contains both, "know" contains no."""
    inside = ", or a word that contains it," if task.harness.whole_words == "lone" else ""
    for reference in _substrings(task):
        if _POLARITY & set(map(clean, reference.options)):
            problem = f"An answer that says both{inside} passes."
            yield Weakness(reference.field, reference.text, problem)


def _redundant(task: Task) -> Iterator[Weakness]:
    """Yield references that are part of another one in the list, so that they check nothing
    more."""
    for reference in _substrings(task):
        if not clean(reference.text):
            continue
        for index, other in enumerate(reference.among):
            within = must_include(reference.text, clean(other), task.harness)
            alone = not _MARKER.search(other)
            if within and alone and not reference.field.endswith(f"[{index}]"):
                problem = f"{other!r} contains it, so its own occurrence is never checked."
                yield Weakness(reference.field, reference.text, problem)
                break


def _given_away(task: Task) -> Iterator[Weakness]:
    """Yield answers that the intent contains: repeating it, or its numbers, passes."""
    answers = task.eval.reference_answers
    if answers is None or answers.must_include is UNSET or not answers.must_include:
        return
    alone = len(answers.must_include) == 1
    numbers = " ".join(re.findall(r"\d+", task.intent))
    for text in (clean(task.intent), numbers):
        if all(includes(one, text, task.harness, lone=alone) for one in answers.must_include):
            problem = f"Repeating words or numbers of the intent passes: {text[:80]!r}."
            field = "eval.reference_answers.must_include"
            yield Weakness(field, list(answers.must_include), problem)
            return


def _url_run_on(task: Task) -> Iterator[Weakness]:
    """Yield reference URLs that end with a digit: ``/product/1`` is part of ``/product/12``."""
    contained = not task.harness.exact_urls or task.eval.url_note == GOLD_IN_PRED
    if "url_match" not in task.eval.eval_types or not contained:
        return
    for url in alternatives(task.eval.reference_url or ""):
        base, query = base_and_query(url)
        if base[-1:].isdigit() and not query:
            problem = f"Other pages' addresses contain it, such as {base + '0'!r}."
            yield Weakness("eval.reference_url", url, problem)


def _pooled_queries(task: Task) -> Iterator[Weakness]:
    """Yield alternative URLs with queries: the address of one with the query of another passes."""
    urls = alternatives(task.eval.reference_url or "")
    if "url_match" not in task.eval.eval_types or len(urls) == 1 or task.harness.exact_urls:
        return
    if any(base_and_query(url)[1] for url in urls):
        yield Weakness("eval.reference_url", task.eval.reference_url)


def _one_character(task: Task) -> Iterator[Weakness]:
    """Yield references of one character to which the one-character rule does not apply."""
    for reference in _substrings(task):
        options = reference.options
        if any(len(clean(one)) == 1 and not reference.is_word(one) for one in options):
            yield Weakness(reference.field, reference.text)


# Errors: a run without actions passes, or every right run fails.
PITFALLS: Mapping[str, Category] = {
    "dead_marker": Category(
        _dead_marker,
        '"|OR|" is read as text here, so no alternative can match.',
        "",
        Severity.ERROR,
    ),
    "dead_field": Category(_dead_field, "", ""),
    "vacuous": Category(_vacuous, "", "Write what the run must have reached.", Severity.ERROR),
    "literal_pattern": Category(
        _literal_pattern,
        "It looks like a regular expression and is compared letter by letter.",
        "Write the text itself, or alternatives where they are read.",
    ),
    "number_run_on": Category(_number_run_on, "", "Compare the number as a number."),
    "polarity": Category(_polarity, "", "Compare a boolean, or the whole answer."),
    "redundant": Category(
        _redundant, "", "Count occurrences, or compare a list of values.", Severity.NOTE
    ),
    "given_away": Category(
        _given_away,
        "",
        "Compare the whole answer, or choose an instance whose answer is not in it.",
        Severity.ERROR,
    ),
    "url_run_on": Category(_url_run_on, "", "Compare the whole path."),
    "pooled_queries": Category(
        _pooled_queries,
        "The queries are pooled: every name is asked of every alternative.",
        "Compare each alternative as a whole.",
    ),
    "one_character": Category(
        _one_character,
        "One character is part of almost every text, and here need not stand alone.",
        "Write more of the text, or compare the whole value.",
    ),
}
CATEGORIES: Severities = {
    **{name: category.severity for name, category in PUBLISHED.items()},
    "unreadable": Severity.ERROR,
    **{name: category.severity for name, category in PITFALLS.items()},
}


def readable(
    tasks: Iterable[AnyTask], find: Callable[[AnyTask], Iterator[Finding]]
) -> Iterator[Finding]:
    """Yield the findings of ``find`` for each task, or that the task cannot be read, in order."""
    for task in tasks:
        if task.flaw:
            yield unreadable_finding(task.task_id, task.flaw)
        else:
            yield from find(task)


def weaknesses(tasks: Iterable[Task]) -> Iterator[Finding]:
    """Yield every finding, by task and category."""
    return readable(tasks, _weaknesses)


def _weaknesses(task: Task) -> Iterator[Finding]:
    for name, category in {**PUBLISHED, **PITFALLS}.items():
        for one in category.find(task):
            problem, mend = one.problem or category.problem, one.mend or category.mend
            yield Finding(task.task_id, name, one.field, one.value, problem, mend)


REAL_CATEGORIES: Severities = {
    "unreadable": Severity.ERROR,
    "vacuous": Severity.ERROR,
    "impossible": Severity.WARNING,
    "list_position": Severity.WARNING,
    "state_query": Severity.NOTE,
    "llm_evaluation": Severity.NOTE,
    "script": Severity.NOTE,
}
_OF_TYPES = {
    "jmespath": ("state_query", "query", "The site's state decides, which recorded runs lack."),
    "llm_boolean": ("llm_evaluation", "rubric", "The verdict depends on a language model."),
    "script": ("script", "script", "A script beside the task file decides; it is not run."),
}
_FIXES = {
    "state_query": "Record the state of the site, or check it in the benchmark's own harness.",
    "llm_evaluation": "Compare values of the state instead.",
    "script": "Read the script: the linter does not.",
}


class StateCheck(msgspec.Struct, frozen=True):
    """One entry of ``evals``; entries of version 2 name a script and have no type."""

    type: str = "script"
    description: str = ""
    query: str | None = None
    rubric: str | None = None
    script: str | None = None
    expected_value: Any = None


class RealTask(msgspec.Struct, frozen=True, rename={"task_id": "id", "intent": "goal"}):
    """A task of REAL; fields that the audits do not need are ignored."""

    task_id: str
    intent: str
    evals: tuple[StateCheck, ...]
    possible: bool = True
    flaw: TaskFlaw | None = None


_REAL_TASK = msgspec.json.Decoder(RealTask)


def load_real_tasks(path: Path) -> tuple[RealTask, ...]:
    """Return the tasks of a file, or of the files of a folder. Raises UserError."""
    folder = DataFolder(path) if path.is_dir() else None
    tasks = []
    for file in sorted(path.glob("*.json")) if folder else [path]:
        for raw in raw_records(read_bytes(file, folder=folder), file):
            tasks.append(_real_task(bytes(raw), file.stem))
    return tuple(tasks)


def _real_task(data: bytes, name: str) -> RealTask:
    try:
        return msgspec.structs.replace(_REAL_TASK.decode(data), flaw=None)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        return RealTask(name, "", (), flaw=flaw_of(error, data)[0])


def lint_real(tasks: Iterable[RealTask]) -> Iterator[Finding]:
    """Yield the notes on each task, in order."""
    return readable(tasks, _real_findings)


def _real_findings(task: RealTask) -> Iterator[Finding]:
    if not task.evals:
        fix = "Write what the run must have reached."
        yield Finding(task.task_id, "vacuous", "evals", [], "Nothing is checked.", fix)
    if not task.possible:
        problem = "The task cannot be done, so a run that did nothing may pass."
        fix = "Ask for evidence of a search."
        yield Finding(task.task_id, "impossible", "possible", False, problem, fix)
    for index, check in enumerate(task.evals):
        entry = f"evals[{index}]"
        if check.type not in _OF_TYPES:
            problem = f"No harness of REAL reads the type {check.type!r}."
            fix = f"Use one of {', '.join(_OF_TYPES)}."
            yield Finding(task.task_id, "unreadable", f"{entry}.type", check.type, problem, fix)
            continue
        category, field, problem = _OF_TYPES[check.type]
        value = getattr(check, field)
        yield Finding(task.task_id, category, f"{entry}.{field}", value, problem, _FIXES[category])
        if check.type == "jmespath" and "[0]" in (check.query or ""):
            problem = "The position in a list decides, and another order is as right."
            fix = "Filter the list by the value that is looked for."
            yield Finding(
                task.task_id, "list_position", f"{entry}.query", check.query, problem, fix
            )


def real_notes(tasks: Sequence[RealTask]) -> tuple[str, ...]:
    """Describe, in one sentence, by what the tasks are checked."""
    counted = Counter(check.type for task in tasks for check in task.evals)
    kinds = ", ".join(f"{count} {name}" for name, count in counted.most_common())
    return (
        f"tasks of REAL ({kinds} checks) are linted, not evaluated: their checks ask for the "
        "state of the site, which recorded runs do not hold",
    )
